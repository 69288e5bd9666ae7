"""Random functions of one number, applied to the values of a function."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .dice import Dice

Pointwise = Callable[[Tensor], Tensor]


def draw_pointwise(dice: Dice, linear: float = 0.4) -> Pointwise:
    """A polynomial, saturation, wave, exponential or small random network of values of about unit
    size. linear: the probability of the identity."""
    if dice.chance(linear):
        return lambda s: s
    a, c = dice.log_uniform(0.4, 2.5), dice.uniform(-2, 2)
    weight, bias, slope = (dice.normal(12) for _ in range(3))
    options: tuple[Pointwise, ...] = (
        lambda s: s * s + c * s,
        lambda s: s**3 / 2 + c * s,
        lambda s: torch.tanh(a * s),
        lambda s: torch.sin(a * s),
        lambda s: torch.exp(-a * s.clamp(-3, 3) / 2),
        lambda s: s.abs() + c * s / 2,
        lambda s: (torch.tanh(1.5 * slope * s[..., None] + bias) * weight).sum(-1) / 2,
    )
    return dice.pick(options, (1, 1, 1, 1, 1, 0.5, 2))
