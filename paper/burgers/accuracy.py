"""Table 2: the error at n = 100 for two target times and two amplitudes, over unseen operators;
compared with regressors that are fitted for minutes.

A network fitted to the examples of each operator takes minutes; a regression takes milliseconds.
A network fitted to the whole family sees no examples, and shows how much the examples help. Both
are measured at t = 10."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from statistics import fmean

from ..lab import Lab, Part, Row
from ..measuring import Remembered, errors
from .setting import (
    AMPLITUDES,
    FAMILY_WIDE,
    FITTED,
    INSTANT,
    MODELS,
    TIMES,
    family_of,
    family_wide,
    identity,
    regressor,
)

COMPARED = (*FITTED, FAMILY_WIDE, *MODELS)
Measured = Callable[[str, int], list[Row]]


def conditions(lab: Lab, times: Sequence[float]) -> Iterator[Measured]:
    """For each amplitude and target time, what measures a regressor of some name on so many
    operators of it."""
    for amplitude, t in product(AMPLITUDES, times):
        condition = {"amplitude": amplitude, "t": t}
        yield partial(
            _measured, lab, condition, Remembered(family_of(amplitude, t), lab.scale.table_n)
        )


def _measured(lab: Lab, condition: Row, family: Remembered, name: str, operators: int) -> list[Row]:
    R = family_wide(lab, **condition) if name == FAMILY_WIDE else regressor(lab, name)
    return [
        condition | row
        for row in errors(
            lab, name, R, identity(name), family, (lab.scale.table_n,), operators, **condition
        )
    ]


def measure(lab: Lab) -> list[Row]:
    scale = lab.scale
    return [
        row
        for measured in conditions(lab, TIMES)
        for name in (*MODELS, *INSTANT)
        for row in measured(name, scale.operators)
    ]


def measure_fitted(lab: Lab) -> list[Row]:
    return [
        row
        for measured in conditions(lab, TIMES[-1:])
        for name in COMPARED
        for row in measured(name, lab.scale.fitted)
    ]


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[str, Row] = {}
    for row in rows:
        line = lines.setdefault(
            row["regressor"], {"regressor": row["regressor"], "operators": row["operators"]}
        )
        line[f"amplitude {row['amplitude']:g}, t = {row['t']:g}"] = row["mean"]
    return [
        {**line, "seconds": fmean(row["seconds"] for row in rows if row["regressor"] == name)}
        for name, line in lines.items()
    ]


PART = Part(
    "accuracy", "error at n = 100 (table 2)", measure, table, regressors=(*MODELS, *INSTANT)
)
FITTED_PART = Part(
    "networks",
    "compared with regressors that are fitted to each operator, and to all",
    measure_fitted,
    table,
    regressors=COMPARED,
)
