"""The command line: transduce regress | train | generate | evaluate.

Bad input ends in one line, `transduce: error: ...`, and exit code 2. What takes long to import waits inside the commands. Of the
processes that torchrun starts, only the first says what was done.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup


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
LargestK = Annotated[float, typer.Option(min=0, help="k is drawn from [0, this].")]


@app.command(epilog="Example: transduce regress --model adr --examples pairs.npz --queries v.npz --out u.npz")
def regress(
    examples: Annotated[Path, typer.Option(help="Pairs: v and u of shape (n, *grid), in .npz, .nc, .h5 or .zarr.")],
    queries: Annotated[Path, typer.Option(help="Functions v to answer for, (m, *grid).")],
    out: Annotated[Path, typer.Option(help="Where the answers u go, in the format of its suffix.")],
    model: Annotated[str, typer.Option(help="A bundled model, or a .safetensors file.")] = "adr",
    at: Annotated[
        int | None, typer.Option(min=1, help="Answer on a uniform grid of this many points; default: that of the examples' u.")
    ] = None,
    v: Annotated[str, typer.Option(help="The variable of inputs.")] = "v",
    u: Annotated[str, typer.Option(help="The variable of outputs.")] = "u",
    x: Annotated[str, typer.Option(help="The variable of positions, if sensors are scattered.")] = "x",
    force: Force = False,
) -> None:
    """Regress the operator that example pairs come from, and apply it to new functions."""
    import numpy as np

    from .storage import check_writable, read_examples, read_functions, write_arrays
    from .transducer import Transducer

    check_writable(out, force)
    T = Transducer.from_pretrained(model)
    pairs = read_examples(examples, v, u, x)
    v_query, x_query = read_functions(queries, v, x, keep_uniform=pairs.x is not None)
    start = time.perf_counter()
    u_hat = T.regress(pairs)(v_query, at=at, x=x_query)
    milliseconds = 1000 * (time.perf_counter() - start)
    at_sensors = pairs.x is not None and at is None
    answers = {u: np.asarray(u_hat), x: np.asarray(pairs.x)} if at_sensors else {u: u_hat}
    write_arrays(out, answers, force, attrs={"model": Path(model).stem, "examples": len(pairs)})
    _say(f"{model}: n = {len(pairs)} examples, {len(u_hat)} queries, {milliseconds:.1f} ms, written to {out}")


@app.command(epilog="Example: transduce train adr --out runs/adr    (on two processes: torchrun --nproc-per-node 2 -m transduce train adr)")
def train(
    name: Annotated[str, typer.Argument(help="The recipe.")],
    out: Annotated[Path | None, typer.Option(help="The folder of checkpoint, log and weights; default: runs/NAME.")] = None,
    data: Annotated[Path | None, typer.Option(help="Your own operators: v and u of shape (operator, example, *grid).")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Instead of the recipe's.")] = None,
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


@app.command(epilog="Example: transduce generate adr --operators 500 --examples 100 --out adr.zarr")
def generate(
    family: Annotated[str, typer.Argument(help="The family: adr.")],
    out: Annotated[Path, typer.Option(help="The Zarr store to write.")],
    operators: Annotated[int, typer.Option(min=1, help="How many operators.")] = 500,
    examples: Annotated[int, typer.Option(min=1, help="How many pairs of each.")] = 100,
    seed: Seed = 0,
    split: Annotated[str, typer.Option(help="train, validation or test: their draws never meet.")] = "train",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes on this machine; default: one a core.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="A dask scheduler instead, like tcp://host:8786, whose workers see the same disk.")
    ] = None,
    k_max: LargestK = 0.3,
    length_scale: Annotated[float, typer.Option(min=0.01, help="Of the coefficients delta and nu.")] = 0.2,
    t: Annotated[float, typer.Option(min=0, help="The target time.")] = 1.0,
    force: Force = False,
) -> None:
    """Draw operators of a family with examples of each; any number of workers gives the same bytes."""
    from . import generation
    from .families import AdvectionDiffusionReaction
    from .types import TransduceError

    if family != "adr":
        raise TransduceError(f"no family is called {family!r}; known: adr.")
    B = AdvectionDiffusionReaction(length_scale=length_scale, k_max=k_max, t=t)
    start = time.perf_counter()
    generation.generate(B, out, operators, examples, seed, split, workers, scheduler, force)
    _say(f"{family}: {operators} operators of {examples} examples, {time.perf_counter() - start:.0f} s, written to {out}")


def _numbers(text: str) -> list[int]:
    """The numbers in "5,10,20"."""
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = [0]
    if numbers[0] < 1:
        raise typer.BadParameter(f"{text!r}; expected numbers from 1 with commas between, like 5,10,20.")
    return numbers


@app.command(epilog="Example: transduce evaluate adr adr-softmax --n 5,10,20,50,100,200,500 --out results.json")
def evaluate(
    models: Annotated[list[str], typer.Argument(help="Bundled models, or .safetensors files.")],
    n: Annotated[Any, typer.Option(parser=_numbers, metavar="N,N,...", help="Numbers of examples.")] = "5,10,20,50,100,200,500",
    operators: Annotated[int, typer.Option(min=1, help="How many unseen operators.")] = 100,
    k_max: LargestK = 0.3,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="A .json file for the results.")] = None,
    force: Force = False,
) -> None:
    """Measure models on unseen operators of their family, beside kernel ridge tuned by leave-one-out."""
    from rich.console import Console

    from .baselines import KernelRidge
    from .evaluation import evaluate, summarise
    from .families import AdvectionDiffusionReaction
    from .files import provenance
    from .random_fields import generator_for
    from .report import write_rows
    from .storage import check_writable
    from .transducer import Transducer

    if out is not None:
        check_writable(out, force, (".json",))
    regressors: dict[str, Any] = {model: Transducer.from_pretrained(model) for model in models}
    regressors["kernel ridge"] = KernelRidge()
    rows = []
    for name, regressor in regressors.items():
        with Console(stderr=True).status(f"{name}: {operators} operators"):
            measured = evaluate(regressor, AdvectionDiffusionReaction(k_max=k_max), n, operators, generator_for("test", seed))
        rows += [{"regressor": name, **row} for row in summarise(measured)]
    _print_table(rows, title=f"relative MSE, {operators} operators, k_max = {k_max:g}")
    if out is not None:
        sizes = ",".join(map(str, n))
        command = f"transduce evaluate {' '.join(models)} --n {sizes} --operators {operators} --k-max {k_max:g} --seed {seed}"
        write_rows(out, rows, command=command, seed=seed, **provenance())
        _say(f"written to {out}")


def _print_table(rows: list[dict[str, Any]], title: str) -> None:
    """One line for each n, the regressors side by side."""
    from rich.console import Console
    from rich.table import Table

    names = list(dict.fromkeys(row["regressor"] for row in rows))
    table = Table("n", *(f"{name}\n{what}" for name in names for what in ("mean", "median", "pooled")), title=title)
    for n in dict.fromkeys(row["n"] for row in rows):
        errors = [row[what] for row in rows if row["n"] == n for what in ("mean", "median", "pooled")]
        table.add_row(str(n), *(f"{error:.2e}" for error in errors))
    width = max(Console().width, 10 + 44 * len(names))  # no number is cut where there is no terminal
    Console(width=width, quiet=int(os.environ.get("RANK", 0)) > 0).print(table)


def main() -> None:
    """The console command."""
    app(prog_name="transduce")
