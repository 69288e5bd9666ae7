"""Regressions of the visitor's data: by the general model, or by a model of one family."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..inputs import Pairs, read_pairs
from ..regression import RegressedOperator
from ..regression.named import suited
from ..transducer import Transducer
from ..types import Array, ExampleSet, TransduceError

MOST_VALUES = 2 * 64 * 64  # of a function, for models that adapt to grids


@dataclass(frozen=True, eq=False)
class Data:
    """What the files hold.

    Args:
        v, u: pairs.
        v_query: queries.
        x, x_v, x_u: positions of the points of both, of v, of u.
        x_query: positions of the points of the queries, if they have their own.
        parameters, parameters_query: numbers that come with each pair, and with each query.
    """

    v: np.ndarray
    u: np.ndarray
    v_query: np.ndarray
    x: np.ndarray | None = None
    x_v: np.ndarray | None = None
    x_u: np.ndarray | None = None
    x_query: np.ndarray | None = None
    parameters: np.ndarray | None = None
    parameters_query: np.ndarray | None = None

    def first(self) -> Data:
        """The first pair."""
        p = None if self.parameters is None else self.parameters[:1]
        return Data(self.v[:1], self.u[:1], self.v_query, self.x, self.x_v, self.x_u, parameters=p)


@dataclass(frozen=True, eq=False)
class Answer:
    """Predictions.

    Args:
        u: shape (m, *grid).
        low, high: the band, if the model has one.
        x: positions of the points of u from 0 to 1; None if they are uniform.
        report: sentences on expected errors.
    """

    u: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    x: Array | None
    report: list[str]


def check(T: Transducer, data: Data) -> None:
    """Raise an error if the model does not take such data."""
    if T.V.adapts:
        _pairs(data)
    else:
        T.regress(_examples(data.first()))


def answer(name: str, T: Transducer, data: Data) -> Answer:
    """The predictions of a model.

    Args:
        name: of the model.
        T: the model.
        data: pairs and queries.
    """
    return _by_curves(name, T, data) if T.V.adapts else _by_family(T, data)


def _by_curves(name: str, T: Transducer, data: Data) -> Answer:
    pairs = _pairs(data)
    O = RegressedOperator(pairs, name, suited(name, T, pairs))
    parts = O.predict(data.v_query, x=data.x_query, parameters=data.parameters_query)
    u, low, high = (np.asarray(part).reshape(len(data.v_query), *_shape(O)) for part in parts)
    grid = O.pairs.u.grid
    plain = grid is None or (grid.uniform and not grid.flipped)
    x = None if grid is None or plain else grid.unit[:: -1 if grid.flipped else 1]
    return Answer(u, low, high, x, _short(O))


def _shape(O: RegressedOperator) -> tuple[int, ...]:
    """The shape of one answer, with an axis for a single number."""
    return O.pairs.u.layout.shape or (1,)


def _short(O: RegressedOperator) -> list[str]:
    """The report in a line, and its warnings."""
    report = O.report()
    baselines = sorted(report.baselines.items(), key=lambda item: item[1])
    compared = ", ".join(f"{name} {error:.2g}" for name, error in baselines)
    line = (
        f"Expected error {report.error:.2g} of the variation of u about its mean; baselines: "
        f"{compared}."
    )
    return [line, *(text for text in report.warnings if text not in O.pairs.notes)]


def _pairs(data: Data) -> Pairs:
    values = max(math.prod(f.shape[1:]) for f in (data.v, data.u, data.v_query))
    if values > MOST_VALUES:
        raise TransduceError(
            f"functions have {values} values; on this page the model takes at most {MOST_VALUES}. "
            "Use `transduce regress`, or a coarser grid."
        )
    return read_pairs(
        data.v, data.u, x=data.x, x_v=data.x_v, x_u=data.x_u, parameters=data.parameters
    )


def _examples(data: Data) -> ExampleSet:
    given = ("x_v", "x_u", "parameters")
    more = [name for name in given if getattr(data, name) is not None]
    if more:
        raise TransduceError(f"the files hold {', '.join(more)}. Use the model 'general'.")
    return ExampleSet(data.v, data.u, data.x)


def _by_family(T: Transducer, data: Data) -> Answer:
    O = T.regress(_examples(data))
    if T.leaves_out:
        u, low, high = O.predict(data.v_query, x=data.x_query)
    else:
        u, low, high = O(data.v_query, x=data.x_query), None, None
    return Answer(u, low, high, data.x, [])
