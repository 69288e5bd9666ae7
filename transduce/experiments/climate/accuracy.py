"""Table 3 on Europe: the error of each regressor on the days of test, told from the week before and from the year before.

Those that see the context are asked with each of the two; inductive ones see none, and have one error. Months differ more than regressors
do, so each is also set beside ours day by day: by how much more it errs on the same days, ours seeing the week before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...baselines import MeanOfExamples, nearest_example
from ...baselines.inductive import CHOSEN
from ..lab import Lab, Part, Row
from .setting import (
    BEST,
    CONTEXTS,
    PAPER,
    asked,
    chunked,
    days,
    fields,
    identity,
    in_context,
    models,
    rival,
    summary,
    with_interval,
    without_context,
)

OF_CONTEXT: dict[str, Any] = {"mean of the context": MeanOfExamples(), "nearest of the context": nearest_example()}


def measure(lab: Lab) -> list[Row]:
    whole, at, rows = fields(), asked(lab), []
    errors: list[Any] = []
    seeing: dict[str, tuple[Any, str]] = {**models(lab), **{name: (R, repr(R)) for name, R in OF_CONTEXT.items()}}
    for name, (T, of) in seeing.items():
        for context, before in CONTEXTS.items():

            def told(some: Any, T: Any = T, before: Any = before) -> list[float]:
                return in_context(T, lambda day: days(before(whole, whole.time[day], lab.scale.n)), some)

            found = chunked(lab, at, told, regressor=name, identity=of, context=context, n=lab.scale.n)
            errors.append(found)
            rows.append({"regressor": name, "context": context, **summary(found, at)})
    for name in CHOSEN:

        def answered(some: Any, name: str = name) -> list[float]:
            return without_context(rival(name, lab.scale.steps), some)

        found = chunked(lab, at, answered, regressor=name, identity=f"{identity(name)}, {lab.scale.steps}")
        errors.append(found)
        rows.append({"regressor": name, "context": "none", **summary(found, at)})
    best = np.array(errors[0])  # ours, from the week before
    return [row | {"more": summary(np.array(found) - best, at)} for row, found in zip(rows, errors, strict=True)]


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[str, Row] = {}
    for row in rows:
        shown = list(CONTEXTS) if row["context"] == "none" else [row["context"]]
        line = lines.setdefault(row["regressor"], {"regressor": row["regressor"]})
        line.update(dict.fromkeys(shown, with_interval(row)))
        if row["context"] != "year before":
            line["more than ours"] = "" if row["regressor"] == BEST else with_interval(row["more"])
    return [{name: line[name] for name in ("regressor", *CONTEXTS, "more than ours")} for line in lines.values()]


PART = Part("accuracy", "Europe, daily: error in hPa^2", measure, table, regressors=(BEST, PAPER, *CHOSEN))
