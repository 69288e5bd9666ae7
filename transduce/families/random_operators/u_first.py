"""Problems made from their solution: draw u, compute v = N(u), and ask either way.

N(u) = a u'' + b u' + c u + d u^3 + e u u' + s(x)

The first term is a u' instead in one draw of three. Each of the others is there or not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..laws import Dice, Law, Pairs
from .grid import BOUNDARIES, N, derivative, differences
from .measures import draw_measure, field


def u_first(dice: Dice) -> Law:
    """N(u) to u in three draws of four, u to N(u) in the others."""
    measure, order = draw_measure(dice, dice.pick(BOUNDARIES)), dice.pick((1, 2, 2))
    K = torch.exp(-0.5 * (differences() / dice.log_uniform(0.015, 0.15)) ** 2)
    blur = (K / K.sum(1, keepdim=True)).T
    trial = measure(16, dice) @ blur
    a, b, c, d, e = (dice.uniform(-1, 1) * dice.chance(p) for p in (1.0, 0.5, 0.6, 0.3, 0.2))
    top = derivative(order).T
    unit = (trial @ top).square().mean().sqrt() + 1e-9
    slope = derivative(1).T / ((trial @ derivative(1).T).square().mean().sqrt() + 1e-9)
    source = field(dice) * dice.uniform(0, 1) if dice.chance(0.3) else torch.zeros(N).double()
    forward = dice.chance(0.25)

    def sample(n: int, dice: Dice) -> Pairs:
        u: Tensor = measure(n, dice) @ blur
        v = (0.2 + abs(a)) * (u @ top) / unit + b * u @ slope + c * u + d * u**3
        v = v + e * u * (u @ slope) + source
        return (u, v) if forward else (v, u)

    return sample
