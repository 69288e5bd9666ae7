"""Error against the viscosity, inside [0.1, 0.5] and outside, where no training operator was: t =
10, n = 100."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .. import figures
from ..lab import Lab, Part, Row
from ..measuring import Remembered, errors
from .setting import AMPLITUDES, INSTANT, MODELS, TIMES, family_of, identity, regressor


def measure(lab: Lab) -> list[Row]:
    rows, scale = [], lab.scale
    for amplitude in AMPLITUDES:
        for nu in scale.viscosities:
            family = Remembered(replace(family_of(amplitude, TIMES[-1]), nu=nu), scale.table_n)
            for name in (*MODELS, *INSTANT):
                key = {"amplitude": amplitude, "nu": nu}
                found = errors(
                    lab,
                    name,
                    regressor(lab, name),
                    identity(name),
                    family,
                    (scale.table_n,),
                    scale.of_each_viscosity,
                    **key,
                )
                rows += [{**key, **row} for row in found]
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[tuple[float, str], Row] = {}
    for row in rows:
        line = lines.setdefault(
            (row["amplitude"], row["regressor"]),
            {"amplitude": row["amplitude"], "regressor": row["regressor"]},
        )
        line[f"nu = {row['nu']:g}"] = row["mean"]
    return list(lines.values())


def draw(rows: Sequence[Row], folder: Path) -> None:
    swept = [
        {**row, "sweep": f"viscosity, amplitude {row['amplitude']:g}", "value": row["nu"]}
        for row in rows
    ]
    figures.sweep(swept, folder / "viscosity", {row["sweep"]: (0.1, 0.5) for row in swept})


PART = Part(
    "viscosity",
    "error against viscosity, inside and outside of what was trained on",
    measure,
    table,
    draw,
    regressors=(*MODELS, *INSTANT),
)
