"""Error against the number of examples, at t = 10, for each amplitude."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transduce.report import by_regressor

from .. import figures
from ..lab import Lab, Part, Row
from ..measuring import Remembered, errors
from ..recipes import recipe
from .setting import AMPLITUDES, BEST, INSTANT, MODELS, TIMES, family_of, identity, regressor


def measure(lab: Lab) -> list[Row]:
    rows, scale = [], lab.scale
    for amplitude in AMPLITUDES:
        family = Remembered(family_of(amplitude, TIMES[-1]), scale.sizes[-1])
        for name in (*MODELS, *INSTANT):
            found = errors(
                lab,
                name,
                regressor(lab, name),
                identity(name),
                family,
                scale.sizes,
                scale.few,
                amplitude=amplitude,
            )
            rows += [{"amplitude": amplitude, **row} for row in found]
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    return by_regressor([{**row, "condition": f"amplitude {row['amplitude']:g}"} for row in rows])


def draw(rows: Sequence[Row], folder: Path) -> None:
    for amplitude in AMPLITUDES:
        of_one = [row for row in rows if row["amplitude"] == amplitude]
        figures.error_against_n(
            of_one, folder / f"sizes_{round(100 * amplitude)}", recipe(BEST).training.n
        )


PART = Part(
    "sizes",
    "error against the number of examples",
    measure,
    table,
    draw,
    regressors=(*MODELS, *INSTANT),
)
