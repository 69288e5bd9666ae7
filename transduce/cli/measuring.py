"""transduce evaluate | reproduce: regressors on unseen operators, and the experiments of the
paper."""

from __future__ import annotations

import shlex
import time
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
    from ..types import Regressor

SIZES = [5, 10, 20, 50, 100, 200, 500]
BESIDE = {
    "adr": ["kernel-ridge"],
    "burgers": ["identity", "kernel-ridge"],
}  # what others are measured beside


def evaluate(
    regressors: Annotated[
        list[str], typer.Argument(help="Bundled models, .safetensors files, or rivals such as fno.")
    ],
    n: Annotated[
        Any,
        typer.Option(
            parser=numbers,
            metavar="N,N,...",
            help=f"Numbers of examples; default: of {SIZES} those that --data allows.",
        ),
    ] = None,
    operators: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many unseen operators; default: 100, or all that --data holds if fewer.",
        ),
    ] = None,
    queries: Annotated[
        int, typer.Option(min=1, help="How many functions of each to predict.")
    ] = 50,
    data: Annotated[
        Path | None,
        typer.Option(help="Your own operators: v and u of shape (operator, example, *grid)."),
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="The family: adr or burgers; default: adr.")
    ] = None,
    k_max: KMax = None,
    length_scale: LengthScale = None,
    t: Time = None,
    v_length_scale: Annotated[
        float | None, typer.Option(min=0.01, help="adr: of the inputs v; default: 0.2.")
    ] = None,
    amplitude: Amplitude = None,
    nu: Viscosity = None,
    start: Start = None,
    increment: Increment = None,
    resolution: Resolution = None,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="A .json file for the results.")] = None,
    force: Force = False,
) -> None:
    """Measure regressors on unseen operators, of a family or your own, beside kernel ridge tuned by
    leave-one-out."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from ..evaluation import check_fit, evaluate, summarise
    from ..files import provenance
    from ..random_fields import generator_for
    from ..report import write_rows
    from ..storage import StoredFamily, check_writable

    if out is not None:
        check_writable(out, force, (".json",))
    of_adr = {
        "k_max": k_max,
        "length_scale": length_scale,
        "t": t,
        "v_length_scale": v_length_scale,
    }
    of_burgers = {
        "amplitude": amplitude,
        "nu": nu,
        "start": start,
        "increment": increment,
        "resolution": resolution,
    }
    options = {"adr": of_adr, "burgers": of_burgers}
    B = _family(data, family, options)
    stored, room = (
        (len(B), B.v.shape[1] - queries) if isinstance(B, StoredFamily) else (100, SIZES[-1])
    )
    operators = operators or min(stored, 100)
    n = n or [size for size in SIZES if size <= room] or [max(1, room)]
    found = _regressors([*regressors, *BESIDE[family or "adr"]])
    check_fit(found, B, n, operators, generator_for("test", seed), queries)
    rows, console = [], Console(stderr=True)
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
    settings = {"data": data} if data is not None else _settings(B, family or "adr", options)
    what = ", ".join(f"{name} = {value}" for name, value in settings.items())
    print_table(
        rows, title=f"relative MSE of {operators} operators, {queries} queries each, {what}"
    )
    if out is not None:
        settings = {
            "n": ",".join(map(str, n)),
            "operators": operators,
            "queries": queries,
            **settings,
            "seed": seed,
        }
        flags = (
            part
            for name, value in settings.items()
            for part in (f"--{name.replace('_', '-')}", str(value))
        )
        command = shlex.join(["transduce", "evaluate", *regressors, *flags])
        write_rows(out, rows, command=command, family=repr(B), seed=seed, **provenance())
        say(f"written to {out}")


def reproduce(
    experiment: Annotated[
        str, typer.Argument(help="The experiment, as adr; an unknown name lists all.")
    ],
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Everything, but small: minutes. Its numbers mean little."),
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(metavar="PART,...", help="Some of its tables and figures; default: all."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder of results; default: results/NAME, or results/NAME-quick."),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            help="The folder of unfinished work; default: runs/reproduce/NAME, or NAME-quick."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Measure an experiment of the paper anew, every table and figure of it, going on where it
    stopped."""
    from ..experiments import EXPERIMENTS, reproduce
    from ..types import TransduceError

    if experiment not in EXPERIMENTS:
        raise TransduceError(
            f"no experiment is called {experiment!r}; known: {', '.join(EXPERIMENTS)}."
        )
    known = {part.name: part for part in EXPERIMENTS[experiment].PARTS}
    names = list(known) if only is None else only.split(",")
    for name in names:
        if name not in known:
            raise TransduceError(
                f"{experiment} has no part called {name!r}; known: {', '.join(known)}."
            )
    scale = EXPERIMENTS[experiment].QUICK if quick else EXPERIMENTS[experiment].FULL
    folder = f"{experiment}-quick" if quick else experiment
    out, work = out or Path("results") / folder, work or Path("runs") / "reproduce" / folder
    start = time.perf_counter()
    reproduce(
        experiment,
        [known[name] for name in names],
        scale,
        out,
        work,
        EXPERIMENTS[experiment].identities(),
        force,
    )
    say(f"{experiment}: {len(names)} parts, {time.perf_counter() - start:.0f} s, in {out}")


def _family(data: Path | None, family: str | None, options: dict[str, dict[str, Any]]) -> Any:
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


def _settings(B: Any, family: str, options: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the command line says of a family, ranges as they are given there."""
    values = {name: getattr(B, name) for name in options[family]}
    return {"family": family} | {
        name: ",".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def _regressors(names: list[str]) -> dict[str, Regressor]:
    """Models and rivals by name."""
    from .. import weights
    from ..baselines import RIVALS, rival
    from ..transducer import Transducer
    from ..types import TransduceError

    found: dict[str, Regressor] = {}
    for name in names:
        if name in RIVALS:
            found[name] = rival(name)
        elif name in weights.names() or Path(name).suffix == ".safetensors":
            found[name] = Transducer.from_pretrained(name)
        else:
            raise TransduceError(
                f"no regressor is called {name!r}; models: {', '.join(weights.names())}; rivals: "
                f"{', '.join(RIVALS)}. "
                "Name some of these, or give the path of a .safetensors file."
            )
    return found
