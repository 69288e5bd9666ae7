"""Table S.1: the paper's three kernels and the representer, trained alike, at n = 10, 100 and
500."""

from __future__ import annotations

from collections.abc import Sequence

from transduce.families import AdvectionDiffusionReaction

from ..lab import Lab, Part, Row
from ..measuring import Remembered, errors
from .trainings import REPRESENTER, SOFTMAX, trained, training, training_data

PAPER = {  # as it prints them, 7.33e5 too
    "exp_dot": (2.71e-3, 2.39e-4, 1.79e-4),
    "rbf": (8.71e-3, 3.46e-4, 3.22e-4),
    "l2": (1.71e-2, 6.98e-4, 7.33e5),
}
SIZES = (10, 100, 500)
# The representer in one layer.
MODELS = {kappa: SOFTMAX | {"kappa": kappa} for kappa in PAPER} | {"representer": REPRESENTER}


def measure(lab: Lab) -> list[Row]:
    rows, family = [], Remembered(AdvectionDiffusionReaction(), SIZES[-1])
    for kappa, model in MODELS.items():
        found = trained(lab, model, training(lab), training_data(lab))
        rows += errors(lab, kappa, found.T, found.identity, family, SIZES, lab.scale.ablated)
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    """Mean error at each n, and the paper's."""
    lines = []
    for kappa in dict.fromkeys(row["regressor"] for row in rows):
        ours = {f"n = {row['n']}": row["mean"] for row in rows if row["regressor"] == kappa}
        lines.append(
            {
                "kernel": kappa,
                **ours,
                **{
                    f"paper, s = {n}": p
                    for n, p in zip(SIZES, PAPER.get(kappa, [""] * 3), strict=True)
                },
            }
        )
    return lines


PART = Part("kernels", "kernels trained alike (table S.1)", measure, table)
