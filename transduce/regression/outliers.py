"""Examples that do not fit the others: wrong pairs, not remote ones.

An example is a suspect if its leave-one-out squared error is far above the median and visible:

    e_i > 25 r_i^2 median_j e_j,    e_i > 1e-4 of the variation of u,    r_i < 10,

where r_i >= 1 is its distance to the nearest example in units of the typical one: answers to remote
examples are extrapolations, whose errors grow with distance. Suspects are left out one after the
other, the worst first, until the others are better predicted. Those without which they are better
predicted are outliers: a wrong pair spoils the answers near it, and an example at the edge of a
smooth operator improves them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float

from ..kernels.comparison import evenly
from .engines import as_tensor, engine_for

if TYPE_CHECKING:
    from .operator import RegressedOperator

FEWEST = 5  # examples below which none is an outlier
LARGE = 25.0  # squared error in units of the median
VISIBLE = 1e-4  # squared error in units of the variation of u
REMOTE = 10.0  # distance to the nearest example, in units of the typical one
BETTER = 0.6  # of their errors, sum and geometric mean, at most remains without an outlier
TOGETHER, EACH = 4, 15  # suspects that are left out together: one for each 15 examples
COMPARED = 128  # examples that are regressed, where there are more


def outliers_of(
    O: RegressedOperator, remoteness: Float[np.ndarray, " n"], variation: float
) -> tuple[int, ...]:
    """The numbers of the examples that do not fit the others, in ascending order.

    Args:
        O: the regression.
        remoteness: distance of each example to its nearest one, in units of the typical one.
        variation: squared norm of u about its mean, of a typical example.
    """
    n = len(O.pairs)
    search = _Search(O, remoteness, variation)
    squares = _squares(O.engine.residuals)
    suspects = search.suspects(np.arange(n), squares)
    if n < FEWEST or not len(suspects):
        return ()
    kept = _compared(n, suspects)
    errors = squares if len(kept) == n else search.errors(kept)
    found: list[int] = []
    while wrong := search.step(kept, errors):
        found += wrong
        kept = np.setdiff1d(kept, wrong)
        errors = search.errors(kept)
    return tuple(sorted(found))


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

    def step(self, kept: np.ndarray, errors: Float[np.ndarray, " n"]) -> list[int]:
        """The outliers among the worst few examples; none ends the search.

        Args:
            kept: examples that are regressed.
            errors: of these, as `self.errors` returns them.
        """
        out: list[int] = []
        rest, after = kept, errors
        most = min(TOGETHER, max(1, len(kept) // EACH))
        while len(out) < most and len(rest) > FEWEST:
            suspects = self.suspects(rest, after)
            if not len(suspects):
                break
            out.append(int(suspects[0]))
            rest = rest[rest != suspects[0]]
            after = self.errors(rest)
            if _is_better(after[rest], errors[rest], BETTER ** len(out)):
                return out if len(out) == 1 else [i for i in out if self._spoils(i, rest, after)]
        return []

    def _spoils(self, i: int, rest: np.ndarray, alone: Float[np.ndarray, " n"]) -> bool:
        """Whether the rest is better predicted without example i."""
        return _is_better(alone[rest], self.errors(np.union1d(rest, [i]))[rest])

    def suspects(self, rows: np.ndarray, errors: Float[np.ndarray, " n"]) -> np.ndarray:
        """Those of these examples that have large errors, the largest first."""
        relative = errors[rows] / self.allowed[rows]
        limit = max(LARGE * float(np.median(errors[rows])), 1e-300)
        large = np.flatnonzero((relative > limit) & (errors[rows] > self.visible))
        return rows[large[np.argsort(-relative[large], kind="stable")]]

    def errors(self, rows: np.ndarray) -> Float[np.ndarray, " n"]:
        """Leave-one-out squared errors in the regression of these examples; NaN for others."""
        errors = np.full(len(self.O.pairs), np.nan)
        with torch.no_grad():
            engine = engine_for(self.O.regressor, self.O.pairs.take(rows), self.O.model)
            errors[rows] = _squares(engine.residuals)
        return errors


def _compared(n: int, suspects: np.ndarray) -> np.ndarray:
    """The examples that are regressed: all, or the worst suspects and some of the others."""
    if n <= COMPARED:
        return np.arange(n)
    worst = suspects[: COMPARED // 8]
    others = np.setdiff1d(np.arange(n), worst)
    return np.union1d(others[evenly(len(others), COMPARED - len(worst))], worst)


def _squares(residuals: torch.Tensor) -> Float[np.ndarray, " n"]:
    return as_tensor(residuals).detach().flatten(1).square().sum(1).cpu().numpy()


def _is_better(
    after: Float[np.ndarray, " m"], before: Float[np.ndarray, " m"], share: float = BETTER
) -> bool:
    """Whether most errors fell to this share or less, and their sum too."""
    least = 1e-300 + 1e-24 * float(before.sum())
    ratios = np.log((after + least) / (before + least))
    return bool(after.sum() < share * before.sum() and ratios.mean() < np.log(share))
