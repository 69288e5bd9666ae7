"""What requests ask of an operator, whichever model regressed it: sizes, fields and answers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from ..conditioned import ConditionedOperator
from ..regression import RegressedOperator

Operator = ConditionedOperator | RegressedOperator
Where = tuple[int, ...] | np.ndarray | None
"""A uniform grid, positions, or the points of the examples' u."""


class Served(ABC):
    """An operator that requests query.

    Attributes:
        dims: number of variables of the answers.
        fields: what a request may have besides v.
        precision: of the queries.
        adapts: whether it takes any grids.
    """

    dims: int
    fields: tuple[str, ...] = ("x", "at", "band")
    precision: type[np.floating] = np.float32
    adapts = False

    @property
    @abstractmethod
    def shapes(self) -> tuple[list[int], list[int]]:
        """The shapes of the examples' v and u."""

    @abstractmethod
    def coefficients(self, v: np.ndarray) -> int:
        """Numbers that the operator holds for all queries."""

    @abstractmethod
    def values(self, at: Where) -> int:
        """Numbers of one answer."""

    @abstractmethod
    def answer(
        self, v: np.ndarray, at: Where, given: Mapping[str, np.ndarray | None], band: float | None
    ) -> tuple[np.ndarray, ...]:
        """u, or u, low and high.

        Args:
            v: queries.
            at: where to answer.
            given: x and parameters, where `fields` names them.
            band: the share of values that low and high should hold.
        """

    @property
    def errors(self) -> tuple[float | None, dict[str, float]]:
        """The expected error, and the leave-one-out errors of baselines, where they are known."""
        return None, {}


class OfFamily(Served):
    """An operator that a model of one family regressed."""

    def __init__(self, O: ConditionedOperator):
        self.O, self.dims = O, O.T.U.dims

    @property
    def shapes(self) -> tuple[list[int], list[int]]:
        return list(self.O.examples.v.shape), list(self.O.examples.u.shape)

    def coefficients(self, v: np.ndarray) -> int:
        return len(v) * self.O.T.V.size

    def values(self, at: Where) -> int:
        if at is None:
            return math.prod(self.O.examples.u.shape[1:])
        return self.O.T.U.channels * _count(at)

    def answer(
        self, v: np.ndarray, at: Where, given: Mapping[str, np.ndarray | None], band: float | None
    ) -> tuple[np.ndarray, ...]:
        if band is None:
            return (self.O(v, at=at, x=given["x"]),)
        return self.O.predict(v, band=band, at=at, x=given["x"])


class OfCurves(Served):
    """An operator of the general model, in the units and on the grids of the request."""

    dims = 1
    fields = ("x", "at", "band", "parameters")
    precision = np.float64
    adapts = True

    def __init__(self, O: RegressedOperator):
        self.O = O

    @property
    def shapes(self) -> tuple[list[int], list[int]]:
        v, u = ([len(f), *f.layout.shape] for f in (self.O.pairs.v, self.O.pairs.u))
        return v, u

    def coefficients(self, v: np.ndarray) -> int:
        return v.size

    def values(self, at: Where) -> int:
        layout = self.O.pairs.u.layout
        return layout.channels * (layout.points if at is None else _count(at))

    def answer(
        self, v: np.ndarray, at: Where, given: Mapping[str, np.ndarray | None], band: float | None
    ) -> tuple[np.ndarray, ...]:
        where = at[0] if isinstance(at, tuple) else at
        if band is None:
            parts: Sequence[object] = (self.O(v, at=where, **given),)
        else:
            parts = self.O.predict(v, band=band, at=where, **given)
        return tuple(np.asarray(part) for part in parts)

    @property
    def errors(self) -> tuple[float | None, dict[str, float]]:
        report = self.O.report()
        known = {name: e for name, e in report.baselines.items() if math.isfinite(e)}
        return report.error if math.isfinite(report.error) else None, known


def served(O: Operator) -> Served:
    """The operator, ready for requests."""
    return OfCurves(O) if isinstance(O, RegressedOperator) else OfFamily(O)


def _count(at: tuple[int, ...] | np.ndarray) -> int:
    return len(at) if isinstance(at, np.ndarray) else math.prod(at)
