"""transduce evaluate | reproduce: regressors on unseen operators, and the paper's experiments."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import (
    Amplitude,
    Force,
    Increment,
    KMax,
    LengthScale,
    Resolution,
    Seed,
    Start,
    Time,
    Viscosity,
    as_flags,
    built,
    numbers,
    only_given,
)
from .printing import print_table, say

if TYPE_CHECKING:
    from ..evaluation import Row
    from ..types import OperatorFamily, Regressor

Settings = Mapping[str, object]
Options = dict[str, dict[str, object]]  # of each family, None where not given
SIZES = [5, 10, 20, 50, 100, 200, 500]
ADR = ("k_max", "length_scale", "t", "v_length_scale")
BURGERS = ("amplitude", "nu", "start", "increment", "resolution")
BASELINES = {"adr": ["kernel-ridge"], "burgers": ["identity", "kernel-ridge"]}  # always measured

Names = Annotated[
    list[str],
    typer.Argument(help="Bundled models, .safetensors files, or baselines such as fno."),
]
Examples = Annotated[
    Any,
    typer.Option(
        parser=numbers,
        metavar="N,N,...",
        help=f"Numbers of examples; default: of {SIZES} those that --data allows.",
    ),
]
Operators = Annotated[
    int | None,
    typer.Option(
        min=1, help="How many unseen operators; default: 100, or all that --data holds if fewer."
    ),
]
Queries = Annotated[int, typer.Option(min=1, help="How many functions of each to predict.")]
Data = Annotated[
    Path | None,
    typer.Option(help="Your own operators: v and u of shape (operator, example, *grid)."),
]
Family = Annotated[str | None, typer.Option(help="The family: adr or burgers; default: adr.")]
InputLengthScale = Annotated[
    float | None, typer.Option(min=0.01, help="adr: of the inputs v; default: 0.2.")
]
Results = Annotated[Path | None, typer.Option(help="A .json file for the results.")]
Experiment = Annotated[
    str, typer.Argument(help="The experiment, as adr; an unknown name lists all.")
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Everything, but small: minutes. Its numbers mean little.")
]
Only = Annotated[
    str | None,
    typer.Option(metavar="PART,...", help="Some of its tables and figures; default: all."),
]
ResultsFolder = Annotated[
    Path | None,
    typer.Option(help="The folder of results; default: results/NAME, or results/NAME-quick."),
]
WorkFolder = Annotated[
    Path | None,
    typer.Option(
        help="The folder of unfinished work; default: runs/reproduce/NAME, or NAME-quick."
    ),
]


def evaluate(
    regressors: Names,
    n: Examples = None,
    operators: Operators = None,
    queries: Queries = 50,
    data: Data = None,
    family: Family = None,
    k_max: KMax = None,
    length_scale: LengthScale = None,
    t: Time = None,
    v_length_scale: InputLengthScale = None,
    amplitude: Amplitude = None,
    nu: Viscosity = None,
    start: Start = None,
    increment: Increment = None,
    resolution: Resolution = None,
    seed: Seed = 0,
    out: Results = None,
    force: Force = False,
) -> None:
    """Measure regressors on unseen operators, of a family or your own, compared with kernel ridge
    tuned by leave-one-out."""
    from ..storage import check_writable

    if out is not None:
        check_writable(out, force, (".json",))
    of_burgers = (amplitude, nu, start, increment, resolution)
    options = {
        "adr": dict(zip(ADR, (k_max, length_scale, t, v_length_scale), strict=True)),
        "burgers": dict(zip(BURGERS, of_burgers, strict=True)),
    }
    B = _family(data, family, options)
    n, operators = _sizes(B, n, operators, queries)
    rows = _measured([*regressors, *BASELINES[family or "adr"]], B, n, operators, queries, seed)
    settings = {"data": data} if data is not None else _settings(B, family or "adr", options)
    what = ", ".join(f"{name} = {value}" for name, value in settings.items())
    print_table(
        rows, title=f"relative MSE of {operators} operators, {queries} queries each, {what}"
    )
    if out is not None:
        sizes = {"n": ",".join(map(str, n)), "operators": operators, "queries": queries}
        _write(out, rows, regressors, B, {**sizes, **settings, "seed": seed})


def _sizes(
    B: OperatorFamily, n: list[int] | None, operators: int | None, queries: int
) -> tuple[list[int], int]:
    """The numbers of examples and of operators: as asked for, or as many as a file allows."""
    from ..storage import StoredFamily

    stored, room = (
        (len(B), B.v.shape[1] - queries) if isinstance(B, StoredFamily) else (100, SIZES[-1])
    )
    n = n or [size for size in SIZES if size <= room] or [max(1, room)]
    return n, operators or min(stored, 100)


def _measured(
    names: list[str], B: OperatorFamily, n: list[int], operators: int, queries: int, seed: int
) -> list[Row]:
    """The errors of each regressor, with a progress bar on a terminal.

    Args:
        names: of models and baselines.
        B: the family.
        n: numbers of examples.
        operators: number of operators.
        queries: number of queries of each operator.
        seed: of the draws.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from ..evaluation import check_fit, evaluate, summarise
    from ..random_fields import generator_for

    found = _regressors(names)
    check_fit(found, B, n, operators, generator_for("test", seed), queries)
    rows: list[Row] = []
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("operators"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        for name, regressor in found.items():
            advance = partial(bars.advance, bars.add_task(name, total=operators))
            measured = evaluate(
                regressor, B, n, operators, generator_for("test", seed), queries, advance
            )
            rows += [{"regressor": name, **row} for row in summarise(measured)]
    return rows


def _write(
    out: Path, rows: list[Row], regressors: list[str], B: OperatorFamily, settings: Settings
) -> None:
    """Write rows with the command that measures them again."""
    from ..files import provenance
    from ..metatraining import described
    from ..report import write_rows

    named = {f"--{name.replace('_', '-')}": str(value) for name, value in settings.items()}
    flags = (part for item in named.items() for part in item)
    command = shlex.join(["transduce", "evaluate", *regressors, *flags])
    about = {"family": described(B), "seed": settings["seed"], **provenance()}
    write_rows(out, rows, command=command, **about)
    say(f"written to {out}")


def reproduce(
    experiment: Experiment,
    quick: Quick = False,
    only: Only = None,
    out: ResultsFolder = None,
    work: WorkFolder = None,
    force: Force = False,
) -> None:
    """Measure every table and figure of an experiment of the paper, resuming where it stopped."""
    from .. import repository
    from ..types import TransduceError

    if experiment not in repository.EXPERIMENTS:
        raise TransduceError(
            f"no experiment is called {experiment!r}; known: {', '.join(repository.EXPERIMENTS)}."
        )
    paper = repository.module("experiments", f"the experiment {experiment!r}")
    chosen = paper.EXPERIMENTS[experiment]
    known = {part.name: part for part in chosen.PARTS}
    names = list(known) if only is None else only.split(",")
    for name in names:
        if name not in known:
            raise TransduceError(
                f"{experiment} has no part called {name!r}; known: {', '.join(known)}."
            )
    scale = chosen.QUICK if quick else chosen.FULL
    folder = f"{experiment}-quick" if quick else experiment
    out, work = out or Path("results") / folder, work or Path("runs") / "reproduce" / folder
    start = time.perf_counter()
    paper.reproduce(
        experiment,
        [known[name] for name in names],
        scale,
        out,
        work,
        chosen.identities(),
        force,
    )
    say(f"{experiment}: {len(names)} parts, {time.perf_counter() - start:.0f} s, in {out}")


def _family(data: Path | None, family: str | None, options: Options) -> OperatorFamily:
    """The operators stored in `data`, or those of a family with the options that were given."""
    from ..storage import StoredFamily
    from ..types import TransduceError

    if data is None:
        return built(family or "adr", options)
    given = only_given({"family": family, **options["adr"], **options["burgers"]})
    if given:
        raise TransduceError(
            f"{as_flags(given)} of a family and --data, which takes its place, were both given; "
            "expected one. Leave out the other."
        )
    return StoredFamily(data)


def _settings(B: OperatorFamily, family: str, options: Options) -> dict[str, object]:
    """The options of a family, as they are given on the command line."""
    values = {name: getattr(B, name) for name in options[family]}
    return {"family": family} | {
        name: ",".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def _regressors(names: list[str]) -> dict[str, Regressor]:
    """Models and baselines by name."""
    from .. import weights
    from ..baselines import BASELINES, baseline
    from ..transducer import Transducer
    from ..types import TransduceError

    found: dict[str, Regressor] = {}
    for name in names:
        if name in BASELINES:
            found[name] = baseline(name)
        elif name in weights.names() or Path(name).suffix == ".safetensors":
            found[name] = Transducer.from_pretrained(name)
        else:
            raise TransduceError(
                f"no regressor is called {name!r}; models: {', '.join(weights.names())}; "
                f"baselines: {', '.join(BASELINES)}. "
                "Name some of these, or give the path of a .safetensors file."
            )
    return found
