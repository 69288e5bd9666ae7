"""Figure 2, middle: how training goes at each depth, with layers of their own or one layer used
over and over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import figures
from ..lab import Lab, Part, Row
from .trainings import SOFTMAX, trained, training, training_data


def measure(lab: Lab) -> list[Row]:
    rows = []
    for depth in lab.scale.depths:
        for tied in (False, True):
            if depth == 1 and tied:
                continue  # one layer is tied to nothing
            found = trained(
                lab, SOFTMAX | {"depth": depth, "tied": tied}, training(lab), training_data(lab)
            )
            parameters = sum(p.numel() for p in found.T.parameters())
            rows += [
                {"depth": depth, "tied": tied, "parameters": parameters, **point}
                for point in found.curve
            ]
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    """The last point of each curve."""
    last = {(row["depth"], row["tied"]): row for row in rows}
    return [
        {
            "depth": depth,
            "weights": "tied" if tied else "untied",
            **{key: row[key] for key in ("parameters", "error")},
        }
        for (depth, tied), row in last.items()
    ]


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.training_curves(rows, folder / "depth")


PART = Part("depth", "training at each depth (figure 2, middle)", measure, table, draw)
