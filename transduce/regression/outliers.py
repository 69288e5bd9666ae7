"""Examples that do not fit the others: wrong pairs, not remote ones.

An example is a suspect if its squared error e_i is far above the median and visible:

    e_i > 25 r_i^2 median_j e_j,    e_i > 1e-4 of the variation of u,    r_i < 10,

where r_i >= 1 is its distance to the nearest example in units of the typical one: answers to remote
examples are extrapolations, whose errors grow with distance. All suspects are left out at once, and
the others regressed. Then those are suspects whose e_i is also far above what the answer expects,

    e_i > 25 s_i^2,

with s_i the standard deviation that bands are made of. An example at the edge of a smooth operator
can have such an error too, but it improves the answers to its neighbours; a wrong pair spoils them.
So suspects come back one after the other, the least suspicious first, and outliers are those
without which the others are better predicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int

from ..inputs import Query
from ..kernels.comparison import evenly
from .engines import Engine, engine_for
from .shapes import as_tensor

if TYPE_CHECKING:
    from .operator import RegressedOperator

FEWEST = 5  # examples below which none is an outlier
LARGE, LARGISH = 25.0, 9.0  # squared error in units of the median: of suspects, of the first ones
UNEXPECTED = 25.0  # squared error in units of what the answer expects
VISIBLE = 1e-4  # squared error in units of the variation of u
REMOTE = 10.0  # distance to the nearest example, in units of the typical one
MOST = 0.25  # of the examples are suspects at most
BETTER = 0.97  # of their errors, sum and geometric mean, at most remains without an outlier
MUCH_BETTER = 0.6  # the same of answers without standard deviations
COMPARED = 128  # examples that are regressed, where there are more
ROUNDS, TRIALS = 3, 8  # regressions to find suspects, and with single suspects
ENOUGH = 3  # outliers in succession after which the more suspicious ones are tried together
Rows = Int[np.ndarray, " _"]
"""Numbers of examples."""


class Errors(NamedTuple):
    """How well each example is predicted by a regression of others.

    Attributes:
        squares: of the errors.
        expected: what the answer expects them to be; None if it does not say.
    """

    squares: Float[np.ndarray, " n"]
    expected: Float[np.ndarray, " n"] | None


def outliers_of(
    O: RegressedOperator, remoteness: Float[np.ndarray, " n"], variation: float
) -> tuple[int, ...]:
    """The numbers of the examples that do not fit the others, in ascending order. Empty if
    residuals need a regression without each example: the search would be too slow.

    Args:
        O: the regression.
        remoteness: distance of each example to its nearest one, in units of the typical one.
        variation: squared norm of u about its mean, of a typical example.
    """
    n = len(O.pairs)
    if n < FEWEST or not O.engine.fits_once:
        return ()
    search, rows = _Search(O, remoteness, variation), np.arange(n)
    errors = Errors(_squares(O.engine.residuals), None)
    if not len(search.suspects(errors, rows)):
        return ()
    first = search.suspects(errors, rows, LARGISH)
    compared = _compared(n, first)
    kept, suspects = search.parted(compared, search.trimmed(compared, first))
    return tuple(sorted(search.spoiling(kept, suspects[::-1].tolist())))


class _Search:
    """A search for outliers.

    Args:
        O: the regression.
        remoteness: of each example.
        variation: squared norm of u about its mean, of a typical example.
    """

    def __init__(self, O: RegressedOperator, remoteness: Float[np.ndarray, " n"], variation: float):
        self.O, self.visible = O, VISIBLE * variation
        self.allowed = np.where(remoteness < REMOTE, np.maximum(1.0, remoteness) ** 2, np.inf)

    def suspects(self, errors: Errors, kept: Rows, large: float = LARGE) -> Rows:
        """The examples that have large errors, the most suspicious first.

        Args:
            errors: of all examples.
            kept: those that are regressed, whose errors are typical.
            large: squared error in units of the median.
        """
        squares, expected = errors
        relative = squares / self.allowed
        chosen = relative > max(large * float(np.median(squares[kept])), 1e-300)
        chosen &= squares > self.visible
        if expected is not None:
            relative = squares / np.maximum(expected, 1e-300)
            chosen &= relative > UNEXPECTED
        found = np.flatnonzero(chosen)
        order = np.argsort(-relative[found], kind="stable")
        return found[order][: max(1, int(MOST * len(squares)))]

    def trimmed(self, compared: Rows, out: Rows) -> Rows:
        """The compared examples without these, and without those that show when these are left out.

        Args:
            compared: examples.
            out: the first suspects.
        """
        for _ in range(ROUNDS):
            kept = np.setdiff1d(compared, out)
            seen = self.errors(kept)._replace(expected=None)
            further = np.setdiff1d(kept, self.suspects(seen, kept, LARGISH))
            if len(further) in (len(kept), 0) or len(further) < (1 - MOST) * len(compared):
                break
            out = np.setdiff1d(compared, further)
        return np.setdiff1d(compared, out)

    def parted(self, compared: Rows, kept: Rows) -> tuple[Rows, Rows]:
        """The examples that are regressed, and the suspects by their errors then.

        Args:
            compared: examples to regress if they are no suspects.
            kept: some without suspects, to begin with.
        """
        suspects = kept[:0]
        for _ in range(ROUNDS):
            suspects = self.suspects(self.errors(kept), kept)
            before, kept = kept, np.setdiff1d(compared, suspects)
            if np.array_equal(before, kept):
                break
        return kept, suspects

    def spoiling(self, kept: Rows, suspects: list[int]) -> list[int]:
        """Those of the suspects without which the kept examples are better predicted.

        Args:
            kept: the other examples that are regressed.
            suspects: the least suspicious first.
        """
        found: list[int] = []
        alone, row = self.errors(kept), 0
        for tried, i in enumerate(suspects):
            if row == ENOUGH or tried == TRIALS:
                rest = suspects[tried:]
                return found + rest * self._spoil(kept, alone, self._with(kept, rest))
            together = self._with(kept, [i])
            if self._spoil(kept, alone, together):
                found, row = [*found, i], row + 1
            else:
                kept, alone, row = np.union1d(kept, [i]), together, 0
        return found

    def _with(self, kept: Rows, suspects: list[int]) -> Errors:
        return self.errors(np.union1d(kept, suspects))

    @staticmethod
    def _spoil(kept: Rows, alone: Errors, together: Errors) -> bool:
        """Whether the kept examples are better predicted alone."""
        share = MUCH_BETTER if alone.expected is None else BETTER
        return _is_better(alone.squares[kept], together.squares[kept], share)

    def errors(self, rows: Rows) -> Errors:
        """Errors of all examples in the regression of some, which are left out one at a time."""
        pairs, n = self.O.pairs, len(self.O.pairs)
        with torch.no_grad():
            engine = engine_for(self.O.regressor, pairs.take(rows), self.O.model)
            squares, expected = np.empty(n), np.empty(n)
            squares[rows] = _squares(engine.residuals)
            own = _expected(engine, None)
            others = np.setdiff1d(np.arange(n), rows)
            if own is not None:
                expected[rows] = own
            if len(others):
                rest = pairs.take(others)
                query = Query(rest.v, rest.parameters)
                squares[others] = _squares(as_tensor(rest.u.values) - engine.answer(query, None))
                theirs = _expected(engine, query)
                if theirs is not None:
                    expected[others] = theirs
        return Errors(squares, None if own is None else expected)


def _compared(n: int, suspects: Rows) -> Rows:
    """The examples that are regressed: all, or the worst suspects and some of the others."""
    if n <= COMPARED:
        return np.arange(n)
    worst = suspects[: COMPARED // 4]
    others = np.setdiff1d(np.arange(n), suspects)
    return np.union1d(others[evenly(len(others), COMPARED - len(worst))], worst)


def _expected(engine: Engine, query: Query | None) -> Float[np.ndarray, " m"] | None:
    """The squared errors that the answer to queries expects, or to the examples; None if it does
    not say."""
    deviations = engine.deviations(query)
    return None if deviations is None else _squares(deviations)


def _squares(residuals: torch.Tensor) -> Float[np.ndarray, " n"]:
    return as_tensor(residuals).detach().flatten(1).square().sum(1).cpu().numpy()


def _is_better(
    after: Float[np.ndarray, " m"], before: Float[np.ndarray, " m"], share: float
) -> bool:
    """Whether most errors fell to this share or less, and their sum too."""
    least = 1e-300 + 1e-24 * float(before.sum())
    ratios = np.log((after + least) / (before + least))
    return bool(after.sum() < share * before.sum() and ratios.mean() < np.log(share))
