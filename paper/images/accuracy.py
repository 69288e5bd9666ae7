"""Table 4: accuracy with 100 examples on three sets, over 1,000 tasks each, with every baseline;
and against the number of examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import figures
from ..lab import Lab, Part, Row
from ..recipes import recipe
from .setting import (
    BEST,
    CLASSICAL,
    META,
    MODELS,
    SETS,
    accuracies,
    by_set,
    identity,
    regressor,
    summary,
)

QUOTED = {  # table 4 of the paper, which took all but its own from Kirsch et al. (2022)
    "Transducer (quoted from the paper)": (81.83, 69.85, 60.64),
    "VSML (quoted)": (79.04, 68.49, 54.69),
    "GPICL (quoted)": (73.70, 62.24, 53.39),
    "MAML (quoted)": (53.71, 48.44, 36.33),
}
CURVES = (*MODELS, "support-vectors", "kernel-ridge", "nearest-neighbours", *META)


def measure(lab: Lab) -> list[Row]:
    rows = []
    for name in (*MODELS, *META, *CLASSICAL):
        R, tasks = (
            regressor(lab, name),
            lab.scale.tasks if name in MODELS else lab.scale.rival_tasks,
        )
        for data in SETS:
            found = accuracies(lab, name, R, identity(name), data, lab.scale.n, tasks)
            rows.append({"regressor": name, "set": data, "n": lab.scale.n, **summary(found)})
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    quoted = [
        {"regressor": name, **dict(zip(SETS.values(), map(str, values), strict=True))}
        for name, values in QUOTED.items()
    ]
    return by_set(rows) + quoted


def measure_sizes(lab: Lab) -> list[Row]:
    rows, scale = [], lab.scale
    for name in CURVES:
        R = regressor(lab, name)
        for data in SETS:
            for n in scale.sizes:
                tasks = scale.curve_tasks if n <= scale.many_until else scale.few_tasks
                found = accuracies(lab, name, R, identity(name), data, n, tasks)
                rows.append({"regressor": name, "set": data, "n": n, **summary(found)})
    return rows


def table_of_sizes(rows: Sequence[Row]) -> list[Row]:
    lines: dict[tuple[str, str], Row] = {}
    for row in rows:
        line = lines.setdefault(
            (row["set"], row["regressor"]), {"set": SETS[row["set"]], "regressor": row["regressor"]}
        )
        line[f"n = {row['n']}"] = f"{row['mean']:.1f}"
    return sorted(lines.values(), key=lambda line: list(SETS.values()).index(line["set"]))


def draw_sizes(rows: Sequence[Row], folder: Path) -> None:
    figures.accuracy_against_n(
        [row | {"set": SETS[row["set"]]} for row in rows], folder / "sizes", recipe(BEST).training.n
    )


PART = Part("accuracy", "accuracy with 100 examples (table 4)", measure, table)
SIZES_PART = Part(
    "sizes",
    "accuracy against the number of examples",
    measure_sizes,
    table_of_sizes,
    draw_sizes,
    regressors=CURVES,
)
