"""Ordinary differential equations driven by v, with one or two states.

s'(t) = r (A f(s) - s / 10 + B p(v(t))),      u = s_1,      s(0) fixed for an operator

f and p are functions of one number, applied to each state and to the values of v.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..laws import Dice, Law, draw_pointwise, of_map, require_bounded
from ..laws.pointwise import Pointwise
from .grid import H, N
from .measures import draw_measure


@dataclass(frozen=True)
class System:
    """Input signal to the first state, by midpoint steps between the points of the grid.

    Args:
        A, B: of the equation.
        f, p: of the equation.
        start: s(0).
        speed: r.
    """

    A: Float[Tensor, "k k"]
    B: Float[Tensor, " k"]
    f: Pointwise
    p: Pointwise
    start: Float[Tensor, " k"]
    speed: float

    def __call__(self, v: Float[Tensor, "n N"]) -> Float[Tensor, "n N"]:
        drive, s = self.p(v)[..., None] * self.B, self.start.expand(len(v), len(self.start))
        out, dt = [s[:, 0]], H * self.speed

        def rate(s: Tensor, force: Tensor) -> Tensor:
            return self.f(s) @ self.A.T + force - 0.1 * s

        for i in range(N - 1):
            middle = (drive[:, i] + drive[:, i + 1]) / 2
            s = s + dt * rate(s + dt / 2 * rate(s, drive[:, i]), middle)
            out.append(s[:, 0])
            if i % 32 == 0:
                require_bounded(s)
        u = torch.stack(out, 1)
        require_bounded(u)
        return u


def driven(dice: Dice) -> Law:
    """Input signal to the first state of a random system: oscillators and others."""
    measure, size = draw_measure(dice), dice.pick((1, 2, 2))
    speed = dice.log_uniform(1, 20)
    if size == 2 and dice.chance(0.6):
        A = torch.tensor([[0.0, 1.0], [-1.0, -dice.uniform(0, 1)]], dtype=torch.float64)
    else:
        A = dice.normal(size, size) - dice.uniform(0.5, 1.5) * torch.eye(size, dtype=torch.float64)
    B = dice.normal(size) * dice.log_uniform(0.3, 3)
    f, p = draw_pointwise(dice, 0.5), draw_pointwise(dice, 0.7)
    start = dice.normal(size) * dice.chance(0.5)
    return of_map(measure, System(A, B, f, p, start, speed))
