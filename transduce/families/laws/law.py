"""Laws: an operator together with the distribution of its inputs, as a source of pairs.

A mechanism draws a law from dice; a law draws n pairs (v, u) on the fine grid from dice. A law
raises `RejectedError` if a solution does not exist or blows up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .dice import Dice

Pairs = tuple[Tensor, Tensor]
Law = Callable[[int, Dice], Pairs]
Mechanism = Callable[[Dice], Law]
Map = Callable[[Float[Tensor, "n ..."]], Float[Tensor, "n ..."]]
Sampler = Callable[[int, Dice], Tensor]


class RejectedError(Exception):
    """The law has no bounded solution for some input; another one is drawn."""


@dataclass(frozen=True)
class Measure:
    """A distribution of functions.

    Args:
        raw: draws functions of any size.
        scale: what they are divided by.
    """

    raw: Sampler
    scale: float = 1.0

    def __call__(self, n: int, dice: Dice) -> Float[Tensor, "n ..."]:
        return self.raw(n, dice) / self.scale


def of_map(measure: Measure, map: Map) -> Law:
    """The law of inputs from a measure and their images."""

    def sample(n: int, dice: Dice) -> Pairs:
        v = measure(n, dice)
        return v, map(v)

    return sample


def require_bounded(q: Tensor, most: float = 50.0) -> None:
    """Raise unless all values are finite and at most `most`."""
    if not (torch.isfinite(q).all() and q.abs().max() <= most):
        raise RejectedError
