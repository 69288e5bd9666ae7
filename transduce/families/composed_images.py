"""Tasks of classifying synthetic characters, each made of rotated pieces of handwriting.

    v = max_p  x_p o A_kp,
    u = e_k,
    x_p: any image of the class c_kp,
    A_kp: a turn, a size and a place

Which classes c_kp a new class k is made of, and how each is placed, belongs to the task; a class
may be written in several ways. Every image is then bent and shaded a little by itself, as synthetic
ones are. So strokes vary as they do in real hands, while there is no end of classes. No piece
stands upright: what it was cut from is never seen as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, one_hot

from ..types import ExampleSet, Task
from .image_files import CLASSES, LabelledImages, training_half
from .synthetic_images import Draw, shaded, warped

PIECES, WAYS = 3, 2  # at most, of a character; of writing it
LEAST_TURN = math.pi / 4
BENT = 0.5  # of what synthetic images are: handwriting varies by itself


@dataclass(frozen=True)
class ComposedImages:
    """Tasks of characters made of pieces.

    data: images whose classes the pieces are of, or the name of a set whose training half is then
    read when it is needed. v has shape (n, pixels) with values in [0, 1], u (n, 10) is one-hot.

    >>> task = ComposedImages("mnist").sample_task(100, 100, generator)
    """

    data: LabelledImages | str

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        data = training_half(self.data) if isinstance(self.data, str) else self.data
        draw = Draw(generator)
        labels = torch.randint(CLASSES, (n + m,), generator=generator)
        v = shaded(warped(characters(data, labels, draw), draw, BENT), draw).flatten(1)
        u = one_hot(labels, CLASSES).float()
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


def characters(
    data: LabelledImages, labels: Int[Tensor, " k"], draw: Draw
) -> Float[Tensor, "k 1 p p"]:
    """An image of each of these classes."""
    pieces, ways = (
        1 + int(torch.randint(most, (), generator=draw.generator)) for most in (PIECES, WAYS)
    )
    order, first, count = _by_class(data)
    made_of = torch.randint(len(count), (CLASSES * ways, pieces), generator=draw.generator)
    placed = placements((CLASSES * ways, pieces), draw)
    way = ways * labels + torch.randint(ways, labels.shape, generator=draw.generator)
    side = math.isqrt(data.images.shape[1])
    kind = made_of[way].flatten()
    share = torch.rand(len(kind), dtype=torch.float64, generator=draw.generator)
    images = (
        data.images[order[first[kind] + (share * count[kind]).long()]]
        .float()
        .div(255)
        .reshape(-1, 1, side, side)
    )
    grid = affine_grid(placed[way].flatten(0, 1), list(images.shape), align_corners=False)
    return (
        grid_sample(images, grid, align_corners=False)
        .reshape(len(labels), pieces, side, side)
        .amax(1, keepdim=True)
    )


def placements(shape: tuple[int, int], draw: Draw) -> Float[Tensor, "ways pieces 2 3"]:
    """Affine maps from places in a character to places in a piece, turned by an eighth or more;
    alone, a piece fills most of it."""
    turn, size, mirror = (torch.rand(shape, generator=draw.generator) for _ in range(3))
    angle = LEAST_TURN + (2 * math.pi - 2 * LEAST_TURN) * turn
    zoom = 1 / ((0.75 if shape[1] > 1 else 0.9) + 0.35 * size)
    across = zoom * torch.where(mirror < 0.5, -1.0, 1.0)
    turned = torch.stack(
        [torch.stack([angle.cos(), -angle.sin()], -1), torch.stack([angle.sin(), angle.cos()], -1)],
        -2,
    )
    linear = turned * torch.stack([across, zoom], -1)[..., None, :]
    spread = 0.35 if shape[1] > 1 else 0.05
    return torch.cat([linear, -linear @ (spread * draw.normal(*shape, 2, 1)).clamp(-0.5, 0.5)], -1)


@lru_cache(maxsize=4)
def _by_class(
    data: LabelledImages,
) -> tuple[Int[Tensor, " n"], Int[Tensor, " c"], Int[Tensor, " c"]]:
    """The numbers of the images in the order of their classes, and where each class begins there,
    and how many it has."""
    count = data.labels.unique(return_counts=True)[1]
    return data.labels.argsort(), count.cumsum(0) - count, count
