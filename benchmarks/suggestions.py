"""Which run next: `O.suggest` compared with the largest predicted variance and with random choice:
python -m benchmarks.suggestions

    runs needed = the least number of runs whose error is that of 50, 100 or 200 random runs

The test functions and the error are those of benchmarks/studies.py. Each strategy starts from the
same 10 random runs and then chooses about a quarter more at a time among 1,000 random candidates;
200 other runs measure the error. Errors are geometric means over repetitions, and between two sizes
the logarithm of the error is linear. "largest variance" runs the candidate whose answer is most
uncertain, and counts it as made before it chooses the next one. Required: the median over functions
of the runs needed by `O.suggest` is at most 0.75 of those of random choice, at the last size.

Every measurement is kept in runs/suggestions as soon as it is known: a run that was killed resumes.
Writes suggestions.json, suggestions.md and the figure to results/studies."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from jaxtyping import Int
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

import transduce
from benchmarks.studies import HELD_OUT
from benchmarks.study_functions import Study, Table
from benchmarks.study_measuring import RESULTS, chosen, folder, kept, say, write
from benchmarks.wild_measuring import code_checksum
from benchmarks.wild_sets import geometric_mean, relative_error
from paper.lab import Ledger
from transduce.figures import COLOURS, drawing
from transduce.files import provenance
from transduce.inputs import read_query
from transduce.regression import RegressedOperator
from transduce.report import Row

SIZES = (10, 13, 16, 20, 25, 32, 40, 50, 62, 75, 87, 100, 125, 150, 175, 200)  # runs
CANDIDATES, REPETITIONS, SEED = 1000, 4, 2027
HORIZONS = (50, 100, 200)  # runs of random choice
QUICK_SIZES = SIZES[:3]
SUGGEST, VARIANCE, RANDOM = "suggest", "largest variance", "random"
REQUIRED = 0.75  # of the runs of random choice
WORK = Path("runs/suggestions")
Numbers = Int[np.ndarray, " k"]


def by_suggestion(O: RegressedOperator, candidates: Table, k: int) -> Numbers:
    """The rows that reduce the expected error most."""
    return O.suggest(candidates, k=k)


def by_variance(O: RegressedOperator, candidates: Table, k: int) -> Numbers:
    """The rows of largest predicted variance, each counted as known before the next one."""
    posteriors, vectors = O.engine.unknown(read_query(O.pairs, candidates))
    c = sum(weight * p.covariances(vectors, vectors) for weight, p in posteriors)
    assert isinstance(c, torch.Tensor)
    found: list[int] = []
    for _ in range(k):
        own = c.diagonal().clone()
        own[found] = -1.0
        best = int(own.argmax())
        c = c - c[:, best, None] * c[best] / own[best].clamp(min=1e-300)
        found.append(best)
    return np.array(found)


def at_random(O: RegressedOperator, candidates: Table, k: int) -> Numbers:
    """The first rows: candidates have no order."""
    return np.arange(k)


STRATEGIES: dict[str, Callable[[RegressedOperator, Table, int], Numbers]] = {
    SUGGEST: by_suggestion,
    VARIANCE: by_variance,
    RANDOM: at_random,
}


def errors(strategy: str, study: Study, repetition: int, sizes: Sequence[int]) -> list[float]:
    """The error at each size."""
    generator, start = np.random.default_rng([SEED, repetition]), sizes[0]
    p, u = study.sample(start + CANDIDATES + HELD_OUT, generator)
    own, open_ = list(range(start)), list(range(start, start + CANDIDATES))
    held, found = slice(start + CANDIDATES, None), list[float]()
    for n, following in pairwise((*sizes, None)):
        with warnings.catch_warnings(action="ignore"):
            O = transduce.regress(None, u[own], parameters=p[own])
            found.append(relative_error(np.asarray(O(p[held])), u[held], u[own]))
            if following is not None:
                rows = STRATEGIES[strategy](O, p[open_], following - n)
        if following is not None:
            own += [open_[i] for i in rows]
            open_ = np.delete(open_, rows).tolist()
    return found


def measure_all(
    studies: Sequence[Study], repetitions: int, sizes: Sequence[int], work: Path
) -> list[Row]:
    """A row for each study, strategy and number of runs."""
    ledger, rows = Ledger(work / "measured.jsonl"), []
    for study in studies:
        for strategy in STRATEGIES:
            curves = []
            for repetition in range(repetitions):
                key: Row = {"study": study.name, "strategy": strategy, "repetition": repetition}
                key |= {"sizes": list(sizes), "code": code_checksum("")}
                own = partial(errors, strategy, study, repetition, sizes)
                curves.append(kept(ledger, key, own))
            means = [geometric_mean(column) for column in zip(*curves, strict=True)]
            say(f"{study.name}, {strategy}: {means[-1]:.2e}")
            rows += [
                {"study": study.name, "strategy": strategy, "runs": n, "error": error}
                for n, error in zip(sizes, means, strict=True)
            ]
    return rows


def runs_needed(runs: Sequence[int], curve: Sequence[float], target: float) -> float:
    """The least number of runs of this error, or infinity; log error is linear between sizes."""
    logs, goal = np.log(curve), np.log(target)
    for i, value in enumerate(logs):
        if value <= goal:
            if i == 0:
                return float(runs[0])
            share = (logs[i - 1] - goal) / (logs[i - 1] - value)
            return float(runs[i - 1] + share * (runs[i] - runs[i - 1]))
    return float("inf")


def table(rows: Sequence[Row]) -> list[Row]:
    """Runs needed in units of those of random choice: a row for each study, and the medians."""
    horizons = [n for n in HORIZONS if any(row["runs"] == n for row in rows)] or [rows[-1]["runs"]]
    curves: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        curves.setdefault((row["study"], row["strategy"]), []).append(row)
    lines: list[Row] = []
    for study in dict.fromkeys(row["study"] for row in rows):
        line: Row = {"study": study}
        for n in horizons:
            (goal,) = (row["error"] for row in curves[study, RANDOM] if row["runs"] == n)
            line[f"error, {n} random"] = goal
            for strategy in (SUGGEST, VARIANCE):
                curve = curves[study, strategy]
                runs, errors = ([row[key] for row in curve] for key in ("runs", "error"))
                line[f"{strategy} / {n}"] = runs_needed(runs, errors, goal) / n
        lines.append(line)
    medians = {
        key: "" if key.startswith("error") else float(np.median([line[key] for line in lines]))
        for key in lines[0]
        if key != "study"
    }
    return [*lines, {"study": "median"} | medians]


def draw(rows: Sequence[Row], path: Path) -> None:
    """The error of each strategy against the number of runs, for each study."""
    studies = list(dict.fromkeys(row["study"] for row in rows))
    with drawing(path, (7.2, 3.8)) as figure:
        panels = figure.subplots(2, -(-len(studies) // 2), sharex=True, squeeze=False).flat
        for axes, study in zip(panels, studies, strict=False):
            for strategy, colour in zip(STRATEGIES, COLOURS, strict=False):
                own = [r for r in rows if r["study"] == study and r["strategy"] == strategy]
                axes.semilogy(
                    [r["runs"] for r in own],
                    [r["error"] for r in own],
                    color=colour,
                    label=strategy,
                )
            axes.set_title(study, fontsize=8)
            axes.tick_params(labelsize=7)
            low, high = axes.get_ylim()
            within = (1.0, 3.0) if high < 1e4 * low else (1.0,)  # labels that do not overlap
            axes.yaxis.set_major_locator(LogLocator(subs=within, numticks=12))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
        figure.supxlabel("runs", fontsize=9)
        figure.supylabel("error", fontsize=9)
        figure.axes[-1].legend(fontsize=7, loc="upper right")


def main(
    only: Annotated[str, typer.Option(help="Names of studies, with commas.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test: few and small.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = RESULTS,
    work: Annotated[Path, typer.Option(help="The folder of kept measurements.")] = WORK,
) -> None:
    """Measure, print the table, and write rows, table and figure."""
    origin = provenance()  # of the code that measures, whatever is committed meanwhile
    studies, repetitions, sizes = chosen(only), REPETITIONS, SIZES
    if quick:
        studies, repetitions, sizes = studies[:2], 1, QUICK_SIZES
    rows = measure_all(studies, repetitions, sizes, work)
    write(
        "suggestions",
        folder(out, quick),
        rows,
        table(rows),
        draw,
        command=" ".join(["python -m benchmarks.suggestions", *sys.argv[1:]]),
        seed=SEED,
        required={f"median, {SUGGEST} / {HORIZONS[-1]}": REQUIRED},
        **origin,
    )


if __name__ == "__main__":
    typer.run(main)
