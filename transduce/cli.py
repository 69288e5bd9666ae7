"""The command line: transduce regress | train | generate | evaluate | reproduce | export | serve | play.

Bad input ends in one line, `transduce: error: ...`, and exit code 2. What takes long to import waits inside the commands. Of the
processes that torchrun starts, only the first says what was done.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
import warnings
from collections.abc import Iterable
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from .transducer import Transducer
    from .types import Array, ExampleSet, Regressor

SIZES = [5, 10, 20, 50, 100, 200, 500]
BESIDE = {"adr": ["kernel-ridge"], "burgers": ["identity", "kernel-ridge"]}  # what others are measured beside


class Group(TyperGroup):
    """The commands, with bad input and warnings told in one line each."""

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: _complain("warning", message)
            try:
                return super().invoke(ctx)
            except ValueError as error:
                from .types import TransduceError

                if not isinstance(error, TransduceError):
                    raise
                _complain("error", error)
                raise typer.Exit(2) from None


def _complain(kind: str, message: object) -> None:
    print(f"transduce: {kind}: {' '.join(str(message).split())}", file=sys.stderr)


def _say(line: str) -> None:
    if int(os.environ.get("RANK", 0)) == 0:
        print(line)


app = typer.Typer(cls=Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> bool:
    if wanted:
        from . import __version__

        _say(f"transduce {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say which version.")] = False,
) -> None:
    """Regress operators from examples: a few pairs of functions in, the operator out."""


Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the draws.")]


def _range(text: str) -> float | tuple[float, float]:
    """The number in "0.3", or both ends in "0.1,0.5"."""
    try:
        low, high = map(float, text.split(",")) if "," in text else (float(text), None)
    except ValueError:
        raise typer.BadParameter(f"{text!r}; expected a number, or two with a comma between, like 0.1,0.5.") from None
    return low if high is None else (low, high)


def _draws(what: str) -> Any:
    """An option of a number, or of a range from which each operator draws its own."""
    return typer.Option(parser=_range, metavar="X|LOW,HIGH", help=f"burgers: {what}.")


KMax = Annotated[float | None, typer.Option(min=0, help="adr: k is drawn from [0, this]; default: 0.3.")]
LengthScale = Annotated[float | None, typer.Option(min=0.01, help="adr: of the coefficients delta and nu; default: 0.2.")]
Time = Annotated[float | None, typer.Option(min=0, help="adr: the target time; default: 1.")]
Amplitude = Annotated[Any, _draws("the standard deviation of each component at time 0; default: 0.1")]
Viscosity = Annotated[Any, _draws("the viscosity; default: 0.1,0.5")]
Start = Annotated[Any, _draws("the time of v; default: 0")]
Increment = Annotated[Any, _draws("the time from v to u; default: 10")]
Resolution = Annotated[
    int | None, typer.Option(min=1, help="burgers: points a side to solve on, at least; 128 for amplitudes like 0.3; default: 64.")
]


@app.command(epilog="Example: transduce regress --model adr --examples pairs.npz --queries v.npz --out u.npz")
def regress(
    examples: Annotated[
        Path, typer.Option(help="Pairs: v and u of shape (n, *grid), in .npz, .nc, .h5 or .zarr. Climate: a file or more, as t.nc,msl.nc.")
    ],
    queries: Annotated[Path, typer.Option(help="Functions v to answer for, (m, *grid). Climate: a file or more.")],
    out: Annotated[Path, typer.Option(help="Where the answers u go, in the format of its suffix.")],
    model: Annotated[str, typer.Option(help="A bundled model, or a .safetensors file.")] = "adr",
    at: Annotated[
        int | None, typer.Option(min=1, help="Answer on a uniform grid of this many points; default: that of the examples' u.")
    ] = None,
    v: Annotated[str | None, typer.Option(help="The variable of inputs; default: v. Climate: temperature, by its usual names.")] = None,
    u: Annotated[str | None, typer.Option(help="The variable of outputs; default: u. Climate: pressure, by its usual names.")] = None,
    x: Annotated[str | None, typer.Option(help="The variable of positions, if sensors are scattered; default: x.")] = None,
    force: Force = False,
) -> None:
    """Regress the operator that example pairs come from, and apply it to new functions."""
    from .storage import check_writable, write_arrays
    from .transducer import Transducer

    check_writable(out, force)
    T = Transducer.from_pretrained(model)
    if _of_region(T, at, x):
        answers, n, milliseconds = _climate_answers(T, _files(examples), _files(queries), v, u)
    else:
        answers, n, milliseconds = _answers(T, examples, queries, v or "v", u or "u", x or "x", at)
    write_arrays(out, answers, force, attrs={"model": Path(model).stem, "examples": n})
    m = len(next(iter(answers.values())))
    _say(f"{model}: n = {n} examples, {m} queries, {milliseconds:.1f} ms, written to {out}")


def _of_region(T: Transducer, at: int | None, x: str | None) -> bool:
    """Whether a model is of a region, which has a grid of its own: raises if another is asked for."""
    from .spaces import Region
    from .types import TransduceError

    if isinstance(T.V, Region) and (at is not None or x is not None):
        grid = " x ".join(map(str, T.V.grid))
        raise TransduceError(f"{'--x' if at is None else '--at'} was given to a model of a region, whose grid is {grid}. Leave it out.")
    return isinstance(T.V, Region)


Answers = tuple[dict[str, Any], int, float]  # by name, from how many examples, in how many milliseconds


def _answers(T: Transducer, examples: Path, queries: Path, v: str, u: str, x: str, at: int | None) -> Answers:
    import numpy as np

    from .families.images import check_pixels
    from .storage import read_functions

    pairs = _pairs(T, examples, v, u, x)
    v_query, x_query = read_functions(queries, v, x, keep_uniform=pairs.x is not None)
    if _classifies(T):
        check_pixels(v_query, f"{v} in {queries}")
    start = time.perf_counter()
    u_hat = T.regress(pairs)(v_query, at=at, x=x_query)
    milliseconds = 1000 * (time.perf_counter() - start)
    at_sensors = pairs.x is not None and at is None
    return {u: np.asarray(u_hat), x: np.asarray(pairs.x)} if at_sensors else {u: u_hat}, len(pairs), milliseconds


def _pairs(T: Transducer, examples: Path, v: str, u: str, x: str) -> ExampleSet:
    """The pairs in a file, of a kind that the model takes."""
    from .families.images import check_pixels
    from .storage import read_examples, read_variable

    if _classifies(T):
        _check_classes(read_variable(examples, u), f"{u} in {examples}", T.U.size)
    pairs = read_examples(examples, v, u, x)
    if _classifies(T):
        check_pixels(pairs.v, f"{v} in {examples}")
    return pairs


def _classifies(T: Transducer) -> bool:
    """Whether a model goes from images to classes."""
    from .recipes import IMAGES_TO_CLASSES

    return all(IMAGES_TO_CLASSES[space].items() <= T.config[space].items() for space in "VU")


def _climate_answers(T: Transducer, examples: list[Path], queries: list[Path], v: str | None, u: str | None) -> Answers:
    """The queries are read from the variable that the examples were: another temperature is that of another height."""
    from .climate_regression import regress_climate
    from .families import open_climate, open_inputs

    fields = open_climate(examples, v=v, u=u)
    v_query = open_inputs(queries, v=fields.names[0])
    start = time.perf_counter()
    u_hat = regress_climate(T, fields, v_query)
    return {fields.names[1]: u_hat}, len(fields), 1000 * (time.perf_counter() - start)


def _files(given: Path) -> list[Path]:
    """The files in "t.nc,msl.nc"."""
    return [given] if given.exists() else [Path(name.strip()) for name in str(given).split(",")]


def _check_classes(u: Array, name: str, classes: int) -> None:
    """Raise if u, that a model of images is to regress, are not of classes."""
    from .types import TransduceError, to_tensor

    values = to_tensor(u, name)
    if values.ndim != 2 or values.shape[1] != classes or not (((values == 0) | (values == 1)).all() and (values.sum(1) == 1).all()):
        raise TransduceError(
            f"{name} has shape {tuple(u.shape)}; this model classifies images and expects one-hot classes of {classes} columns, "
            f"(n, {classes}), with a 1 in that of each image's class. For labels, use transduce.sklearn.TransducerClassifier."
        )


@app.command(epilog="Example: transduce train adr --out runs/adr    (on two processes: torchrun --nproc-per-node 2 -m transduce train adr)")
def train(
    name: Annotated[str, typer.Argument(help="The recipe.")],
    out: Annotated[Path | None, typer.Option(help="The folder of checkpoint, log and weights; default: runs/NAME.")] = None,
    data: Annotated[Path | None, typer.Option(help="Your own operators: v and u of shape (operator, example, *grid).")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Instead of the recipe's; a lesson before them is as long as ever.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of the recipe's.")] = None,
    on_the_fly: Annotated[bool, typer.Option("--on-the-fly", help="Draw every task anew, not from operators drawn once: slower.")] = False,
    start: Annotated[
        str | None, typer.Option(help="Weights to go on from, bundled or a .safetensors file, as when adapting to --data.")
    ] = None,
    rate: Annotated[float, typer.Option(min=1e-6, help="A factor of the learning rates: 0.3, say, with --start.")] = 1.0,
    until: Annotated[float, typer.Option(min=0, help="Stop as soon as the validation error (mean relative MSE) is this small.")] = 0.0,
) -> None:
    """Meta-train a recipe's model, going on where it stopped."""
    from . import recipes
    from .types import TransduceError

    begun = time.perf_counter()
    path, error = recipes.train(recipes.recipe(name), out or Path("runs") / name, data, steps, seed, on_the_fly, start, rate, until)
    if until and error is not None and error > until:
        raise TransduceError(
            f"the validation error ended at {error:.3g}, above the {until:g} asked for; the weights are in {path}. Give more --steps."
        )
    _say(f"{name}: validation error {error:.3g}, {time.perf_counter() - begun:.0f} s with data and start-up, weights in {path}")


@app.command(
    epilog="Example: transduce generate adr --operators 500 --out adr.zarr    (or: generate burgers --nu 0.1,0.5 --out burgers.zarr)"
)
def generate(
    family: Annotated[str, typer.Argument(help="The family: adr or burgers.")],
    out: Annotated[Path, typer.Option(help="The Zarr store to write.")],
    operators: Annotated[int, typer.Option(min=1, help="How many operators.")] = 500,
    examples: Annotated[int, typer.Option(min=1, help="How many pairs of each.")] = 100,
    seed: Seed = 0,
    split: Annotated[str, typer.Option(help="train, validation or test: their draws never meet.")] = "train",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes on this machine; default: one a core.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="A dask scheduler instead, like tcp://host:8786, whose workers see the same disk.")
    ] = None,
    k_max: KMax = None,
    length_scale: LengthScale = None,
    t: Time = None,
    amplitude: Amplitude = None,
    nu: Viscosity = None,
    start: Start = None,
    increment: Increment = None,
    resolution: Resolution = None,
    force: Force = False,
) -> None:
    """Draw operators of a family with examples of each; any number of workers gives the same bytes."""
    from . import generation

    of_adr = {"k_max": k_max, "length_scale": length_scale, "t": t}
    of_burgers = {"amplitude": amplitude, "nu": nu, "start": start, "increment": increment, "resolution": resolution}
    B = _built(family, {"adr": of_adr, "burgers": of_burgers})
    begun = time.perf_counter()
    generation.generate(B, out, operators, examples, seed, split, workers, scheduler, force)
    _say(f"{family}: {operators} operators of {examples} examples, {time.perf_counter() - begun:.0f} s, written to {out}")


def _flags(options: Iterable[str]) -> str:
    """Options as they are given on the command line."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in options)


def _built(family: str, options: dict[str, dict[str, Any]]) -> Any:
    """The named family with those of its options that were given."""
    from .families import AdvectionDiffusionReaction, Burgers2d
    from .types import TransduceError

    known = {"adr": AdvectionDiffusionReaction, "burgers": Burgers2d}
    if family not in known:
        raise TransduceError(f"no family is called {family!r}; known: {', '.join(known)}. Name one of these.")
    for other in known:
        if other != family and (given := _given(options[other])):
            flags, own = _flags(given), _flags(options[family])
            raise TransduceError(f"{flags} of the family {other} was given for {family}; expected options of its own, {own}. Leave it out.")
    return known[family](**_given(options[family]))


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _numbers(text: str) -> list[int]:
    """The numbers in "5,10,20"."""
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = [0]
    if numbers[0] < 1:
        raise typer.BadParameter(f"{text!r}; expected numbers from 1 with commas between, like 5,10,20.")
    return numbers


@app.command(epilog="Example: transduce evaluate adr adr-softmax fno --n 5,10,20,50 --operators 20 --out results.json")
def evaluate(
    regressors: Annotated[list[str], typer.Argument(help="Bundled models, .safetensors files, or rivals such as fno.")],
    n: Annotated[
        Any, typer.Option(parser=_numbers, metavar="N,N,...", help=f"Numbers of examples; default: of {SIZES} those that --data allows.")
    ] = None,
    operators: Annotated[
        int | None, typer.Option(min=1, help="How many unseen operators; default: 100, or all that --data holds if fewer.")
    ] = None,
    queries: Annotated[int, typer.Option(min=1, help="How many functions of each to predict.")] = 50,
    data: Annotated[Path | None, typer.Option(help="Your own operators: v and u of shape (operator, example, *grid).")] = None,
    family: Annotated[str | None, typer.Option(help="The family: adr or burgers; default: adr.")] = None,
    k_max: KMax = None,
    length_scale: LengthScale = None,
    t: Time = None,
    v_length_scale: Annotated[float | None, typer.Option(min=0.01, help="adr: of the inputs v; default: 0.2.")] = None,
    amplitude: Amplitude = None,
    nu: Viscosity = None,
    start: Start = None,
    increment: Increment = None,
    resolution: Resolution = None,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="A .json file for the results.")] = None,
    force: Force = False,
) -> None:
    """Measure regressors on unseen operators, of a family or your own, beside kernel ridge tuned by leave-one-out."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from .evaluation import check_fit, evaluate, summarise
    from .files import provenance
    from .random_fields import generator_for
    from .report import write_rows
    from .storage import StoredFamily, check_writable

    if out is not None:
        check_writable(out, force, (".json",))
    of_adr = {"k_max": k_max, "length_scale": length_scale, "t": t, "v_length_scale": v_length_scale}
    of_burgers = {"amplitude": amplitude, "nu": nu, "start": start, "increment": increment, "resolution": resolution}
    options = {"adr": of_adr, "burgers": of_burgers}
    B = _family(data, family, options)
    stored, room = (len(B), B.v.shape[1] - queries) if isinstance(B, StoredFamily) else (100, SIZES[-1])
    operators = operators or min(stored, 100)
    n = n or [size for size in SIZES if size <= room] or [max(1, room)]
    found = _regressors([*regressors, *BESIDE[family or "adr"]])
    check_fit(found, B, n, operators, generator_for("test", seed), queries)
    rows, console = [], Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("operators"), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        for name, regressor in found.items():
            advance = partial(bars.advance, bars.add_task(name, total=operators))
            measured = evaluate(regressor, B, n, operators, generator_for("test", seed), queries, advance)
            rows += [{"regressor": name, **row} for row in summarise(measured)]
    settings = {"data": data} if data is not None else _settings(B, family or "adr", options)
    what = ", ".join(f"{name} = {value}" for name, value in settings.items())
    _print_table(rows, title=f"relative MSE of {operators} operators, {queries} queries each, {what}")
    if out is not None:
        settings = {"n": ",".join(map(str, n)), "operators": operators, "queries": queries, **settings, "seed": seed}
        flags = (part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", str(value)))
        command = shlex.join(["transduce", "evaluate", *regressors, *flags])
        write_rows(out, rows, command=command, family=repr(B), seed=seed, **provenance())
        _say(f"written to {out}")


def _family(data: Path | None, family: str | None, options: dict[str, dict[str, Any]]) -> Any:
    """The operators stored in `data`, or those of a family with the options that were given."""
    from .storage import StoredFamily
    from .types import TransduceError

    if data is None:
        return _built(family or "adr", options)
    given = _given({"family": family, **options["adr"], **options["burgers"]})
    if given:
        raise TransduceError(
            f"{_flags(given)} of a family and --data, which takes its place, were both given; expected one. Leave out the other."
        )
    return StoredFamily(data)


def _settings(B: Any, family: str, options: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the command line says of a family, ranges as they are given there."""
    values = {name: getattr(B, name) for name in options[family]}
    return {"family": family} | {name: ",".join(map(str, value)) if isinstance(value, tuple) else value for name, value in values.items()}


def _regressors(names: list[str]) -> dict[str, Regressor]:
    """Models and rivals by name."""
    from . import weights
    from .baselines import RIVALS, rival
    from .transducer import Transducer
    from .types import TransduceError

    found: dict[str, Regressor] = {}
    for name in names:
        if name in RIVALS:
            found[name] = rival(name)
        elif name in weights.names() or Path(name).suffix == ".safetensors":
            found[name] = Transducer.from_pretrained(name)
        else:
            raise TransduceError(
                f"no regressor is called {name!r}; models: {', '.join(weights.names())}; rivals: {', '.join(RIVALS)}. "
                "Name some of these, or give the path of a .safetensors file."
            )
    return found


def _print_table(rows: list[dict[str, Any]], title: str) -> None:
    """A block for each n, a line for each regressor, the least mean in bold."""
    from rich.console import Console

    from .report import rich_table

    shown = ("n", "regressor", "mean", "median", "pooled", "relative_l2", "seconds")
    ordered = sorted(rows, key=itemgetter("n"))
    least = {n: min(row["mean"] for row in group) for n, group in groupby(ordered, key=itemgetter("n"))}
    table = rich_table([{column: row[column] for column in shown} for row in ordered], title)
    table.columns[1].overflow = "fold"
    for line, row, following in zip(table.rows, ordered, [*ordered[1:], None], strict=True):
        line.style = "bold" if row["mean"] == least[row["n"]] else ""
        line.end_section = following is not None and following["n"] != row["n"]
    width = None if sys.stdout.isatty() else 1000  # no name is cut where there is no terminal
    Console(width=width, quiet=int(os.environ.get("RANK", 0)) > 0).print(table)


@app.command(epilog="Example: transduce reproduce adr --quick")
def reproduce(
    experiment: Annotated[str, typer.Argument(help="The experiment: adr, burgers, climate or images.")],
    quick: Annotated[bool, typer.Option("--quick", help="Everything, but small: minutes. Its numbers mean little.")] = False,
    only: Annotated[str | None, typer.Option(metavar="PART,...", help="Some of its tables and figures; default: all.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder of results; default: results/NAME, or results/NAME-quick.")] = None,
    work: Annotated[Path | None, typer.Option(help="The folder of unfinished work; default: runs/reproduce/NAME, or NAME-quick.")] = None,
    force: Force = False,
) -> None:
    """Measure an experiment of the paper anew, every table and figure of it, going on where it stopped."""
    from .experiments import EXPERIMENTS, reproduce
    from .types import TransduceError

    if experiment not in EXPERIMENTS:
        raise TransduceError(f"no experiment is called {experiment!r}; known: {', '.join(EXPERIMENTS)}.")
    known = {part.name: part for part in EXPERIMENTS[experiment].PARTS}
    names = list(known) if only is None else only.split(",")
    for name in names:
        if name not in known:
            raise TransduceError(f"{experiment} has no part called {name!r}; known: {', '.join(known)}.")
    scale = EXPERIMENTS[experiment].QUICK if quick else EXPERIMENTS[experiment].FULL
    folder = f"{experiment}-quick" if quick else experiment
    out, work = out or Path("results") / folder, work or Path("runs") / "reproduce" / folder
    start = time.perf_counter()
    reproduce(experiment, [known[name] for name in names], scale, out, work, EXPERIMENTS[experiment].identities(), force)
    _say(f"{experiment}: {len(names)} parts, {time.perf_counter() - start:.0f} s, in {out}")


@app.command(epilog="Example: transduce export --model adr --examples pairs.npz --out operator.onnx")
def export(
    examples: Annotated[Path, typer.Option(help="Pairs: v and u of shape (n, *grid), as `regress` reads them. Climate: a file or more.")],
    out: Annotated[Path, typer.Option(help="The .onnx file to write.")],
    model: Annotated[str, typer.Option(help="A bundled model, or a .safetensors file.")] = "adr",
    at: Annotated[int | None, typer.Option(min=1, help="Answer on a uniform grid of this many points; default: the examples' own.")] = None,
    v: Annotated[str | None, typer.Option(help="The variable of inputs; default: v. Climate: temperature, by its usual names.")] = None,
    u: Annotated[str | None, typer.Option(help="The variable of outputs; default: u. Climate: pressure, by its usual names.")] = None,
    x: Annotated[str | None, typer.Option(help="The variable of positions, if sensors are scattered; default: x.")] = None,
    force: Force = False,
) -> None:
    """Write the operator that example pairs come from as an ONNX graph, to be run without torch."""
    from .storage import check_writable
    from .transducer import Transducer

    check_writable(out, force, (".onnx",))
    T = Transducer.from_pretrained(model)
    if _of_region(T, at, x):
        from .climate_regression import condition_climate
        from .families import open_climate

        O = condition_climate(T, open_climate(_files(examples), v=v, u=u))
    else:
        O = T.regress(_pairs(T, examples, v or "v", u or "u", x or "x"))
    written = O.export(out, at=at, force=force)
    shapes = " -> ".join(f"{name} ({', '.join(map(str, ('m', *shape)))})" for name, shape in (("v", written.v), ("u", written.u)))
    size, difference = f"{written.size / 1e6:.1f} MB", f"{written.difference:.1e} from torch"
    _say(f"{model}: n = {len(O.examples)} examples, {shapes}, {size}, {difference}, written to {out}")


@app.command(epilog="Example: transduce serve    (for other machines: TRANSDUCE_TOKEN=... transduce serve --host 0.0.0.0)")
def serve(
    model: Annotated[str, typer.Option(metavar="NAME,...", help="Bundled models or .safetensors files; the first is the default.")] = (
        "adr,burgers"
    ),
    host: Annotated[str, typer.Option(help="The address to listen on; one that other machines reach needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    token: Annotated[str | None, typer.Option(envvar="TRANSDUCE_TOKEN", help="What clients must send: 16 characters or more.")] = None,
    max_mb: Annotated[int, typer.Option(min=1, help="The largest body of a request; operators may take 16 times as much together.")] = 32,
    rate: Annotated[float, typer.Option(min=0.01, help="Requests a second that an address may send.")] = 100.0,
    expire: Annotated[float, typer.Option(min=1, help="Seconds after which an operator that nobody asks for is forgotten.")] = 3600.0,
) -> None:
    """Serve regressions over HTTP: POST examples, get an operator's id; POST queries, get predictions."""
    from .serving.command import serve

    serve(model.split(","), host, port, token, max_mb * 2**20, rate, expire, partial(print, flush=True))


@app.command(epilog="Example: transduce play --port 8642")
def play(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where on this machine; 0 for any that is free.")] = 8642,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open the page.")] = True,
) -> None:
    """Try it in a page in the browser, served to this machine alone."""
    import webbrowser

    from .playground import start
    from .playground.app import make_app, warm_the_rest, warm_up

    def ready(url: str) -> None:
        _say(f"the page is at {url}    (Ctrl-C ends it)")
        if browser:
            webbrowser.open(url)
        warm_the_rest()

    warm_up()
    start(make_app(), "127.0.0.1", port, ready)


def main() -> None:
    """The console command."""
    app(prog_name="transduce")
