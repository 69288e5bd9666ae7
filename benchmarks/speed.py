"""How long a regression takes, ours beside the rivals in one run, on one thread:  python -m
benchmarks.speed

Times are processor time of the one thread, which is what a clock shows on an idle machine and holds
still on a busy one. What is compared is timed in turns, and the medians are shown. The table goes
to the terminal and, with everything needed to repeat it, to results/benchmarks/speed.json."""

from __future__ import annotations

import math
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from threadpoolctl import threadpool_limits
from torch.utils._python_dispatch import TorchDispatchMode

from paper.timing import medians
from transduce import report
from transduce.baselines import Fno, KernelRidge
from transduce.baselines.fno import TUNED
from transduce.families import AdvectionDiffusionReaction
from transduce.files import provenance
from transduce.metatraining import Episode, stack
from transduce.metrics import relative_mse
from transduce.optimisers import make_optimisers
from transduce.random_fields import gaussian_field, generator_for
from transduce.transducer import Transducer
from transduce.types import ExampleSet, Operator, Task

MODELS = ("adr", "adr-softmax")
aten = torch.ops.aten


@dataclass(frozen=True)
class Sizes:
    """How much to time."""

    repeats: int = 31
    n: tuple[int, ...] = (10, 50, 200, 1000, 2500, 5000)
    updated: int = 1000
    queries: tuple[int, ...] = (10, 100, 1000, 10_000)
    conditioned: int = 1000
    sampled: int = 50
    epochs: int = 200

    @property
    def few(self) -> int:
        """Repeats of what takes long."""
        return max(1, self.repeats // 10)


QUICK = Sizes(
    repeats=2, n=(10, 40), updated=20, queries=(5, 50), conditioned=20, sampled=2, epochs=1
)


@dataclass(frozen=True)
class Line:
    """One line of the table. Times are in seconds; ratio: as `asked` says."""

    model: str
    what: str
    ours: float
    beside: str = ""
    theirs: float | None = None
    ratio: float | None = None
    asked: str = ""
    peak_mib: float | None = None

    def shown(self) -> dict[str, str]:
        """As the terminal shows it."""
        times = {
            "ours": in_units(self.ours),
            "beside": self.beside,
            "theirs": "" if self.theirs is None else in_units(self.theirs),
        }
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return {
            "model": self.model,
            "what": self.what,
            **times,
            "ratio": ratio,
            "asked": self.asked,
            "peak": "" if self.peak_mib is None else f"{self.peak_mib:.0f} MiB",
        }


def in_units(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def power(sizes: Sequence[int], times: Sequence[float]) -> float:
    """p in times ~ sizes^p, between the last two."""
    return math.log(times[-1] / times[-2]) / math.log(sizes[-1] / sizes[-2])


class Algebra(TorchDispatchMode):
    """Records every matrix product, attention being two for each head, and every factorisation."""

    def __init__(self) -> None:
        super().__init__()
        self.factors: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.factorisations: list[Callable[[], Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (aten.mm.default, aten.bmm.default):
            self.factors.append(args[:2])
        elif func is aten.addmm.default:
            self.factors.append(args[1:3])
        elif func is aten._scaled_dot_product_flash_attention_for_cpu.default:
            query, key, value = (x.flatten(0, 1).contiguous() for x in args[:3])
            self.factors += [(query, key.mT), (torch.rand(*query.shape[:2], key.shape[1]), value)]
        elif func in (aten.linalg_cholesky_ex.default, aten.linalg_solve_triangular.default):
            self.factorisations.append(partial(func, *args, **(kwargs or {})))
        return func(*args, **(kwargs or {}))


def algebra_of(work: Callable[[], Any]) -> Callable[[], None]:
    """The matrix products and factorisations that `work` makes, and nothing else."""
    with Algebra() as recorded:
        work()
    factors = [(a.detach(), b.detach()) for a, b in recorded.factors]
    products = [
        partial(torch.mm if a.ndim == 2 else torch.bmm, a, b, out=a @ b) for a, b in factors
    ]

    def run() -> None:
        for part in (*products, *recorded.factorisations):
            part()

    return run


def whole_regression(name: str, T: Transducer, task: Task, sizes: Sizes) -> list[Line]:
    """n = 50 and 50 queries, beside its own matrix products and factorisations; and a query once
    conditioned."""
    examples, v = task.examples[:50], task.queries.v[:50]

    def regress() -> Any:
        return T.regress(examples)(v)

    O = T.regress(examples)
    whole, products, conditioned = medians(
        regress, algebra_of(regress), lambda: O(v), repeats=sizes.repeats
    )
    return [
        Line(
            name,
            "regression, n = 50, 50 queries",
            whole,
            "its products and factorisations",
            products,
            whole / products,
            "<= 3",
        ),
        Line(name, "each query, once conditioned on n = 50", conditioned / 50),
    ]


def conditioning_once(name: str, T: Transducer, task: Task, sizes: Sizes) -> list[Line]:
    """1,000 queries to one conditioned operator, beside as many regressions of one query each."""
    examples, count = task.examples[:100], sizes.conditioned
    v = task.queries.v[:1].repeat(count, 1)
    O = T.regress(examples)

    def one_by_one() -> None:
        for query in v[: sizes.sampled].split(1):
            T.regress(examples)(query)

    ours, sampled = medians(lambda: O(v), one_by_one, repeats=sizes.few)
    theirs = sampled * count / sizes.sampled
    what = f"{count} queries, once conditioned on n = 100"
    return [
        Line(
            name,
            what,
            ours,
            f"{count} regressions of one query each",
            theirs,
            theirs / ours,
            ">= 10",
        )
    ]


def updating(
    name: str, T: Transducer, family: AdvectionDiffusionReaction, sizes: Sizes
) -> list[Line]:
    """One example more or less, beside regressing anew."""
    n = sizes.updated
    pairs = family.sample_task(n + 1, 1, generator_for("test", 1)).examples
    O, last = T.regress(pairs[:n]), pairs[n:]
    works = (lambda: O.add(last.v, last.u), lambda: O.drop(n // 2), lambda: T.regress(pairs))
    added, dropped, anew = medians(*works, repeats=sizes.few)
    return [
        Line(name, f"one example more, n = {n}", added, "a regression", anew, anew / added, "> 1"),
        Line(
            name, f"one example less, n = {n}", dropped, "a regression", anew, anew / dropped, "> 1"
        ),
    ]


def against_n(name: str, sizes: Sizes) -> list[Line]:
    """Regressions of 50 queries from n examples, each in a process of its own, with the whole
    process's peak memory."""
    lines, times = [], []
    asked = "<= 3, <= 1 beyond 1024" if name == "adr" else "<= 2, < 2048 MiB"
    for i, n in enumerate(sizes.n):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, peak = pool.apply(_regress_alone, (name, n, sizes.few))
        times.append(seconds)
        compared = (
            (f"power of n since {sizes.n[i - 1]}", None, power(sizes.n[: i + 1], times), asked)
            if i
            else ()
        )
        lines.append(
            Line(
                name, f"regression, n = {n}, 50 queries", seconds, *compared, peak_mib=peak / 2**20
            )
        )
    return lines


def _regress_alone(name: str, n: int, repeats: int) -> tuple[float, int]:
    """Seconds of a regression in a fresh process, and the most bytes that the process has held,
    libraries included."""
    torch.set_num_threads(1)
    T, v = (
        Transducer.from_pretrained(name),
        gaussian_field(n + 50, 101, 0.2, generator_for("test", 0)).float(),
    )
    (seconds,) = medians(lambda: T.regress(ExampleSet(v[:n], v[:n]))(v[n:]), repeats=repeats)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def against_queries(name: str, T: Transducer, task: Task, sizes: Sizes) -> list[Line]:
    """m queries to one conditioned operator."""
    O = T.regress(task.examples[:50])
    times = medians(
        *(partial(O, task.queries.v[:1].repeat(m, 1)) for m in sizes.queries), repeats=sizes.few
    )
    lines = []
    for i, (m, seconds) in enumerate(zip(sizes.queries, times, strict=True)):
        compared = (
            (
                f"power of m since {sizes.queries[i - 1]}",
                None,
                power(sizes.queries[: i + 1], times[: i + 1]),
                "<= 1",
            )
            if i
            else ()
        )
        lines.append(Line(name, f"{m} queries, once conditioned on n = 50", seconds, *compared))
    return lines


def training(name: str, family: AdvectionDiffusionReaction, sizes: Sizes) -> list[Line]:
    """A meta-training step on 8 tasks of n = 50 and 16 queries: forward, backward, Muon and AdamW
    at rates too small to matter."""
    T = Transducer.from_pretrained(name).train()
    episode, optimisers = Episode(T), make_optimisers(T, 1e-12, 1e-12)
    batch = stack([family.sample_task(50, 16, generator_for("train", i)) for i in range(8)])

    def step() -> None:
        T.zero_grad()
        episode(**batch).mean().backward()
        for optimiser in optimisers:
            optimiser.step()

    (seconds,) = medians(step, repeats=sizes.repeats)
    return [Line(name, f"training step of 8 tasks, n = 50: {8 / seconds:.0f} tasks/s", seconds)]


def against_rivals(name: str, T: Transducer, task: Task, sizes: Sizes) -> list[Line]:
    """The same task for kernel ridge, and for an FNO fitted until it is as good as ours, or for
    `epochs`."""
    examples, queries = task.examples[:50], task.queries
    ours = error_of(T.regress(examples), queries)
    fno, fitted, epochs = fit_fno(examples, queries, ours, sizes.epochs)
    ridge_error = error_of(KernelRidge().regress(examples), queries)
    regressors = (T, KernelRidge())
    seconds, ridge = medians(
        *(partial(lambda R: R.regress(examples)(queries.v), R) for R in regressors),
        repeats=sizes.repeats,
    )
    what = f"regression, n = 50, {len(queries)} queries, error {report.number(ours)}"
    return [
        Line(
            name,
            what,
            seconds,
            f"kernel ridge, error {report.number(ridge_error)}",
            ridge,
            ridge / seconds,
            "> 1",
        ),
        Line(
            name,
            what,
            seconds,
            f"FNO, {epochs} epochs, error {report.number(fno)}",
            fitted,
            fitted / seconds,
        ),
    ]


def fit_fno(
    examples: ExampleSet, queries: ExampleSet, target: float, epochs: int
) -> tuple[float, float, int]:
    """The error of an FNO fitted until it reaches `target`, or for `epochs`; the seconds without
    those spent on looking; the epochs."""
    looks = []

    def reached(O: Operator) -> bool:
        start = time.process_time()
        error = error_of(O, queries)
        looks.append(time.process_time() - start)
        return error <= target

    start = time.process_time()
    O = Fno(fitting=replace(TUNED, epochs=epochs, steps=0, stop=reached)).regress(examples)
    seconds = time.process_time() - start - sum(looks)
    return error_of(O, queries), seconds, len(looks)


def error_of(O: Operator, queries: ExampleSet) -> float:
    return float(relative_mse(O(queries.v), queries.u))


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke test: every measurement, few and small.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for speed.json.")] = Path(
        "results/benchmarks"
    ),
) -> None:
    """Time everything, print the table, write the rows."""
    sizes = QUICK if quick else Sizes()
    torch.set_num_threads(1)
    # First: the children's peak starts from this process.
    lines = [line for name in MODELS for line in against_n(name, sizes)]
    with threadpool_limits(1):
        family = AdvectionDiffusionReaction()
        task = family.sample_task(100, 50, generator_for("test", 0))
        for name in MODELS:
            T = Transducer.from_pretrained(name)
            lines += [
                *whole_regression(name, T, task, sizes),
                *conditioning_once(name, T, task, sizes),
                *against_queries(name, T, task, sizes),
                *training(name, family, sizes),
            ]
        T = Transducer.from_pretrained(MODELS[0])
        lines += updating(MODELS[0], T, family, sizes) + against_rivals(MODELS[0], T, task, sizes)
    table = report.rich_table([line.shown() for line in lines], "one thread")
    Console(width=max(150, Console().width)).print(table)
    about = {
        "command": " ".join(["python -m benchmarks.speed", *sys.argv[1:]]),
        "seed": 0,
        **provenance(),
    }
    report.write_rows(out / "speed.json", [asdict(line) for line in lines], **about)


if __name__ == "__main__":
    typer.run(main)
