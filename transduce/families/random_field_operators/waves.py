"""Linear waves with constant coefficients: displacement and velocity.

    s_tt + mu s_t = c_1^2 s_xx + c_2^2 s_yy - b biharmonic s - m s

v is s at time 0, from rest, or both s and s_t; u is s at a later time, or both. The square is
periodic, held at zero or free at the sides. Each mode is solved exactly: with w^2 = its frequency,

    s(t) = exp(-mu t / 2) (A cos(z t) + B sin(z t)),      z^2 = w^2 - mu^2 / 4
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from ..laws import Dice, Law, of_map
from .grid import FINE, FINE_TORUS, Grid, along
from .measures import draw_measure, draw_smooth
from .transport import CONDITIONS


@dataclass(frozen=True)
class Waving:
    """(s, s_t) at time 0 to (s, s_t) at time 1.

    Args:
        grid: of the states.
        condition: "periodic", "zero" or "even".
        speeds: c_1 and c_2.
        b: of the equation.
        m: of the equation.
        mu: of the equation.
    """

    grid: Grid
    condition: str
    speeds: tuple[float, float]
    b: float = 0.0
    m: float = 0.0
    mu: float = 0.0

    def __call__(self, v: Float[Tensor, "n 2 p p"]) -> Float[Tensor, "n 2 p p"]:
        k, modes, inverse = eigenmodes(self.grid, self.condition)
        first, second = k[:, None], k
        w = self.speeds[0] ** 2 * first + self.speeds[1] ** 2 * second
        w = w + self.b * (first + second) ** 2 + self.m
        z = torch.sqrt((w - self.mu**2 / 4).to(torch.complex128))
        cos, sin = torch.cos(z).real, torch.where(z.abs() < 1e-9, 1.0, torch.sin(z) / z).real
        A, B = along(inverse, v).unbind(1)
        half = self.mu / 2
        s = A * cos + (B + half * A) * sin
        rate = B * cos - (w * A + half * B) * sin
        decayed = torch.exp(torch.tensor(-half).double()) * torch.stack([s, rate], 1)
        return along(modes, decayed)


@lru_cache(maxsize=8)
def eigenmodes(grid: Grid, condition: str) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues of minus the second derivative along an axis, its modes as columns, and their
    inverse."""
    L, w = -grid.laplacian(condition), torch.ones(grid.points, dtype=torch.float64)
    if condition == "even":
        w[0] = w[-1] = 0.5  # makes it symmetric
    if condition == "zero":
        L[:, [0, -1]] = 0
        w[0] = w[-1] = 0.0
    root = w.clamp(min=0.5).sqrt()
    symmetric = root[:, None] * L / root
    k, Q = torch.linalg.eigh((symmetric + symmetric.T) / 2)
    outside = (w > 0).double()
    return k.clamp(min=0), (outside / root)[:, None] * Q, Q.T * (root * outside)


def waves(dice: Dice) -> Law:
    """Start to the displacement at a later time, or also from and to velocities."""
    condition = dice.pick(CONDITIONS, (2, 1, 1))
    grid = FINE_TORUS if condition == "periodic" else FINE
    c, tilt = dice.log_uniform(0.05, 0.8), dice.log_uniform(0.7, 1.4) if dice.chance(0.3) else 1.0
    b = dice.log_uniform(1e-5, 1e-3) * dice.chance(0.2)
    m, mu = dice.log_uniform(0.1, 30) * dice.chance(0.3), dice.uniform(0, 2) * dice.chance(0.4)
    waving = Waving(grid, condition, (c * tilt, c / tilt), b, m, mu)
    both, pinned = dice.chance(0.5), condition == "zero"
    draw = draw_smooth if dice.chance(0.6) else draw_measure
    scale = torch.tensor([1.0, 6 * c]).double()[:, None, None]  # of displacement and velocity
    measure = draw(dice, grid, 2 if both else 1, pinned)
    seen = dice.pick((1, 2))

    def later(v: Tensor) -> Tensor:
        start = v if both else torch.cat([v, torch.zeros_like(v)], 1)
        return (waving(start * scale) / scale)[:, :seen]

    return of_map(measure, later)
