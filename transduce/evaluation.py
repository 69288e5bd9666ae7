"""Regressor x family -> tidy rows: the one evaluation loop.

One row for each operator, each n and each query:

    operator, seed, n, query, relative_mse, squared_error, squared_norm, seconds

`seed` draws the operator's task again (for a stored family: the pairs of its operator number
`operator`). `seconds` is the time of the whole regression: conditioning on n examples, and all its
queries. Another metric puts other columns in the place of the three errors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from .metrics import squared_errors, squared_norms
from .storage import StoredFamily
from .types import Array, ExampleSet, OperatorFamily, Regressor, Task, TransduceError

Row = dict[str, Any]

Metric = Callable[[Array, Array], Mapping[str, Sequence[float]]]
"""(u_hat, u) -> the values of each query, by the name of their column."""

SPLIT_BITS = 3 << 30
RESAMPLES = 2000


@runtime_checkable
class Enumerated(Protocol):
    """A family whose tasks are listed, not drawn: the days of a test period, the tasks of a
    benchmark."""

    def tasks(
        self, n: int, m: int, count: int, generator: torch.Generator
    ) -> Iterator[tuple[int, int, Task]]:
        """The number, the seed and the task of `count` operators."""
        ...


def relative_errors(u_hat: Array, u: Array) -> dict[str, list[float]]:
    """The default metric: errors relative to the size of u, and what they are made of."""
    errors, norms = squared_errors(u_hat, u).tolist(), squared_norms(u).tolist()
    relative = [e / norm if norm else math.inf for e, norm in zip(errors, norms, strict=True)]
    return {"relative_mse": relative, "squared_error": errors, "squared_norm": norms}


def evaluate(
    regressor: Regressor,
    family: OperatorFamily | Enumerated,
    n_examples: int | Sequence[int],
    n_operators: int,
    generator: torch.Generator,
    n_queries: int = 50,
    progress: Callable[[], object] | None = None,
    metric: Metric = relative_errors,
) -> list[Row]:
    """Regress operators of a family from n examples each, and compare with the truth.

    Equal generators give equal tasks, whatever the regressor. No operator of a stored family is
    drawn twice.

    Args:
        regressor: what is measured.
        family: the operators; those of an `Enumerated` one come in its own order.
        n_examples: one number of examples, or several. Several are nested: the same operators and
            queries, and the first n of the largest example set.
        n_operators: how many operators.
        generator: draws the tasks.
        n_queries: of each operator.
        progress: called after each operator.
        metric: the columns that compare answers with the truth.

    Returns:
        one row for each operator, each n and each query.

    >>> rows = evaluate(T, family, [10, 50], n_operators=100, generator=generator_for("test", 0))
    >>> summarise(rows)[1]["mean"]
    """
    sizes = [n_examples] if isinstance(n_examples, int) else sorted(n_examples)
    if not sizes or sizes[0] < 1:
        raise TransduceError(
            f"n_examples={n_examples}; expected one number of examples or several, each at least 1."
        )
    rows = []
    for operator, seed, task in draw_tasks(family, sizes[-1], n_queries, n_operators, generator):
        for n in sizes:
            examples = task.examples if len(task.examples) == n else task.examples[:n]
            u_hat, seconds = _timed(regressor, examples, task.queries.v)
            columns = metric(u_hat, task.queries.u)
            for query, values in enumerate(zip(*columns.values(), strict=True)):
                measured = dict(zip(columns, values, strict=True))
                about = {"operator": operator, "seed": seed, "n": n, "query": query}
                rows.append({**about, **measured, "seconds": seconds})
        if progress is not None:
            progress()
    return rows


def draw_tasks(
    family: OperatorFamily | Enumerated,
    n_examples: int,
    n_queries: int,
    n_operators: int,
    generator: torch.Generator,
) -> Iterator[tuple[int, int, Task]]:
    """The number, the seed and the task of each operator that `evaluate` measures."""
    if isinstance(family, Enumerated):
        yield from family.tasks(n_examples, n_queries, n_operators, generator)
        return
    if not isinstance(family, StoredFamily):
        for operator in range(n_operators):
            seed = _seed(generator)
            yield (
                operator,
                seed,
                family.sample_task(n_examples, n_queries, torch.Generator().manual_seed(seed)),
            )
        return
    if n_operators > len(family):
        raise TransduceError(
            f"{n_operators} operators were asked for; {family.path} holds {len(family)}, each "
            "evaluated once at most. "
            f"Ask for at most {len(family)}."
        )
    for operator in torch.randperm(len(family), generator=generator)[:n_operators].tolist():
        seed = _seed(generator)
        yield (
            operator,
            seed,
            family.task_of(operator, n_examples, n_queries, torch.Generator().manual_seed(seed)),
        )


def check_fit(
    regressors: Mapping[str, Regressor],
    family: OperatorFamily,
    n_examples: Sequence[int],
    n_operators: int,
    generator: torch.Generator,
    n_queries: int = 50,
) -> None:
    """Raise, before hours of `evaluate`, if the family cannot give what is asked, or a regressor
    does not fit its functions."""
    _, _, task = next(draw_tasks(family, max(n_examples), n_queries, n_operators, generator))
    for name, regressor in regressors.items():
        try:
            squared_errors(
                regressor.regress(task.examples[: min(n_examples)])(task.queries.v), task.queries.u
            )
        except TransduceError as error:
            raise TransduceError(f"{name}: {error}") from error


def summarise(rows: Sequence[Row]) -> list[Row]:
    """One row for each n: the mean and median of relative_mse over functions, its pooled value, the
    mean of its root (relative_l2), the 95 % interval (low, high) of the mean by resampling
    operators, and the median seconds of a regression."""
    ordered = sorted(rows, key=itemgetter("n", "operator", "query"))
    return [_summary(n, list(group)) for n, group in groupby(ordered, key=itemgetter("n"))]


def _summary(n: int, rows: list[Row]) -> Row:
    errors = np.array([row["relative_mse"] for row in rows])
    by_operator = [list(group) for _, group in groupby(rows, key=itemgetter("operator"))]
    low, high = _interval(
        np.array([np.mean([row["relative_mse"] for row in group]) for group in by_operator])
    )
    return {
        "n": n,
        "mean": float(errors.mean()),
        "low": low,
        "high": high,
        "median": float(np.median(errors)),
        "pooled": sum(row["squared_error"] for row in rows) / norms
        if (norms := sum(row["squared_norm"] for row in rows))
        else math.inf,
        "relative_l2": float(np.sqrt(errors).mean()),
        "seconds": float(np.median([group[0]["seconds"] for group in by_operator])),
        "operators": len(by_operator),
        "functions": len(rows),
    }


def _interval(means: np.ndarray) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean, operators being what was drawn independently."""
    picks = np.random.default_rng(0).integers(len(means), size=(RESAMPLES, len(means)))
    low, high = np.quantile(means[picks].mean(1), [0.025, 0.975])
    return float(low), float(high)


def _seed(generator: torch.Generator) -> int:
    """A seed drawn from `generator` and of its split: see `random_fields.seed_for`."""
    return generator.initial_seed() & SPLIT_BITS | int(
        torch.randint(1 << 30, (), generator=generator)
    )


def _timed(regressor: Regressor, examples: ExampleSet, v: Array) -> tuple[Array, float]:
    """The predictions at v, and the seconds that conditioning and querying took."""
    start = time.perf_counter()
    u_hat = regressor.regress(examples)(v)
    return u_hat, time.perf_counter() - start
