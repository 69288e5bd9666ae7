"""Evolution of periodic fields by Fourier series.

    s_t = L s + N(s)

L multiplies Fourier coefficients and is exact, E = exp(L h / 2); N takes steps of the Runge-Kutta
scheme of order 4. N sees the waves below a third of the points, so that products of two fields are
not aliased. All is in single precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ..laws import RejectedError, require_bounded
from .grid import FINE_TORUS, TORUS, Grid, frequencies

TAIL = 1e-3  # share of a solution's squares in the upper quarter of its waves, at most
TOGETHER = 10  # fields that fit the processor's cache
COURANT = 2.0  # of a step: its displacement times the highest frequency
Rate = Callable[[Tensor], Tensor]


class Waves:
    """Frequencies of periodic fields with so many points along each side.

    Attributes:
        square: |k|^2.
        kept: 1 below a third of the points, else 0.
        slope: i k_1 and i k_2 of these waves.
    """

    def __init__(self, points: int):
        self.points, self.highest = points, 2 * math.pi * points / 3
        k_1, k_2 = frequencies(points, 1 / points)
        inside = (k_1.abs() < self.highest) & (k_2 < self.highest)
        self.square, self.kept = (k_1**2 + k_2**2).float(), inside.float()
        self.slope = [(1j * k * inside).to(torch.complex64) for k in (k_1, k_2)]

    def field(self, s: Complex[Tensor, "*n p k"]) -> Float[Tensor, "*n p p"]:
        return torch.fft.irfft2(s, s=(self.points, self.points))

    def series(self, f: Float[Tensor, "*n p p"]) -> Complex[Tensor, "*n p k"]:
        return self.kept * torch.fft.rfft2(f)

    def resolved(self, s: Complex[Tensor, "*n p k"]) -> bool:
        """Whether the upper quarter of the waves carries next to nothing."""
        squares = s.abs().square()
        high = self.square > (0.75 * self.highest) ** 2
        return bool((squares * high).sum() < TAIL * squares.sum())


WAVES = {grid: Waves(grid.points) for grid in (TORUS, FINE_TORUS)}
SHOCK = 0.3  # least diffusivity of steep fronts, in units of speed times spacing
FASTEST = 3.5  # speed of the fastest part of a field, in units of its root mean square


def enough(length: float, speed: float, nu: float) -> Grid:
    """The coarsest grid for fields of this length, speed and viscosity."""
    fine = length < 0.11 or nu < SHOCK * speed * TORUS.h
    return FINE_TORUS if fine else TORUS


def evolve(
    v: Float[Tensor, "n c p p"], linear: Tensor, rate: Rate, speed: float, waves: Waves
) -> Float[Tensor, "n c p p"]:
    """The states after a unit of time.

    Args:
        v: states.
        linear: L, of shape (p, k) or (c, p, k).
        rate: N, from and to Fourier coefficients.
        speed: of the fastest waves, in squares a unit of time.
        waves: of the grid of v.
    """
    steps = max(4, math.ceil(speed * waves.highest / COURANT))
    parts = [_run(waves.series(part.float()), linear, rate, steps) for part in v.split(TOGETHER)]
    s = torch.cat(parts)
    u = waves.field(s)
    require_bounded(u)
    if not waves.resolved(s):
        raise RejectedError
    return u.double()


def _run(s: Tensor, linear: Tensor, rate: Rate, steps: int) -> Tensor:
    """So many steps of order 4."""
    h = 1 / steps
    E = torch.exp(linear * h / 2)
    for _ in range(steps):
        a, Es = rate(s), E * s
        b = rate(Es + h / 2 * E * a)
        c = rate(Es + h / 2 * b)
        d = rate(E * (Es + h * c))
        s = E * (Es + h / 6 * E * a + h / 3 * (b + c)) + h / 6 * d
    return s
