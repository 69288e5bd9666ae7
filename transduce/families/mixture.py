"""Several families as one: each task is of one of them.

O ~ sum_k p_k mu_k,      mu_k: the distribution of family k over operators
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..types import OperatorFamily, Task, TransduceError


@dataclass(frozen=True)
class Mixture:
    """families: of functions of one kind. shares: of the tasks, each positive; what they sum to
    does not matter.

    >>> family = Mixture((PermutedImages("mnist"), SyntheticImages()), (0.5, 0.5))
    """

    families: tuple[OperatorFamily, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.families or len(self.families) != len(self.shares) or min(self.shares) <= 0:
            raise TransduceError(
                f"{len(self.families)} families with shares {self.shares}; expected one or more, "
                "each with a positive share."
            )

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        which = int(
            torch.multinomial(
                torch.tensor(self.shares, dtype=torch.float64), 1, generator=generator
            )
        )
        return self.families[which].sample_task(n, m, generator)
