"""Figure 2, left: error against the number of examples, for every method, over unseen operators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transduce.families import AdvectionDiffusionReaction
from transduce.report import by_regressor

from .. import figures
from ..lab import Lab, Part, Row
from ..measuring import Remembered, errors, on_all, on_same_few
from ..recipes import recipe
from .setting import FITTED, IN_TABLE_1, MODELS, REGRESSORS, identity, regressor


def errors_of(
    lab: Lab, name: str, family: Remembered, sizes: Sequence[int], operators: int
) -> list[Row]:
    """The errors of a regressor; networks fitted to each operator are measured one n at a time, so
    that little is lost when stopped."""
    R = regressor(lab, name)
    groups = [(n,) for n in sizes] if name in FITTED else [tuple(sizes)]
    return [
        row
        for group in groups
        for row in errors(lab, name, R, identity(name), family, group, operators)
    ]


def measure(lab: Lab) -> list[Row]:
    scale, rows = lab.scale, []
    family = Remembered(AdvectionDiffusionReaction(), scale.sizes[-1])
    for name in REGRESSORS:
        most = scale.fitted_most if name in FITTED else scale.sizes[-1]
        sizes = (scale.table_n,) if name in IN_TABLE_1 else [n for n in scale.sizes if n <= most]
        rows += errors_of(
            lab, name, family, sizes, scale.fitted if name in FITTED else scale.operators
        )
    for name in MODELS:
        rows += on_same_few(errors_of(lab, name, family, scale.sizes, scale.fitted))
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    sizes = dict.fromkeys(f"n = {row['n']}" for row in rows)
    count = {row["regressor"]: row["operators"] for row in rows}
    return [
        {
            "regressor": line["regressor"],
            "operators": count[line["regressor"]],
            **{n: line.get(n, "") for n in sizes},
        }
        for line in by_regressor(rows)
    ]


def draw(rows: Sequence[Row], folder: Path) -> None:
    lows, highs = zip(*(recipe(name).training.n for name in MODELS), strict=True)
    figures.error_against_n(on_all(rows), folder / "sizes", (max(lows), min(highs)))


PART = Part("sizes", "error against the number of examples (figure 2, left)", measure, table, draw)
