"""Lists of the answers that a general model weighs.

Names are stable: a trust is fitted to them. Some answers compare functions as vectors and exist
between any two spaces; local ones need the grids of both. Corrected ones are an answer plus a
kernel on its residuals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..types import TransduceError

BASELINES = ("mean", "identity", "linear", "rbf", "window")


@dataclass(frozen=True)
class Catalogue:
    """Answers by name.

    Attributes:
        kernels: metric and profile of every kernel ridge regression.
        tuned: those of them that are answers.
        local: answers that need grids.
        scaled: kernels with length scales: the number of principal components with scales of their
            own.
        corrected: for each, the answer that is corrected, and the kernel or local answer that
            regresses its residuals.
        known_as: for answers that the trust was not fitted to, the answer it treats them as.
        alike: answers of one origin, which do not vote for each other.
    """

    kernels: Mapping[str, tuple[str, str]]
    tuned: tuple[str, ...]
    local: tuple[str, ...]
    scaled: Mapping[str, int]
    corrected: Mapping[str, tuple[str, str]]
    known_as: Mapping[str, str]
    alike: Mapping[str, str]

    @property
    def answers(self) -> tuple[str, ...]:
        """All of them; the first is the mean of the examples."""
        return ("mean", *self.tuned, *self.local, *self.scaled, *self.corrected)

    @property
    def known(self) -> tuple[str, ...]:
        """Those that a trust is fitted to, in the order of its numbers."""
        return tuple(name for name in self.answers if name not in self.known_as)

    def number(self, answer: str) -> int:
        """What a trust takes an answer for."""
        return self.known.index(self.known_as.get(answer, answer))

    def origin_of(self, answer: str) -> str:
        """Answers of one origin do not vote for each other."""
        if answer in self.corrected:
            return self.corrected[answer][0]
        return self.alike.get(answer, answer)

    def check(self, without: Collection[str]) -> None:
        """Raise unless these answers can be left out."""
        unknown = [name for name in without if name not in self.answers]
        if unknown or "mean" in without:
            raise TransduceError(
                f"without={list(without)}; expected names among {', '.join(self.answers[1:])}. "
                "Name these."
            )
