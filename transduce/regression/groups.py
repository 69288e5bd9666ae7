"""Residuals of examples whose whole group is left out: errors to expect for a new group.

The examples are regressed without each of at most `FOLDS` parts, which are made of whole groups,
and the rows that are left out are queries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..conditioned import ConditionedOperator
from ..inputs import Groups

FOLDS = 10  # groups are left out in at most so many parts
ONE_GROUP = (
    "all pairs are of one group, so that no group can be left out: errors and bands leave out "
    "single pairs, and are too small for other groups. Give pairs of two groups or more, or leave "
    "out groups=."
)


class Residuals(NamedTuple):
    """What a band is calibrated by.

    Args:
        residual: u minus the answer without the group of each example, in coefficients.
        deviation: of that answer by the kernel, as `Fit.deviation`.
    """

    residual: Tensor
    deviation: Tensor


def is_one_group(groups: Groups | None) -> bool:
    """Whether there are groups, but none can be left out."""
    return groups is not None and not groups.several


def parts_of(groups: Groups) -> list[np.ndarray]:
    """The rows that are left out together, as masks of shape (n,)."""
    codes = np.unique(groups.codes)
    return [np.isin(groups.codes, part) for part in np.array_split(codes, min(FOLDS, len(codes)))]


def residuals_by_groups(O: ConditionedOperator, groups: Groups) -> Residuals:
    """Residuals and deviations of the examples, each without its group.

    Args:
        O: of a model whose kernels have deviations.
        groups: two or more.
    """
    T, examples = O.T, O.examples
    order: list[np.ndarray] = []
    residuals: list[Tensor] = []
    deviations: list[Tensor] = []
    with torch.no_grad():
        v = T.encode(T.V, examples.v, O.x, "examples.v")[0]
        u = T.encode(T.U, examples.u, O.x, "examples.u")[0]
        for held in parts_of(groups):
            asked = np.flatnonzero(held)
            rest = ConditionedOperator(T, examples[np.flatnonzero(~held).tolist()])
            for rows in np.array_split(asked, -(-len(asked) // T.chunk)):
                query = v[rows][None]
                residuals.append(u[rows] - T.query(rest.fits, query)[-1][0])
                deviations.append(T.deviations(rest.fits, query)[0])
                order.append(rows)
    back = np.argsort(np.concatenate(order))
    return Residuals(torch.cat(residuals)[back], torch.cat(deviations)[back])
