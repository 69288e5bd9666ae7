"""A drift monitor: the moving average of the error over the test years, for regressors in context
and for inductive ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .. import figures
from ..lab import Lab, Part, Row
from .setting import BEST, PAPER, asked, day_by_day, day_by_day_without, fields, models

ROLLING = 90  # days
SHOWN = 10  # days from a point of the curve to the next
COMPARED = ("ridge", "kernel-ridge", "vit")


def measure(lab: Lab) -> list[Row]:
    time, rows = fields().time[asked(lab)], []
    errors = {
        name: day_by_day(lab, name, T, of, "week before") for name, (T, of) in models(lab).items()
    }
    errors |= {name: day_by_day_without(lab, name) for name in COMPARED}
    rolling = max(1, ROLLING // lab.scale.every)
    for name, found in errors.items():
        for last in range(rolling - 1, len(time), max(1, SHOWN // lab.scale.every)):
            error = float(np.mean(found[last - rolling + 1 : last + 1]))
            rows.append(
                {
                    "regressor": name,
                    "date": str(time[last].astype("datetime64[D]")),
                    "error": round(error, 3),
                }
            )
    return rows


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.drift(rows, folder / "drift", window=ROLLING, ours=(BEST, PAPER))


PART = Part(
    "drift",
    "rolling error over the years of test",
    measure,
    None,
    draw,
    regressors=(BEST, PAPER, *COMPARED),
)
