"""The same table for the North Pacific, month by month, and for the winters of the globe."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from transduce.baselines import MeanOfExamples, nearest_example
from transduce.families import load_climate, previous_week, previous_year
from transduce.types import ExampleSet

from ..lab import Lab, Part, Row
from ..names import describe
from .places import (
    BASELINES,
    FEWER,
    NORTH_PACIFIC,
    REMEMBERING,
    WINTERS,
    Place,
    identities,
    of_patches,
    remembering,
    tuned,
)
from .setting import PAPER, blind_errors, day_errors, days, summary, with_interval

BEFORE, YEAR_BEFORE = "steps before", "year before"


def measured(lab: Lab, place: Place) -> list[Row]:
    whole, known = load_climate(place.name), identities()
    rows: list[Row] = []
    at = np.flatnonzero(np.isin(whole.time, place.period(place.test).fields.time))[
        :: lab.scale.every
    ]
    contexts: dict[str, Any] = {BEFORE: partial(previous_week, n=place.n, lag=place.lag)}
    if whole.step[1] != "Y":
        contexts[YEAR_BEFORE] = partial(previous_year, n=place.n)
    key = {"place": describe(place), "steps": [lab.scale.region_steps, lab.scale.network_steps]}
    models: dict[str, Any] = {
        REMEMBERING: lambda: remembering(lab, place),
        PAPER: lambda: of_patches(lab, place),
        "mean of the context": MeanOfExamples,
        "nearest of the context": nearest_example,
    }
    for name, make in models.items():
        for context, before in contexts.items():

            def examples(day: int, before: Any = before) -> ExampleSet:
                return days(before(whole, whole.time[day]), whole)

            of = {"identity": known.get(f"{name}, elsewhere", ""), "context": context, **key}
            found = day_errors(lab, make, examples, at, whole, regressor=name, **of)
            rows.append({"regressor": name, "context": context, **summary(found, at, whole)})
    for name in BASELINES:
        fitted = partial(tuned, name, place, lab.scale.network_steps)
        of = {"identity": known[f"{name}, elsewhere"], **key}
        if (place.name, name) in FEWER:
            of["fewer"] = FEWER[place.name, name]
        found = blind_errors(lab, fitted, at, whole, regressor=name, **of)
        rows.append({"regressor": name, "context": "none", **summary(found, at, whole)})
    return [{"place": place.name, **row} for row in rows]


def measure(lab: Lab) -> list[Row]:
    return [row for place in (NORTH_PACIFIC, WINTERS) for row in measured(lab, place)]


def table(rows: Sequence[Row]) -> list[Row]:
    columns = list(
        dict.fromkeys(
            f"{row['place']}, {row['context']}" for row in rows if row["context"] != "none"
        )
    )
    lines: dict[str, Row] = {}
    for row in rows:
        line = lines.setdefault(
            row["regressor"], {"regressor": row["regressor"], **dict.fromkeys(columns, "")}
        )
        of_place = [
            c
            for c in columns
            if c.startswith(row["place"])
            and (row["context"] == "none" or c.endswith(row["context"]))
        ]
        line.update(dict.fromkeys(of_place, with_interval(row)))
    return list(lines.values())


PART = Part(
    "regions",
    "North Pacific, monthly, and global winters: error in hPa^2",
    measure,
    table,
    regressors=tuple(identities()),
)
