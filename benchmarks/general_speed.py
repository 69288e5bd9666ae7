"""How long the general model takes, and how much memory:  python -m benchmarks.general_speed

Everything is measured on one thread, through `transduce.regress`, on curves of 100 points:

    v(x) = sum_k a_k sin(pi k x),  k = 1..40,  a_k normal with standard deviation k^-3/2
    u(x) = the integral of v^2 from 0 to x, plus 0.1 v(x)

and on 100 runs of 4 parameters whose outputs are curves of 1,000 points.

`seconds` are processor time, which on one thread equals clock time on an idle machine. They are
medians, after one call that is not timed. Up to n = 100 the general model, tuned kernel ridge (the
baseline "rbf") and a Gaussian process take turns. `ratio` is to kernel ridge on the same n, `power`
is p in seconds ~ n^p since the size before. Writes results/benchmarks/general.json."""

from __future__ import annotations

import math
import multiprocessing
import resource
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from jaxtyping import Float
from threadpoolctl import threadpool_limits

import transduce
from paper.timing import medians, timed
from transduce.files import provenance
from transduce.regression import RegressedOperator
from transduce.report import markdown_table, write_rows

BASELINES = {"kernel ridge": "rbf", "Gaussian process": "gaussian-process"}
POINTS, SINES, QUERIES, SEED = 100, 40, 50, 0
# What is required of the general model, by n.
CONDITIONING = {20: "<= 60 ms", 100: "<= 150 ms", 1000: "<= 3 s"}
STUDY, STUDY_RUNS, STUDY_POINTS = "<= 0.3 s", 100, 1000
QUERY, GROWTH, PEAK = "<= 1 ms", "power <= 1", "<= 4 GiB"


@dataclass(frozen=True)
class Sizes:
    """How much to measure.

    compared: n at which baselines are measured too.
    large: n at which the general model is measured alone, and the growth with n.
    repeats: of each measurement; `few`: of those on large n.
    """

    repeats: int
    compared: tuple[int, ...] = (20, 100)
    large: tuple[int, ...] = (1000, 2000, 5000)

    @property
    def few(self) -> int:
        return max(1, self.repeats // 4)


QUICK = Sizes(repeats=1, compared=(10, 20), large=(30, 40, 60))


@dataclass(frozen=True)
class Line:
    """One line of the table; the module's docstring says what the numbers are."""

    what: str
    n: int
    seconds: float
    ratio: float | None = None
    power: float | None = None
    asked: str = ""
    peak_mib: float | None = None


@dataclass(frozen=True)
class Curves:
    """Pairs of curves on the positions x. The last 50 are the queries."""

    x: Float[np.ndarray, " points"]
    v: Float[np.ndarray, "count points"]
    u: Float[np.ndarray, "count points"]

    @classmethod
    def sample(cls, count: int) -> Curves:
        """`count` pairs and the queries."""
        x, k = np.linspace(0, 1, POINTS), np.arange(1, SINES + 1)
        a = np.random.default_rng(SEED).normal(size=(count + QUERIES, SINES)) * k**-1.5
        v = a @ np.sin(np.pi * np.outer(k, x))
        return cls(x, v, np.cumsum(v**2, axis=1) / POINTS + 0.1 * v)

    @property
    def queries(self) -> Float[np.ndarray, "queries points"]:
        return self.v[-QUERIES:]

    def regress(self, n: int, model: str) -> RegressedOperator:
        """The operator of the first n pairs."""
        return transduce.regress(self.v[:n], self.u[:n], x=self.x, model=model)


def compared(what: str, n: int, seconds: Sequence[float], asked: str) -> list[Line]:
    """Lines of the general model and of each baseline, from their seconds in this order."""
    ours, ridge, *_ = seconds
    return [
        Line(what, n, ours, ours / ridge, asked=asked),
        *(
            Line(f"{what}, {name}", n, theirs, theirs / ridge)
            for name, theirs in zip(BASELINES, seconds[1:], strict=True)
        ),
    ]


def conditioning(curves: Curves, model: str, sizes: Sizes) -> list[Line]:
    """`regress` on n pairs."""
    lines = []
    for n in sizes.compared:
        works = [partial(curves.regress, n, name) for name in (model, *BASELINES.values())]
        seconds = medians(*works, repeats=sizes.repeats)
        lines += compared("conditioning", n, seconds, CONDITIONING.get(n, ""))
    works = [partial(curves.regress, n, model) for n in sizes.large]
    seconds, before = medians(*works, repeats=sizes.few), (0, 0.0)
    for n, taken in zip(sizes.large, seconds, strict=True):
        power = math.log(taken / before[1]) / math.log(n / before[0]) if before[0] else None
        asked = GROWTH if n == sizes.large[-1] else CONDITIONING.get(n, "")
        lines.append(Line("conditioning", n, taken, power=power, asked=asked))
        before = (n, taken)
    return lines


def studying(model: str, sizes: Sizes) -> Line:
    """`regress` on runs of 4 parameters."""
    p = np.random.default_rng(SEED).uniform(size=(STUDY_RUNS, 4))
    a, b, c, d = p.T[..., None]
    x = np.linspace(0, 1, STUDY_POINTS)
    u = np.sin(6 * x * (1 + a) + 3 * b) * np.exp(-(a + b + c + d) * x / 4)
    (seconds,) = medians(
        partial(transduce.regress, None, u, parameters=p, model=model), repeats=sizes.repeats
    )
    what = f"conditioning, 4 parameters to {STUDY_POINTS} points"
    return Line(what, STUDY_RUNS, seconds, asked=STUDY)


def answering(curves: Curves, model: str, sizes: Sizes) -> list[Line]:
    """A query among 50 that are asked together, after conditioning on n pairs."""
    what, lines = f"each of {QUERIES} queries", []

    def each(n: int, *models: str) -> list[float]:
        works = [partial(curves.regress(n, name), curves.queries) for name in models]
        return [seconds / QUERIES for seconds in medians(*works, repeats=sizes.repeats)]

    for n in sizes.compared:
        lines += compared(what, n, each(n, model, *BASELINES.values()), QUERY)
    n = sizes.large[0]
    (seconds,) = each(n, model)
    return [*lines, Line(what, n, seconds, asked=QUERY)]


def memory(model: str, n: int) -> Line:
    """Conditioning and 50 queries in a process of its own, with its peak memory."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds, peak = pool.apply(_regress_alone, (model, n))
    what = f"conditioning and {QUERIES} queries, own process"
    return Line(what, n, seconds, asked=PEAK, peak_mib=peak / 2**20)


def _regress_alone(model: str, n: int) -> tuple[float, int]:
    """Seconds of the first regression of this process, weights read included, and the most bytes
    that the process has held, libraries included."""
    torch.set_num_threads(1)
    curves = Curves.sample(n)
    with threadpool_limits(1):
        _, seconds = timed(lambda: curves.regress(n, model)(curves.queries))
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke test: every measurement, once, on few pairs.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Of each; of large n a quarter.")] = 11,
    model: Annotated[
        str, typer.Option(help="A name, or a .safetensors file: read, and timed, every time.")
    ] = "general",
    out: Annotated[Path, typer.Option(help="The folder for general.json.")] = Path(
        "results/benchmarks"
    ),
) -> None:
    """Measure everything, print the table, write the rows."""
    sizes = QUICK if quick else Sizes(repeats)
    torch.set_num_threads(1)
    peak = memory(model, sizes.large[-1])  # first: a child's peak starts from this process
    curves = Curves.sample(sizes.large[-1])
    with threadpool_limits(1):
        lines = [*conditioning(curves, model, sizes), *answering(curves, model, sizes)]
        lines += [studying(model, sizes), peak]
    rows = [asdict(line) for line in lines]
    print(markdown_table(rows))
    command = " ".join(["python -m benchmarks.general_speed", *sys.argv[1:]])
    about = {"command": command, "seed": SEED, "model": model, "points": POINTS}
    write_rows(out / "general.json", rows, **about, **provenance())


if __name__ == "__main__":
    typer.run(main)
