"""What measuring does to pairs: noise on u, and on v now and then; white or smooth.

Units and offsets need no wrapping: models measure them from the examples.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .dice import Dice
from .grid import field_root
from .law import Law, Pairs


def measured(law: Law, dice: Dice, noisy: float) -> Law:
    """The law with noise, in a share `noisy` of all draws. Its level is in units of the variation
    of the functions, from 0.3 % to 100 % on u and to 20 % on v."""
    if not dice.chance(noisy):
        return law
    level = dice.log_uniform(0.003, 1.0)
    on_v = dice.log_uniform(0.003, 0.2) * dice.chance(0.3)
    root = field_root(math.inf, dice.log_uniform(0.02, 0.3)) if dice.chance(0.4) else None
    varied = dice.chance(0.3)

    def noise(f: Tensor, size: float, dice: Dice) -> Tensor:
        spread = (f - f.mean(0)).square().mean().sqrt()
        white = (
            dice.normal(*f.shape) if root is None else dice.normal(len(f), root.shape[1]) @ root.T
        )
        per_function = torch.exp(0.7 * dice.normal(len(f), 1)) if varied else 1.0
        return f + size * spread * white * per_function

    def sample(n: int, dice: Dice) -> Pairs:
        v, u = law(n, dice)
        return (noise(v, on_v, dice) if on_v else v), noise(u, level, dice)

    return sample
