"""A family of laws: draws a mechanism by its share, a law of it, noise, and pairs.

    O ~ a mechanism drawn by its share, its parameters, the measure of its inputs, and noise

Laws whose solutions blow up, vanish or do not vary are drawn again. v and u are divided by their
root mean square.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ...random_fields import one_thread
from ...types import ExampleSet, Task, TransduceError
from .dice import Dice
from .law import Law, Mechanism, Pairs, RejectedError

TRIES = 200
FEW = 4  # pairs that are drawn together if many cannot
LARGEST = 1e4  # size of a function in units of the variation of all


@dataclass(frozen=True, eq=False)
class RandomOperator:
    """One operator with the distribution of its inputs.

    Args:
        mechanism: its name.
        law: draws pairs.
    """

    mechanism: str
    law: Law


@dataclass(frozen=True)
class LawFamily:
    """What subclasses share: they name their mechanisms, their noise and the points they keep.

    Args:
        mechanisms: names of the mechanisms to draw from.
        noisy: share of operators whose pairs carry noise.
    """

    mechanisms: tuple[str, ...]
    noisy: float = 0.35

    known: ClassVar[dict[str, tuple[Mechanism, float]]]

    def __post_init__(self) -> None:
        unknown = [name for name in self.mechanisms if name not in self.known]
        if unknown or not self.mechanisms:
            raise TransduceError(
                f"mechanisms={self.mechanisms!r}; expected a tuple of some of "
                f"{', '.join(self.known)}. Name these."
            )

    def measured(self, law: Law, dice: Dice) -> Law:
        """The law with noise or without."""
        raise NotImplementedError

    @staticmethod
    def kept(f: Tensor) -> Tensor:
        """The values of functions at the points of the family."""
        raise NotImplementedError

    @staticmethod
    def shown(f: Tensor) -> Tensor:
        """Functions of unit size in the shape of the family."""
        return f

    @property
    def parameters(self) -> Mapping[str, tuple[str, tuple[str, ...]]]:
        return {"mechanism": ("int64", ())}

    def parameters_of(self, operator: RandomOperator) -> Mapping[str, int]:
        """The place of the operator's mechanism in `MECHANISMS`."""
        return {"mechanism": list(self.known).index(operator.mechanism)}

    def sample_operator(self, generator: torch.Generator) -> RandomOperator:
        """Draw one operator whose first pairs are sound."""
        dice = Dice(generator)
        shares = [self.known[name][1] for name in self.mechanisms]
        for _ in range(TRIES):
            name = dice.pick(self.mechanisms, shares)
            try:
                with one_thread():
                    law = self.measured(self.known[name][0](dice), dice)
                    self._sound(law(8, dice))
                return RandomOperator(name, law)
            except (RejectedError, torch.linalg.LinAlgError):
                continue
        raise TransduceError(f"{TRIES} laws of {self.mechanisms} were rejected. Name others.")

    def sample_pairs(
        self, operator: RandomOperator, n: int, generator: torch.Generator
    ) -> ExampleSet:
        """Draw n pairs of an operator, in single precision and in units of their size."""
        several = max(n, 2)  # a single pair does not show whether functions vary
        with one_thread():
            try:
                v, u = self._sound(operator.law(several, Dice(generator)))
            except (RejectedError, torch.linalg.LinAlgError):
                v, u = self._in_parts(operator, several, Dice(generator))
        return ExampleSet(*(self.shown(f[:n].float()) for f in (v, u)))

    def _in_parts(self, operator: RandomOperator, n: int, dice: Dice) -> Pairs:
        """Draw few pairs at a time, and those without a solution again."""
        parts: list[Pairs] = []
        for _ in range(TRIES * n):
            try:
                drawn = operator.law(min(FEW, n), dice)
                self._sound(drawn)
                parts.append(drawn)
            except (RejectedError, torch.linalg.LinAlgError):
                continue
            if FEW * len(parts) >= n:
                v, u = (torch.cat(functions)[:n] for functions in zip(*parts, strict=True))
                return self._sound((v, u))
        raise TransduceError(
            f"no {n} pairs of a {operator.mechanism!r} law could be drawn. Draw another operator."
        )

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        """Draw one operator, n example pairs and m query pairs of it."""
        pairs = self.sample_pairs(self.sample_operator(generator), n + m, generator)
        return Task(pairs[:n], pairs[n:])

    def _sound(self, pairs: Pairs) -> Pairs:
        """The pairs at the points of the family, scaled to unit size, or an error."""
        out = []
        for f in pairs:
            f = self.kept(f)
            size = f.square().mean().sqrt()
            varies = (f - f.mean(0)).square().mean().sqrt()
            sound = varies > 1e-5 * size and f.abs().max() <= LARGEST * varies  # False for NaN
            if not sound:
                raise RejectedError
            out.append(f / size)
        return out[0], out[1]
