"""Random numbers from one generator, in double precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from ...random_fields import uniform

Choice = TypeVar("Choice")
Number = int | float


@dataclass(frozen=True)
class Dice:
    """Draws from a generator.

    >>> dice = Dice(torch.Generator().manual_seed(0))
    >>> length = dice.log_uniform(0.01, 0.7)
    """

    generator: torch.Generator

    def uniform(self, low: Number, high: Number) -> float:
        return uniform(float(low), float(high), self.generator)

    def log_uniform(self, low: Number, high: Number) -> float:
        """A number whose logarithm is uniform."""
        return math.exp(self.uniform(math.log(low), math.log(high)))

    def chance(self, probability: Number) -> bool:
        return self.uniform(0, 1) < probability

    def sign(self) -> float:
        return 1.0 if self.chance(0.5) else -1.0

    def pick(self, options: Sequence[Choice], shares: Sequence[Number] | None = None) -> Choice:
        """One of the options, by their shares if these are given."""
        weights = torch.ones(len(options)) if shares is None else torch.tensor([*shares])
        return options[int(torch.multinomial(weights.double(), 1, generator=self.generator))]

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=self.generator)

    def uniforms(self, *shape: int) -> Tensor:
        """Numbers between 0 and 1."""
        return torch.rand(*shape, dtype=torch.float64, generator=self.generator)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers from `low` to `high`, both included, in double precision."""
        return torch.randint(low, high + 1, shape, generator=self.generator).double()

    def order(self, n: int) -> Tensor:
        """A random order of n things."""
        return torch.randperm(n, generator=self.generator)
