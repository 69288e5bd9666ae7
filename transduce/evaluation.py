"""Regressor x family -> tidy rows.

One row for each operator, each n and each query:

    operator, seed, n, query, relative_mse, squared_error, squared_norm, seconds

where `seed` draws the operator's task again (of a stored family: the pairs of its operator number
`operator`), and `seconds` is the time of the whole regression: conditioning on n examples, and all
its queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import torch

from .metrics import squared_errors, squared_norms
from .storage import StoredFamily
from .types import Array, ExampleSet, OperatorFamily, Regressor, Task, TransduceError

Row = dict[str, Any]

SPLIT_BITS = 3 << 30
RESAMPLES = 2000


def evaluate(
    regressor: Regressor,
    family: OperatorFamily,
    n_examples: int | Sequence[int],
    n_operators: int,
    generator: torch.Generator,
    n_queries: int = 50,
    progress: Callable[[], object] | None = None,
) -> list[Row]:
    """Regress `n_operators` operators of the family from n examples each, and compare with the
    truth at `n_queries` queries.

    Several n are nested: the same operators and queries, and the first n of the largest example
    set. Equal generators give equal tasks, whatever the regressor. No operator of a stored family
    is drawn twice. progress: called after each operator.

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
            u_hat, seconds = _timed(regressor, task.examples[:n], task.queries.v)
            errors, norms = (
                squared_errors(u_hat, task.queries.u).tolist(),
                squared_norms(task.queries.u).tolist(),
            )
            for query, (error, norm) in enumerate(zip(errors, norms, strict=True)):
                rows.append(
                    {
                        "operator": operator,
                        "seed": seed,
                        "n": n,
                        "query": query,
                        "relative_mse": error / norm if norm else math.inf,
                        "squared_error": error,
                        "squared_norm": norm,
                        "seconds": seconds,
                    }
                )
        if progress is not None:
            progress()
    return rows


def draw_tasks(
    family: OperatorFamily,
    n_examples: int,
    n_queries: int,
    n_operators: int,
    generator: torch.Generator,
) -> Iterator[tuple[int, int, Task]]:
    """The number, the seed and the task of each operator that `evaluate` draws."""
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
