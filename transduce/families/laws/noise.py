"""What measuring does to pairs: noise on u, and on v now and then; white or smooth.

Units and offsets need no wrapping: models measure them from the examples.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .dice import Dice
from .law import Law, Pairs

Noise = Callable[[Tensor, Dice], Tensor]


def measured(law: Law, dice: Dice, noisy: float, smooth: Callable[[Dice], Noise]) -> Law:
    """The law with noise, in a share `noisy` of all draws. Its level is in units of the variation
    of the functions, from 0.3 % to 100 % on u and to 20 % on v.

    Args:
        law: draws pairs without noise.
        dice: of the noise's own parameters.
        noisy: share of laws with noise.
        smooth: draws a kind of smooth noise, a sampler of fields like those given to it.
    """
    if not dice.chance(noisy):
        return law
    level = dice.log_uniform(0.003, 1.0)
    on_v = dice.log_uniform(0.003, 0.2) * dice.chance(0.3)
    unit = smooth(dice) if dice.chance(0.4) else _white
    varied = dice.chance(0.3)

    def noise(f: Tensor, size: float, dice: Dice) -> Tensor:
        spread = (f - f.mean(0)).square().mean().sqrt()
        found = unit(f, dice)
        if varied:
            size_of_each = torch.exp(0.7 * dice.normal(len(f), 1))
            found = found * size_of_each.reshape(-1, *[1] * (f.ndim - 1))
        return f + size * spread * found

    def sample(n: int, dice: Dice) -> Pairs:
        v, u = law(n, dice)
        return (noise(v, on_v, dice) if on_v else v), noise(u, level, dice)

    return sample


def _white(f: Tensor, dice: Dice) -> Tensor:
    return dice.normal(*f.shape)
