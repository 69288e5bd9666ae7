"""Grids of the unit square on which operators of fields act.

    x_i = i h,      h = 1 / (p - 1) with both ends, or 1 / p where fields are periodic

The family keeps 32 x 32 points. Mechanisms work on these, or on 63 x 63 (periodic: 64 x 64) points,
of which every second one is kept. Fields have shape (n, c, p, p) with 1 or 2 channels c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..laws import Dice, calculus

SIDE = 32


@dataclass(frozen=True)
class Grid:
    """Points along each side of the square.

    Args:
        points: p.
        periodic: whether fields are periodic; the last point is left out then.
    """

    points: int
    periodic: bool

    @property
    def h(self) -> float:
        return 1 / (self.points if self.periodic else self.points - 1)

    @property
    def x(self) -> Float[Tensor, " p"]:
        return torch.arange(self.points, dtype=torch.float64) * self.h

    def derivative(self, order: int) -> Float[Tensor, "p p"]:
        """The matrix of a derivative along one axis."""
        made = calculus.periodic if self.periodic else calculus.free
        return made(self.points, order)

    def laplacian(self, condition: str) -> Float[Tensor, "p p"]:
        """The second derivative along one axis, a symmetric matrix up to weights: "periodic",
        "zero" at the ends or "even" beyond them."""
        if condition == "periodic":
            return calculus.periodic(self.points, 2)
        return calculus.mirrored(self.points, 2, condition)


COARSE, FINE = Grid(SIDE, False), Grid(2 * SIDE - 1, False)
TORUS, FINE_TORUS = Grid(SIDE, True), Grid(2 * SIDE, True)
GRIDS = {
    (False, False): COARSE,
    (True, False): FINE,
    (False, True): TORUS,
    (True, True): FINE_TORUS,
}


def draw_grid(dice: Dice, periodic: float = 0.5, fine: bool = False) -> Grid:
    """A grid of periodic fields in a share `periodic` of all draws."""
    return GRIDS[fine, dice.chance(periodic)]


def kept(f: Float[Tensor, "n c p p"]) -> Float[Tensor, "n c 32 32"]:
    """Every second point of a finer grid."""
    stride = (f.shape[-1] + 1) // SIDE
    return f[..., ::stride, ::stride]


def along(A: Tensor, f: Tensor, B: Tensor | None = None) -> Tensor:
    """A acts along the first axis of fields, B (default: A) along the second."""
    return A @ f @ (A if B is None else B).mT


def gradient(grid: Grid, f: Tensor) -> tuple[Tensor, Tensor]:
    """Both derivatives."""
    D = grid.derivative(1).to(f.dtype)
    return D @ f, f @ D.T


def laplacian(grid: Grid, f: Tensor) -> Tensor:
    """The sum of both second derivatives."""
    D = grid.derivative(2).to(f.dtype)
    return D @ f + f @ D.T


def frequencies(points: int, h: float) -> tuple[Tensor, Tensor]:
    """2 pi times the waves per unit length of `torch.fft.rfft2`: columns (p, 1) and (1, p/2+1)."""
    first = torch.fft.fftfreq(points, h, dtype=torch.float64)[:, None]
    return 2 * math.pi * first, 2 * math.pi * torch.fft.rfftfreq(points, h, dtype=torch.float64)
