"""Table 1: error, time and floating point operations of a regression at n = 50. Times are of one
thread, in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from transduce.families import AdvectionDiffusionReaction
from transduce.random_fields import generator_for, one_thread
from transduce.types import Array, Operator, Regressor, Task

from .. import figures
from ..lab import Lab, Part, Row
from ..measuring import Remembered
from ..timing import medians, operations, timed
from .setting import FITTED, MODELS, REGRESSORS, identities, regressor
from .sizes import errors_of


def costs(lab: Lab, names: Sequence[str], task: Task) -> dict[str, Row]:
    """Seconds of conditioning (fitting), and of that with all queries; the operations of both
    together.

    What answers at once is timed in turns, the medians being kept; what is fitted, once.
    """
    with one_thread(), threadpool_limits(1):
        baselines = {name: regressor(lab, name) for name in names}
        instant = [name for name in names if name not in FITTED]
        works = [
            partial(work, baselines[name], task) for name in instant for work in (condition, answer)
        ]
        times = medians(*works, repeats=lab.scale.repeats)
        found: dict[str, Row] = {}
        for name, alone, whole in zip(instant, times[::2], times[1::2], strict=True):
            found[name] = {"conditioning": alone, "seconds": whole}
        for name in names:
            if name in FITTED:
                fitted, fit = timed(partial(condition, baselines[name], task))
                found[name] = {
                    "conditioning": fit,
                    "seconds": fit + timed(partial(fitted, task.queries.v))[1],
                }
            found[name]["flops"] = operations(partial(answer, baselines[name], task))
    return found


def condition(R: Regressor, task: Task) -> Operator:
    return R.regress(task.examples)


def answer(R: Regressor, task: Task) -> Array:
    return R.regress(task.examples)(task.queries.v)


def measure(lab: Lab) -> list[Row]:
    n, scale = lab.scale.table_n, lab.scale
    family = Remembered(AdvectionDiffusionReaction(), scale.sizes[-1])
    task = family.sample_task(n, scale.queries, generator_for("test", scale.seed, 0))
    key = {
        "costs": n,
        "identity": identities(),
        "seed": scale.seed,
        "queries": scale.queries,
        "repeats": scale.repeats,
    }
    cost = lab.once(lambda: costs(lab, REGRESSORS, task), **key)
    rows, earlier = [], replace(lab, part="sizes")
    for name in REGRESSORS:
        sizes = (n,) if name in FITTED else scale.sizes
        operators = scale.fitted if name in FITTED else scale.operators
        (row,) = (
            row for row in errors_of(earlier, name, family, sizes, operators) if row["n"] == n
        )
        (few,) = (
            row for row in errors_of(earlier, name, family, sizes, scale.fitted) if row["n"] == n
        )
        ratios = {"times_ours": cost[name]["conditioning"] / cost[MODELS[0]]["conditioning"]}
        rows.append({**row, "mean_of_fitted": few["mean"], **cost[name], **ratios})
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "regressor": row["regressor"],
            "mean": row["mean"],
            "median": row["median"],
            "pooled": row["pooled"],
            "relative L2": row["relative_l2"],
            "operators": row["operators"],
            "mean, same few": row["mean_of_fitted"],
            "seconds": row["seconds"],
            "conditioning, times ours": row["times_ours"],
            "GFLOP": "" if row["flops"] is None else row["flops"] / 1e9,
        }
        for row in rows
    ]


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.accuracy_against_time(rows, folder / "costs")


PART = Part("costs", "error, time and operations at n = 50 (table 1)", measure, table, draw)
