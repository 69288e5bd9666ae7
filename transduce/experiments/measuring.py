"""What experiments measure alike: errors on operators drawn with seeds ("test", seed, i), each kept
as soon as it is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..evaluation import evaluate, summarise
from ..random_fields import generator_for
from ..settings import Json
from ..types import OperatorFamily, Regressor, Task
from .lab import Lab, Row


@dataclass
class Remembered:
    """A family whose tasks are drawn once, with `most` examples, of which the first n are given."""

    family: OperatorFamily
    most: int
    _tasks: dict[Any, Task] = field(default_factory=dict)

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        key = (m, generator.initial_seed())
        if key not in self._tasks:
            self._tasks[key] = self.family.sample_task(self.most, m, generator)
        task = self._tasks[key]
        return Task(task.examples[:n], task.queries)


# of a model's rows over only those operators that the rivals beside it are fitted to
SAME_FEW = ", same few"


def on_same_few(rows: Sequence[Row]) -> list[Row]:
    """Rows over fewer operators, named so."""
    return [row | {"regressor": row["regressor"] + SAME_FEW} for row in rows]


def on_all(rows: Sequence[Row]) -> list[Row]:
    """The rows that are not `on_same_few`."""
    return [row for row in rows if not row["regressor"].endswith(SAME_FEW)]


def errors(
    lab: Lab,
    name: str,
    R: Regressor,
    of: Json,
    family: OperatorFamily,
    sizes: Sequence[int],
    operators: int,
    **key: Any,
) -> list[Row]:
    """The `summarise`d errors of a regressor at each n. of: its identity; what else identifies the
    measurement is `key`."""
    rows = []
    for operator in range(operators):
        generator = generator_for("test", lab.scale.seed, operator)

        def measure(generator: torch.Generator = generator) -> list[list[Any]]:
            return _packed(evaluate(R, family, sizes, 1, generator, lab.scale.queries))

        drawn = {
            "seed": lab.scale.seed,
            "queries": lab.scale.queries,
            "n": list(sizes),
            "operator": operator,
        }
        rows += [
            {**row, "operator": operator}
            for row in _unpacked(lab.once(measure, regressor=name, identity=of, **key, **drawn))
        ]
    return [{"regressor": name, **row} for row in summarise(rows)]


KEPT = ("n", "query", "relative_mse", "squared_error", "squared_norm", "seconds")


def _packed(rows: Sequence[Row]) -> list[list[Any]]:
    """Rows as columns, numbers with six digits."""
    return [
        [float(f"{row[name]:.6g}") if isinstance(row[name], float) else row[name] for row in rows]
        for name in KEPT
    ]


def _unpacked(columns: Sequence[Sequence[Any]]) -> list[Row]:
    return [dict(zip(KEPT, values, strict=True)) for values in zip(*columns, strict=True)]


def rounded(values: Any) -> Any:
    """Numbers with five digits, as lists."""
    return (
        [float(f"{value:.5g}") for value in values]
        if np.ndim(values) == 1
        else [rounded(row) for row in values]
    )
