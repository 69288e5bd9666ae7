"""Operators made from stored ones by the symmetries of the square and of signs.

    O'(v) = S_u g O(g^-1 S_v v),      g: flips of both axes and their exchange

S changes the sign of each channel and exchanges both channels of a field that has two. g maps grid
points to grid points; for periodic fields a flip is also a translation by one point. Now and then
an operator is inverted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...types import ExampleSet, OperatorFamily, Task, to_tensor
from ..laws import Dice

Change = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class VariedFields:
    """Tasks of a family of operators between fields (n, 2, p, p), each varied.

    Args:
        family: where tasks come from.
        inverted: share of tasks that ask for v given u.

    >>> family = VariedFields(StoredFamily("fields.zarr"))
    """

    family: OperatorFamily
    inverted: float = 0.1

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        task, dice = self.family.sample_task(n, m, generator), Dice(generator)
        move, of_v, of_u = draw_move(dice), draw_signs(dice), draw_signs(dice)
        swap = dice.chance(self.inverted)

        def vary(pairs: ExampleSet) -> ExampleSet:
            v = of_v(move(to_tensor(pairs.v, "v"))).contiguous()
            u = of_u(move(to_tensor(pairs.u, "u"))).contiguous()
            return ExampleSet[Tensor](u, v) if swap else ExampleSet[Tensor](v, u)

        return Task(vary(task.examples), vary(task.queries))


def draw_move(dice: Dice) -> Change:
    """One of the eight symmetries of the square."""
    axes = [axis for axis in (-1, -2) if dice.chance(0.5)]
    exchanged = dice.chance(0.5)
    return lambda f: f.flip(axes).mT if exchanged else f.flip(axes)


def draw_signs(dice: Dice) -> Change:
    """A sign for each channel, and whether two channels are exchanged. A channel of zeros does not
    exist, and stays the second."""
    signs, exchanged = torch.tensor([dice.sign(), dice.sign()])[:, None, None], dice.chance(0.5)

    def change(f: Float[Tensor, "n 2 p p"]) -> Float[Tensor, "n 2 p p"]:
        scalar = not f[:, 1].any()
        f = f if scalar or not exchanged else f.flip(1)
        return f * signs.to(f.dtype)

    return change
