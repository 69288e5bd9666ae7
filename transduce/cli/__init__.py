"""The command line: transduce regress | inspect | train | generate | evaluate | reproduce |
export | serve | play.

Bad input ends in one line, `transduce: error: ...`, and exit code 2. The commands import what
takes long, so that `--version` and `--help` import neither torch nor xarray."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .inspecting import inspect
from .measuring import evaluate, reproduce
from .printing import complain, say
from .regressing import export, regress
from .serving import play, serve
from .training import generate, train


class Group(TyperGroup):
    """The commands. Bad input and warnings become one line each."""

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: complain("warning", message)
            try:
                return super().invoke(ctx)
            except ValueError as error:
                from ..types import TransduceError

                if not isinstance(error, TransduceError):
                    raise
                complain("error", error)
                raise typer.Exit(2) from None


app = typer.Typer(
    cls=Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        from .. import __version__

        say(f"transduce {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Say which version."
        ),
    ] = False,
) -> None:
    """Regress operators from examples: a few pairs of functions in, the operator out."""


EXAMPLES: dict[Callable[..., None], str] = {  # in the order of --help
    regress: "transduce regress --examples pairs.npz --queries v.npz --out u.npz --band 0.9",
    inspect: "transduce inspect pairs.csv",
    train: (
        "transduce train adr --out runs/adr    (on two processes: torchrun "
        "--nproc-per-node 2 -m transduce train adr)"
    ),
    generate: (
        "transduce generate adr --operators 500 --out adr.zarr    (or: "
        "generate burgers --nu 0.1,0.5 --out burgers.zarr, generate random --out random.zarr)"
    ),
    evaluate: (
        "transduce evaluate adr adr-softmax fno --n 5,10,20,50 --operators 20 --out results.json"
    ),
    reproduce: "transduce reproduce adr --quick",
    export: "transduce export --model adr --examples pairs.npz --out operator.onnx",
    serve: (
        "transduce serve    (for other machines: TRANSDUCE_TOKEN=... transduce "
        "serve --host 0.0.0.0)"
    ),
    play: "transduce play --port 8642",
}
for command, example in EXAMPLES.items():
    app.command(epilog=f"Example: {example}")(command)


def main() -> None:
    """The console command."""
    app(prog_name="transduce")
