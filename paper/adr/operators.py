"""How many training operators are needed: both kernels trained alike on the first 50 to 5,000."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transduce.families import AdvectionDiffusionReaction

from .. import figures
from ..lab import Lab, Part, Row
from ..measuring import Remembered, errors
from .trainings import REPRESENTER, SOFTMAX, trained, training, training_data

SIZES = (10, 50, 100)


def measure(lab: Lab) -> list[Row]:
    rows, family = [], Remembered(AdvectionDiffusionReaction(), SIZES[-1])
    for kappa, model in (("representer", REPRESENTER), ("exp_dot", SOFTMAX)):
        for count in lab.scale.training_operators:
            data = training_data(lab).first(count)
            found = trained(lab, model, training(lab), data)
            measured = errors(lab, kappa, found.T, found.identity, family, SIZES, lab.scale.ablated)
            rows += [row | {"training_operators": count} for row in measured]
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[tuple[str, int], Row] = {}
    for row in rows:
        key = (row["regressor"], row["training_operators"])
        line = lines.setdefault(key, {"kernel": key[0], "training operators": key[1]})
        line[f"n = {row['n']}"] = row["mean"]
    return list(lines.values())


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.operators_needed(
        [row | {"operators": row["training_operators"]} for row in rows], folder / "operators"
    )


PART = Part("operators", "how many training operators are needed", measure, table, draw)
