"""Ordinary differential equations driven by v, with one or two states.

s' = A f(s) + B p(v(t)),      u = s_1,      s(0) fixed for an operator
"""

from __future__ import annotations

import torch
from torch import Tensor

from .dice import Dice
from .grid import H, N
from .law import Law, of_map, require_bounded
from .measures import draw_measure
from .pointwise import draw_pointwise


def driven(dice: Dice) -> Law:
    """Input signal to the first state."""
    measure, size = draw_measure(dice), dice.pick((1, 2, 2))
    speed = dice.log_uniform(1, 20)
    if size == 2 and dice.chance(0.6):
        A = torch.tensor([[0.0, 1.0], [-1.0, -dice.uniform(0, 1)]], dtype=torch.float64)
    else:
        A = dice.normal(size, size) - dice.uniform(0.5, 1.5) * torch.eye(size, dtype=torch.float64)
    B = dice.normal(size) * dice.log_uniform(0.3, 3)
    f, p = draw_pointwise(dice, 0.5), draw_pointwise(dice, 0.7)
    start = dice.normal(size) * dice.chance(0.5)

    def respond(v: Tensor) -> Tensor:
        drive, s = p(v)[..., None] * B, start.expand(len(v), size)
        out, dt = [s[:, 0]], H * speed

        def rate(s: Tensor, force: Tensor) -> Tensor:
            return f(s) @ A.T + force - 0.1 * s

        for i in range(N - 1):
            middle = (drive[:, i] + drive[:, i + 1]) / 2
            s = s + dt * rate(s + dt / 2 * rate(s, drive[:, i]), middle)
            out.append(s[:, 0])
            if i % 32 == 0:
                require_bounded(s)
        u = torch.stack(out, 1)
        require_bounded(u)
        return u

    return of_map(measure, respond)
