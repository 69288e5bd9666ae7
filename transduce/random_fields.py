"""Gaussian random fields with the squared-exponential covariance (supplement S.3.1).

    g ~ G(0, k_l),      k_l(x, x') = exp(-|x - x'|^2 / (2 l^2))

On the unit interval, and on the unit square made periodic, where the covariance is a product of two
one-dimensional ones.

Also the seeds: every draw in the library comes from a generator named by what it is for, and the
draws of meta-training, validation and meta-test can never meet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

SPLITS = {"train": 0, "validation": 1, "test": 2}


def seed_for(split: str, *numbers: int) -> int:
    """The seed of draw `numbers` of a split.

    The split is the two highest of the 32 bits that torch's generator reads, so seeds of different
    splits differ."""
    hashed = int(np.random.SeedSequence((len(numbers), *numbers)).generate_state(1)[0])
    return SPLITS[split] << 30 | hashed >> 2


def generator_for(split: str, *numbers: int) -> torch.Generator:
    """A generator for draw `numbers` of a split: "train", "validation" or "test"."""
    return torch.Generator().manual_seed(seed_for(split, *numbers))


def uniform(low: float, high: float, generator: torch.Generator) -> float:
    """A draw from [low, high]; it takes one number from the generator even where they are equal."""
    return low + (high - low) * torch.rand((), dtype=torch.float64, generator=generator).item()


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums are split among threads, so their number would change the last bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@lru_cache(maxsize=32)
def _covariance_root(points: int, length_scale: float) -> Float[Tensor, "x r"]:
    """S with S S^T = k_l on a uniform grid that includes both ends, without its numerically empty
    directions."""
    x = torch.linspace(0, 1, points, dtype=torch.float64)
    covariance = torch.exp(-((x[:, None] - x[None, :]) ** 2) / (2 * length_scale**2))
    with one_thread():
        variance, directions = torch.linalg.eigh(covariance)
    kept = variance > 1e-14 * variance[-1]
    return directions[:, kept] * variance[kept].sqrt()


def gaussian_field(
    n: int, points: int, length_scale: float, generator: torch.Generator
) -> Float[Tensor, "n x"]:
    """n fields on a uniform grid of [0, 1] that includes both ends, in double precision.

    >>> gaussian_field(3, 401, 0.2, torch.Generator()).shape
    torch.Size([3, 401])
    """
    root = _covariance_root(points, length_scale)
    normal = torch.randn(n, root.shape[1], dtype=torch.float64, generator=generator)
    return normal @ root.T


@lru_cache(maxsize=32)
def _periodic_root(points: int, length_scale: float) -> Float[Tensor, "x r"]:
    """S with S S^T = k_l wrapped around the unit circle and scaled to variance one, on a grid that
    leaves out the last point.

    The wrapped k_l is sum_j exp(-2 (pi l j)^2) cos(2 pi j x), up to a factor. Modes j below 1e-14
    of the first are left out."""
    highest = math.floor(math.sqrt(-math.log(1e-14) / 2) / (math.pi * length_scale))
    j = torch.arange(-highest, highest + 1, dtype=torch.float64)
    x = torch.arange(points, dtype=torch.float64) / points
    variance = torch.exp(-2 * (torch.pi * length_scale * j) ** 2)
    # Orthonormal.
    waves = torch.cos(2 * torch.pi * j * x[:, None]) + torch.sin(2 * torch.pi * j * x[:, None])
    return waves * (variance / variance.sum()).sqrt()


def periodic_field(
    n: int, points: int, length_scale: float, generator: torch.Generator
) -> Float[Tensor, "n x y"]:
    """n periodic fields of variance one on a uniform grid of [0, 1]^2 that leaves out the last
    points, in double precision.

    Equal generators give the same functions on every grid.

    >>> periodic_field(3, 64, 0.125, torch.Generator()).shape
    torch.Size([3, 64, 64])
    """
    root = _periodic_root(points, length_scale)
    normal = torch.randn(n, root.shape[1], root.shape[1], dtype=torch.float64, generator=generator)
    return root @ normal @ root.T
