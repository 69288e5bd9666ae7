"""Operators made from stored ones: mirrored in x, with signs changed, now and then inverted.

    O'(v) = +- R O(+- R v),     R v(x) = v(1 - x)

Any family of operators between functions on one uniform grid can be varied so.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...types import ExampleSet, OperatorFamily, Task, to_tensor
from ..laws import Dice


@dataclass(frozen=True)
class Varied:
    """Tasks of a family, each varied.

    Args:
        family: where tasks come from.
        inverted: share of tasks that ask for v given u.
    """

    family: OperatorFamily
    inverted: float = 0.1

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        task, dice = self.family.sample_task(n, m, generator), Dice(generator)
        mirror, of_v, of_u = dice.chance(0.5), dice.sign(), dice.sign()
        swap = dice.chance(self.inverted)

        def vary(pairs: ExampleSet) -> ExampleSet:
            v, u = of_v * to_tensor(pairs.v, "v"), of_u * to_tensor(pairs.u, "u")
            if mirror:
                v, u = v.flip(-1), u.flip(-1)
            return ExampleSet[Tensor](u, v) if swap else ExampleSet[Tensor](v, u)

        return Task(vary(task.examples), vary(task.queries))
