"""Classifying images in context (section 5.4): operators from [0, 1]^784 to ten classes.

    O(v) = e_{pi(label of v)},
    v = an image whose blocks of b x b pixels are permuted,
    e_1, ..., e_10 one-hot

Each task has its own order of blocks and its own permutation pi of the classes, so that labels can
be inferred only from the examples. Of real images, meta-training uses the training half of MNIST,
always permuted. The test sets are used without permutation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import one_hot

from ..types import ExampleSet, Task, TransduceError
from .image_files import CLASSES, SIDE, LabelledImages, training_half


@dataclass(frozen=True)
class PermutedImages:
    """Tasks of permuted images: each has its own order of blocks and permutation of the classes.

    v has shape (n, pixels) with values in [0, 1]; u has shape (n, 10) and is one-hot.

    Args:
        data: images, or the name of a set, whose training half is read on first use.
        blocks: side lengths of blocks in pixels; each task draws one. Empty: images and classes
            are not permuted.

    >>> task = PermutedImages("mnist").sample_task(100, 100, generator)
    """

    data: LabelledImages | str
    blocks: tuple[int, ...] = (1, 2, 4, 7)

    def __post_init__(self) -> None:
        side = SIDE if isinstance(self.data, str) else math.isqrt(self.data.images.shape[1])
        if any(block < 1 or side % block or block == side for block in self.blocks):
            raise TransduceError(
                f"blocks={self.blocks}; expected sides of blocks that divide {side}, and are "
                "smaller."
            )

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        data = training_half(self.data) if isinstance(self.data, str) else self.data
        if n + m > len(data):
            raise TransduceError(
                f"{n} examples and {m} queries were asked of {len(data)} images; expected no more "
                "than there are."
            )
        chosen = torch.from_numpy(_distinct(len(data), n + m, generator))
        images, labels = data.images[chosen], data.labels[chosen]
        if self.blocks:
            block = self.blocks[int(torch.randint(len(self.blocks), (), generator=generator))]
            images = images[:, block_order(math.isqrt(images.shape[1]), block, generator)]
            labels = torch.randperm(CLASSES, generator=generator)[labels]
        v, u = images.float() / 255, one_hot(labels, CLASSES).float()
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


def block_order(side: int, block: int, generator: torch.Generator) -> Int[Tensor, " p"]:
    """The source of each pixel after permuting the blocks of an image. The order is never the
    identity."""
    across = side // block
    order = torch.arange(across**2)
    while (order == torch.arange(across**2)).all():
        order = torch.randperm(across**2, generator=generator)
    pixels = (
        torch.arange(side**2)
        .reshape(across, block, across, block)
        .movedim(1, 2)
        .reshape(across**2, block, block)
    )
    return pixels[order].reshape(across, across, block, block).movedim(2, 1).reshape(-1)


def _distinct(size: int, count: int, generator: torch.Generator) -> Int[np.ndarray, " k"]:
    """`count` distinct numbers below `size`, without shuffling all numbers."""
    seed = int(torch.randint(2**62, (), generator=generator))
    return np.random.default_rng(seed).choice(size, count, replace=False)
