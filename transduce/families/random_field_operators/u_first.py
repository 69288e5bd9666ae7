"""Problems made from their solution: draw u, compute v = N(u), and ask either way.

    N(u) = a laplacian u + b u_z + c u + d u^3 + e u u_z + h |grad u|^2 + s(x)

u_z is the slope in a random direction. Each term but the first is there or not.
"""

from __future__ import annotations

import math

from torch import Tensor

from ..laws import Dice, Law, Pairs
from .grid import draw_grid, gradient, laplacian
from .measures import draw_smooth, field


def u_first(dice: Dice) -> Law:
    """N(u) to u in three draws of four, u to N(u) in the others."""
    grid = draw_grid(dice, fine=True)
    measure = draw_smooth(dice, grid, pinned=dice.chance(0.3) and not grid.periodic)
    a, b, c, d, e, h = (
        dice.uniform(-1, 1) * dice.chance(p) for p in (1.0, 0.5, 0.6, 0.4, 0.2, 0.2)
    )
    turn, source = dice.uniform(0, 6.3), field(dice, grid) * dice.uniform(0, 1)
    source, forward = source * dice.chance(0.3), dice.chance(0.25)
    trial = measure(8, dice)
    top, slope = (_size(f) for f in (laplacian(grid, trial), gradient(grid, trial)[0]))

    def sample(n: int, dice: Dice) -> Pairs:
        u = measure(n, dice)
        first, second = (D / slope for D in gradient(grid, u))
        along = math.cos(turn) * first + math.sin(turn) * second
        v = (0.3 + abs(a)) * laplacian(grid, u) / top + b * along + c * u + d * u**3
        v = v + e * u * along + h * (first**2 + second**2) + source
        return (u, v) if forward else (v, u)

    return sample


def _size(f: Tensor) -> float:
    return f.square().mean().sqrt().item() + 1e-9
