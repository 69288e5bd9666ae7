"""What share of the values bands of 90 % hold, on unseen operators, and at what width: the model's
own, bootstrap and conformal ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from transduce.bands import interval_score
from transduce.random_fields import generator_for
from transduce.transducer import Transducer
from transduce.types import ExampleSet, Task
from transduce.uncertainty import bootstrap, conformal

from ..lab import Lab, Part, Row
from .setting import AMPLITUDES, BEST, TIMES, family_of, identity

LEVEL = 0.9


def own(T: Transducer, examples: ExampleSet, v: Any, level: float) -> tuple[Any, Any, Any]:
    return T.regress(examples).predict(v, level)


BANDS: dict[str, Callable[..., tuple[Any, Any, Any]]] = {
    "predict": own,
    "bootstrap": bootstrap,
    "conformal": conformal,
}


def covered(bands: Callable[..., tuple[Any, Any, Any]], T: Transducer, task: Task) -> list[float]:
    """The share of values inside, and the mean interval score and width relative to the values'
    root mean square."""
    _, low, high = bands(T, task.examples, task.queries.v, LEVEL)
    u = task.queries.u
    size, half = u.square().mean().sqrt(), (high - low) / 2
    score = interval_score(u - (low + high) / 2, half, LEVEL).mean() / size
    return [
        float(value)
        for value in (((low <= u) & (u <= high)).double().mean(), score, 2 * half.mean() / size)
    ]


def measure(lab: Lab) -> list[Row]:
    T, rows, scale = Transducer.from_pretrained(BEST), [], lab.scale
    for amplitude in AMPLITUDES:
        tasks: dict[int, Task] = {}

        def task(
            operator: int, n: int, amplitude: float = amplitude, tasks: dict[int, Task] = tasks
        ) -> Task:
            if operator not in tasks:
                generator = generator_for("test", scale.seed, 4000 + operator)
                tasks[operator] = family_of(amplitude, TIMES[-1]).sample_task(
                    scale.band_sizes[-1], scale.queries, generator
                )
            return Task(tasks[operator].examples[:n], tasks[operator].queries)

        for n in scale.band_sizes:
            for name, bands in BANDS.items():
                key = {
                    "bands": name,
                    "amplitude": amplitude,
                    "n": n,
                    "identity": identity(BEST),
                    "seed": scale.seed,
                }
                found = [
                    lab.once(lambda o=o, n=n, b=bands: covered(b, T, task(o, n)), operator=o, **key)  # type: ignore[misc]
                    for o in range(scale.band_operators)
                ]
                rows.append({"amplitude": amplitude, "n": n, "bands": name, **summary(found)})
    return rows


def summary(found: Sequence[Sequence[float]]) -> Row:
    """Means over operators of what `covered` gives, and the coverage that one operator in ten is
    below, and one above."""
    coverage, score, width = np.array(found).T
    low, high = np.quantile(coverage, [0.1, 0.9])
    means = {
        "coverage": coverage.mean(),
        "operators_low": low,
        "operators_high": high,
        "score": score.mean(),
        "width": width.mean(),
    }
    return {name: float(value) for name, value in means.items()} | {"operators": len(found)}


def table(rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "amplitude": row["amplitude"],
            "n": row["n"],
            "bands": row["bands"],
            "coverage": row["coverage"],
            "of 8 in 10 operators": f"{row['operators_low']:.2f} to {row['operators_high']:.2f}",
            "interval score": row["score"],
            "width": row["width"],
        }
        for row in rows
    ]


PART = Part("bands", "what bands of 90 % hold", measure, table, regressors=(BEST,))
