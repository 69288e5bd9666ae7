"""Table 3 on Europe: the error of each regressor on the test days.

Regressors in context are measured with two contexts: the week before, and the year before.
Inductive ones see no context, and have one error. Months differ more than regressors do. So each
is also compared with ours day by day: the difference of their errors on the same days, where ours
sees the week before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transduce.baselines import MeanOfExamples, nearest_example
from transduce.settings import Json

from ..baselines.inductive import CHOSEN
from ..lab import Lab, Part, Row
from ..names import describe
from .setting import (
    BEST,
    CONTEXTS,
    PAPER,
    asked,
    day_by_day,
    day_by_day_without,
    models,
    summary,
    with_interval,
)

OF_CONTEXT: dict[str, Any] = {
    "mean of the context": MeanOfExamples(),
    "nearest of the context": nearest_example(),
}


def measure(lab: Lab) -> list[Row]:
    at = asked(lab)
    seeing: dict[str, tuple[Any, Json]] = {
        **models(lab),
        **{name: (R, describe(R)) for name, R in OF_CONTEXT.items()},
    }
    errors = {
        (name, context): day_by_day(lab, name, T, of, context)
        for name, (T, of) in seeing.items()
        for context in CONTEXTS
    }
    errors |= {(name, "none"): day_by_day_without(lab, name) for name in CHOSEN}
    ours = np.array(errors[BEST, "week before"])
    return [
        {
            "regressor": name,
            "context": context,
            **summary(found, at),
            "more": summary(np.array(found) - ours, at),
        }
        for (name, context), found in errors.items()
    ]


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[str, Row] = {}
    for row in rows:
        shown = list(CONTEXTS) if row["context"] == "none" else [row["context"]]
        line = lines.setdefault(row["regressor"], {"regressor": row["regressor"]})
        line.update(dict.fromkeys(shown, with_interval(row)))
        if row["context"] != "year before":
            line["more than ours"] = "" if row["regressor"] == BEST else with_interval(row["more"])
    return [
        {name: line[name] for name in ("regressor", *CONTEXTS, "more than ours")}
        for line in lines.values()
    ]


PART = Part(
    "accuracy", "Europe, daily: error in hPa^2", measure, table, regressors=(BEST, PAPER, *CHOSEN)
)
