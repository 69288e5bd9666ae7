"""The terms of an equation, chosen by leaving out blocks of pairs.

    error(S) = sum over blocks b of |y_b - X_b c_S without b|^2

The best sets of each size are searched from those of the size before (a beam). The smallest set
counts whose error is at most the least of all sizes plus its standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

BEAM = 50  # sets of each size that are kept
PART = 20_000  # sets that are solved at once
LEAST_EIGENVALUE = 1e-9  # of normalised moments: below it, terms say the same


@dataclass(frozen=True)
class Subset:
    """The best set of terms of one size.

    Attributes:
        terms: their numbers.
        errors: squared error at each block that is left out.
    """

    terms: tuple[int, ...]
    errors: Float[np.ndarray, " blocks"]

    @property
    def error(self) -> float:
        return float(self.errors.sum())


def best_subsets(moments: Float[np.ndarray, "blocks s s"], most: int) -> list[Subset]:
    """The best set of each size, from none up to `most` terms.

    Args:
        moments: of terms and, last, the increments.
        most: terms.
    """
    scaled, usable = _normalised(moments)
    found = [Subset((), moments[:, -1, -1])]
    kept: list[tuple[int, ...]] = [()]
    for _ in range(min(most, len(usable))):
        larger = sorted({tuple(sorted((*s, j))) for s in kept for j in usable if j not in s})
        if not larger:
            break
        errors = left_out_errors(scaled, np.array(larger))
        order = np.argsort(errors.sum(1), kind="stable")[:BEAM]
        kept = [larger[i] for i in order if np.isfinite(errors[i]).all()]
        if not kept:
            break
        found.append(Subset(kept[0], errors[order[0]]))
    return found


def smallest(found: Sequence[Subset]) -> Subset:
    """The smallest set within one standard error of the best. found: the best set of each size."""
    best = min(found, key=lambda each: each.error)
    blocks = len(best.errors)
    limit = max(best.error, 0.0) + float(best.errors.std(ddof=1)) * blocks**0.5
    return next(each for each in found if each.error <= limit)


def left_out_errors(
    moments: Float[np.ndarray, "blocks s s"], sets: Int[np.ndarray, "m k"]
) -> Float[np.ndarray, "m blocks"]:
    """The error of each set at each block; infinite where its terms say the same."""
    parts = np.array_split(sets, -(-len(sets) // PART))
    return np.concatenate([_errors(moments, part) for part in parts])


def _errors(
    moments: Float[np.ndarray, "blocks s s"], sets: Int[np.ndarray, "m k"]
) -> Float[np.ndarray, "m blocks"]:
    whole = moments.sum(0)
    singular = np.linalg.eigvalsh(_among(whole, sets))[:, 0] < LEAST_EIGENVALUE
    errors = np.full((len(sets), len(moments)), np.inf)
    sets = sets[~singular]
    for b, own in enumerate(moments):
        c = _solved(whole - own, sets)
        cross, gram = own[sets, -1], _among(own, sets)
        fitted = np.einsum("mi,mij,mj->m", c, gram, c)
        errors[~singular, b] = own[-1, -1] - 2 * (c * cross).sum(1) + fitted
    return errors


def _among(moments: Float[np.ndarray, "s s"], sets: Int[np.ndarray, "m k"]) -> np.ndarray:
    """The moments of the terms of each set: (m, k, k)."""
    return moments[sets[:, :, None], sets[:, None, :]]


def _solved(
    moments: Float[np.ndarray, "s s"], sets: Int[np.ndarray, "m k"]
) -> Float[np.ndarray, "m k"]:
    gram = _among(moments, sets)
    ridge = LEAST_EIGENVALUE * 1e-4 * np.eye(sets.shape[1])
    return np.linalg.solve(gram + ridge, moments[sets, -1, None])[..., 0]


def coefficients_of(
    moments: Float[np.ndarray, "blocks s s"], terms: Sequence[int]
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Coefficients, and their standard errors by the jackknife over blocks."""
    scaled, _ = _normalised(moments)
    chosen, whole = np.array([terms], dtype=int), scaled.sum(0)
    units = np.sqrt(np.maximum(moments.sum(0).diagonal()[list(terms)], 1e-300))
    value = _solved(whole, chosen)[0] / units
    without = np.stack([_solved(whole - own, chosen)[0] for own in scaled]) / units
    blocks = len(moments)
    spread = np.sqrt((blocks - 1) * np.square(without - without.mean(0)).mean(0))
    return value, spread


def _normalised(
    moments: Float[np.ndarray, "blocks s s"],
) -> tuple[Float[np.ndarray, "blocks s s"], list[int]]:
    """Moments of terms of unit size, and the terms that are not zero."""
    size = moments.sum(0).diagonal()[:-1]
    usable = size > 1e-300
    unit = np.append(np.where(usable, 1 / np.sqrt(np.where(usable, size, 1)), 0), 1.0)
    return moments * unit[:, None] * unit, np.flatnonzero(usable).tolist()
