"""What experiments measure alike, through `evaluate`, each value kept as soon as it is measured.

`errors`: on operators drawn with seeds ("test", seed, i). `one_by_one`: a metric of tasks that have
numbers, such as the days of a test period."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from transduce.evaluation import Metric, evaluate, summarise
from transduce.random_fields import generator_for
from transduce.settings import Json
from transduce.types import OperatorFamily, Regressor, Task

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


# Suffix of a model's rows over only those operators that the baselines are fitted to.
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
            return _packed(evaluate(R, family, sizes, 1, generator, n_queries=lab.scale.queries))

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


@dataclass(frozen=True)
class Numbered:
    """Tasks by number, as a family that `evaluate` takes in order.

    Attributes:
        task_of: (n, m, number) -> the task of this number.
        numbers: the numbers of its tasks.
    """

    task_of: Callable[[int, int, int], Task]
    numbers: Sequence[int]

    def tasks(
        self, n: int, m: int, count: int, generator: torch.Generator
    ) -> Iterator[tuple[int, int, Task]]:
        for number in self.numbers[:count]:
            yield number, generator.initial_seed(), self.task_of(n, m, number)


def one_by_one(
    lab: Lab,
    R: Callable[[], Regressor],
    family: Numbered,
    metric: Metric,
    *,
    n: int,
    m: int = 1,
    digits: int = 6,
    chunk: int = 50,
    **key: Any,
) -> list[float]:
    """The mean of a metric over the queries of each numbered task, kept every `chunk` tasks.

    Args:
        lab: keeps what is measured.
        R: makes the regressor, if anything is left to measure.
        family: the tasks.
        metric: of one column.
        n: examples of each task.
        m: queries of each task.
        digits: decimals that are kept.
        chunk: tasks between two lines of the ledger.
        key: what identifies the measurement.
    """
    found: list[float] = []
    for first in range(0, len(family.numbers), chunk):
        numbers = [int(number) for number in family.numbers[first : first + chunk]]

        def measure(numbers: list[int] = numbers) -> list[float]:
            generator = generator_for("test", lab.scale.seed)
            few = Numbered(family.task_of, numbers)
            made = R()  # which may train it
            with torch.no_grad():
                rows = evaluate(made, few, n, len(numbers), generator, n_queries=m, metric=metric)
            values: dict[int, list[float]] = {}
            for row in rows:
                values.setdefault(row["operator"], []).append(_only(row))
            return [round(float(np.mean(values[number])), digits) for number in numbers]

        where = {"n": n, "queries": m, "tasks": [numbers[0], numbers[-1], len(numbers)]}
        found += lab.once(measure, **key, **where)
    return found


def _only(row: Row) -> float:
    """The value of the one column that a metric gave."""
    (value,) = (
        row[name] for name in row if name not in ("operator", "seed", "n", "query", "seconds")
    )
    return value


def rounded(values: Any) -> Any:
    """Numbers with five digits, as lists."""
    return (
        [float(f"{value:.5g}") for value in values]
        if np.ndim(values) == 1
        else [rounded(row) for row in values]
    )
