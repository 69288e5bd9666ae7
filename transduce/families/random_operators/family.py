"""The family of random operators.

    O ~ a mechanism drawn by its share, its parameters, the measure of its inputs, and noise

Functions are on a uniform grid of 80 points. Laws whose solutions blow up, vanish or are constant
are drawn again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ...random_fields import one_thread
from ...types import ExampleSet, Task, TransduceError
from . import black_boxes, driven, elliptic, evolution, grid, linear, u_first
from .dice import Dice
from .law import Law, Mechanism, Pairs, RejectedError
from .wrapping import measured

MECHANISMS: dict[str, tuple[Mechanism, float]] = {  # with their shares of all operators
    "linear": (linear.linear, 5.0),
    "forced": (elliptic.forced, 4.0),
    "coefficient": (elliptic.coefficient, 1.0),
    "state": (evolution.state, 4.0),
    "forced state": (evolution.forced_state, 1.0),
    "wave": (evolution.wave, 1.0),
    "advected": (evolution.advected, 0.7),
    "trajectory": (evolution.trajectory, 2.5),
    "driven": (driven.driven, 2.0),
    "u first": (u_first.u_first, 2.0),
    "sandwich": (black_boxes.sandwich, 2.0),
    "volterra": (black_boxes.volterra, 1.0),
    "neural": (black_boxes.neural, 1.0),
    "extremes": (black_boxes.extremes, 0.7),
    "curves": (black_boxes.curves, 3.0),
    "unrelated": (black_boxes.unrelated, 0.7),
}
HELD_OUT = ("wave", "forced state", "neural")  # for validation; never in training
TRAINED = tuple(name for name in MECHANISMS if name not in HELD_OUT)
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
class RandomOperators:
    """Random operators between functions on 80 points of [0, 1].

    Args:
        mechanisms: names of the mechanisms to draw from; default: all but `HELD_OUT`.
        noisy: share of operators whose pairs carry noise.

    >>> task = RandomOperators().sample_task(20, 10, generator_for("train", 0))
    >>> task.examples
    ExampleSet(n=20, v=(20, 80), u=(20, 80))
    """

    mechanisms: tuple[str, ...] = TRAINED
    noisy: float = 0.35

    def __post_init__(self) -> None:
        unknown = [name for name in self.mechanisms if name not in MECHANISMS]
        if unknown or not self.mechanisms:
            raise TransduceError(
                f"mechanisms={self.mechanisms!r}; expected a tuple of some of "
                f"{', '.join(MECHANISMS)}. Name these."
            )

    @property
    def axes(self) -> Mapping[str, Tensor]:
        return {"x": grid.x()[::2]}

    @property
    def parameters(self) -> Mapping[str, tuple[str, tuple[str, ...]]]:
        return {"mechanism": ("int64", ())}

    def parameters_of(self, operator: RandomOperator) -> Mapping[str, int]:
        """The place of the operator's mechanism in `MECHANISMS`."""
        return {"mechanism": list(MECHANISMS).index(operator.mechanism)}

    def sample_operator(self, generator: torch.Generator) -> RandomOperator:
        """Draw one operator whose first pairs are sound."""
        dice = Dice(generator)
        shares = [MECHANISMS[name][1] for name in self.mechanisms]
        for _ in range(TRIES):
            name = dice.pick(self.mechanisms, shares)
            try:
                with one_thread():
                    law = measured(MECHANISMS[name][0](dice), dice, self.noisy)
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
        return ExampleSet(v[:n].float(), u[:n].float())

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

    @staticmethod
    def _sound(pairs: Pairs) -> Pairs:
        """The pairs at every second point, scaled to unit size, or an error."""
        out = []
        for f in pairs:
            f = f[:, ::2]
            size = f.square().mean().sqrt()
            varies = (f - f.mean(0)).square().mean().sqrt()
            sound = varies > 1e-5 * size and f.abs().max() <= LARGEST * varies  # False for NaN
            if not sound:
                raise RejectedError
            out.append(f / size)
        return out[0], out[1]
