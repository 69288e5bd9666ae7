"""Regressor x family -> tidy rows.

One row for each operator, each n and each query:

    operator, seed, n, query, relative_mse, squared_error, squared_norm, seconds

where `seed` draws the operator's task again, and `seconds` is the time of the whole regression: conditioning on n examples, and
all its queries.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import torch

from .metrics import squared_errors, squared_norms
from .types import Array, ExampleSet, OperatorFamily, Regressor, TransduceError

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
) -> list[Row]:
    """Regress `n_operators` operators of the family from n examples each, and compare with the truth at `n_queries` queries.

    Several n are nested: the same operators and queries, and the first n of the largest example set. Equal generators give
    equal tasks, whatever the regressor.

    >>> rows = evaluate(T, family, [10, 50], n_operators=100, generator=generator_for("test", 0))
    >>> summarise(rows)[1]["mean"]
    """
    sizes = [n_examples] if isinstance(n_examples, int) else sorted(n_examples)
    if not sizes or sizes[0] < 1:
        raise TransduceError(f"n_examples={n_examples}; expected one number of examples or several, each at least 1.")
    rows = []
    for operator, seed in enumerate(_seeds(n_operators, generator)):
        task = family.sample_task(sizes[-1], n_queries, torch.Generator().manual_seed(seed))
        for n in sizes:
            u_hat, seconds = _timed(regressor, task.examples[:n], task.queries.v)
            errors, norms = squared_errors(u_hat, task.queries.u).tolist(), squared_norms(task.queries.u).tolist()
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
    return rows


def summarise(rows: Sequence[Row]) -> list[Row]:
    """One row for each n: the mean and median of relative_mse over functions, its pooled value, the 95 % interval (low, high) of
    the mean by resampling operators, and the median seconds of a regression.
    """
    ordered = sorted(rows, key=itemgetter("n", "operator", "query"))
    return [_summary(n, list(group)) for n, group in groupby(ordered, key=itemgetter("n"))]


def _summary(n: int, rows: list[Row]) -> Row:
    errors = np.array([row["relative_mse"] for row in rows])
    by_operator = [list(group) for _, group in groupby(rows, key=itemgetter("operator"))]
    low, high = _interval(np.array([np.mean([row["relative_mse"] for row in group]) for group in by_operator]))
    return {
        "n": n,
        "mean": float(errors.mean()),
        "low": low,
        "high": high,
        "median": float(np.median(errors)),
        "pooled": sum(row["squared_error"] for row in rows) / sum(row["squared_norm"] for row in rows),
        "seconds": float(np.median([group[0]["seconds"] for group in by_operator])),
        "operators": len(by_operator),
        "functions": len(rows),
    }


def _interval(means: np.ndarray) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean, operators being what was drawn independently."""
    picks = np.random.default_rng(0).integers(len(means), size=(RESAMPLES, len(means)))
    low, high = np.quantile(means[picks].mean(1), [0.025, 0.975])
    return float(low), float(high)


def _seeds(count: int, generator: torch.Generator) -> Iterator[int]:
    """A seed for each operator, drawn from `generator` and of its split: see `random_fields.seed_for`."""
    split = generator.initial_seed() & SPLIT_BITS
    for _ in range(count):
        yield split | int(torch.randint(1 << 30, (), generator=generator))


def _timed(regressor: Regressor, examples: ExampleSet, v: Array) -> tuple[Array, float]:
    """The predictions at v, and the seconds that conditioning and querying took."""
    start = time.perf_counter()
    u_hat = regressor.regress(examples)(v)
    return u_hat, time.perf_counter() - start
