"""One operator for a whole family: what a regression that reads its examples has to beat.

    O_B = R({(v, O(v)) | O in B}),      T(D_O) = O_B, whatever D_O

Fitted to many pairs by their squared error, O_B(v) is the mean of O(v) over the operators of the
family."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import torch

from transduce.types import ExampleSet, Operator, Regressor, to_tensor


@dataclass(frozen=True)
class FamilyWide:
    """A regressor fitted once, on first use, to the pairs of many operators mixed together.

    Args:
        regressor: what is fitted, such as an `Fno` whose `Fitting` holds some pairs out.
        examples_of_each: returns the examples of each operator.

    >>> draws = lambda: (family.sample_task(20, 1, generator).examples for _ in range(200))
    >>> T = FamilyWide(periodic_fno(), draws)
    >>> O = T.regress(examples)      # the same operator for any examples
    """

    regressor: Regressor
    examples_of_each: Callable[[], Iterable[ExampleSet]]

    def regress(self, examples: ExampleSet) -> Operator:
        return self.operator

    @cached_property
    def operator(self) -> Operator:
        """O_B."""
        sets = list(self.examples_of_each())
        v, u = (
            torch.cat([to_tensor(getattr(examples, name), f"examples.{name}") for examples in sets])
            for name in ("v", "u")
        )
        return self.regressor.regress(ExampleSet(v, u))
