"""A drift monitor: the mean error of the last so many days, over the years of test, in context beside inductive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ... import figures
from ...families import previous_week
from ...transducer import Transducer
from ..lab import Lab, Part, Row
from .setting import BEST, PAPER, asked, chunked, days, fields, identity, in_context, patches, rival, without_context

ROLLING = 90  # days
SHOWN = 10  # days from a point of the curve to the next
BESIDE = ("ridge", "kernel-ridge", "vit")


def measure(lab: Lab) -> list[Row]:
    whole, at, rows = fields(), asked(lab), []

    def in_the_week_before(T: Any, some: np.ndarray) -> list[float]:
        return in_context(T, lambda day: days(previous_week(whole, whole.time[day], lab.scale.n)), some)

    def without(name: str, some: np.ndarray) -> list[float]:
        return without_context(rival(name, lab.scale.steps), some)

    works: dict[str, Any] = {
        BEST: lambda some: in_the_week_before(Transducer.from_pretrained(BEST), some),
        PAPER: lambda some: in_the_week_before(patches(lab), some),
        **{name: lambda some, name=name: without(name, some) for name in BESIDE},
    }
    rolling = max(1, ROLLING // lab.scale.every)
    for name, work in works.items():
        found = np.array(chunked(lab, at, work, regressor=name, identity=f"{identity(name)}, {lab.scale.steps}", n=lab.scale.n))
        for last in range(rolling - 1, len(at), max(1, SHOWN // lab.scale.every)):
            error = float(found[last - rolling + 1 : last + 1].mean())
            rows.append({"regressor": name, "date": str(whole.time[at[last]].astype("datetime64[D]")), "error": round(error, 3)})
    return rows


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.drift(rows, folder / "drift", window=ROLLING, ours=(BEST, PAPER))


PART = Part("drift", "rolling error over the years of test", measure, None, draw, regressors=(BEST, PAPER, *BESIDE))
