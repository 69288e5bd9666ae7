"""transduce regress | export: the operator that example pairs come from, applied or written
down."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Force
from .printing import say

if TYPE_CHECKING:
    from ..transducer import Transducer
    from ..types import Array, ExampleSet


def regress(
    examples: Annotated[
        Path,
        typer.Option(
            help=(
                "Pairs: v and u of shape (n, *grid), in .npz, .nc, .h5 or .zarr. "
                "Climate: a file or more, as t.nc,msl.nc."
            )
        ),
    ],
    queries: Annotated[
        Path, typer.Option(help="Functions v to answer for, (m, *grid). Climate: a file or more.")
    ],
    out: Annotated[Path, typer.Option(help="Where the answers u go, in the format of its suffix.")],
    model: Annotated[str, typer.Option(help="A bundled model, or a .safetensors file.")] = "adr",
    at: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Answer on a uniform grid of this many points; default: that of the examples' u.",
        ),
    ] = None,
    v: Annotated[
        str | None,
        typer.Option(
            help="The variable of inputs; default: v. Climate: temperature, by its usual names."
        ),
    ] = None,
    u: Annotated[
        str | None,
        typer.Option(
            help="The variable of outputs; default: u. Climate: pressure, by its usual names."
        ),
    ] = None,
    x: Annotated[
        str | None,
        typer.Option(help="The variable of positions, if sensors are scattered; default: x."),
    ] = None,
    force: Force = False,
) -> None:
    """Regress the operator that example pairs come from, and apply it to new functions."""
    from ..storage import check_writable, write_arrays
    from ..transducer import Transducer

    check_writable(out, force)
    T = Transducer.from_pretrained(model)
    if _of_region(T, at, x):
        answers, n, milliseconds = _climate_answers(T, _files(examples), _files(queries), v, u)
    else:
        answers, n, milliseconds = _answers(T, examples, queries, v or "v", u or "u", x or "x", at)
    write_arrays(out, answers, force, attrs={"model": Path(model).stem, "examples": n})
    m = len(next(iter(answers.values())))
    say(f"{model}: n = {n} examples, {m} queries, {milliseconds:.1f} ms, written to {out}")


def export(
    examples: Annotated[
        Path,
        typer.Option(
            help=(
                "Pairs: v and u of shape (n, *grid), as `regress` reads them. Climate: "
                "a file or more."
            )
        ),
    ],
    out: Annotated[Path, typer.Option(help="The .onnx file to write.")],
    model: Annotated[str, typer.Option(help="A bundled model, or a .safetensors file.")] = "adr",
    at: Annotated[
        int | None,
        typer.Option(
            min=1, help="Answer on a uniform grid of this many points; default: the examples' own."
        ),
    ] = None,
    v: Annotated[
        str | None,
        typer.Option(
            help="The variable of inputs; default: v. Climate: temperature, by its usual names."
        ),
    ] = None,
    u: Annotated[
        str | None,
        typer.Option(
            help="The variable of outputs; default: u. Climate: pressure, by its usual names."
        ),
    ] = None,
    x: Annotated[
        str | None,
        typer.Option(help="The variable of positions, if sensors are scattered; default: x."),
    ] = None,
    force: Force = False,
) -> None:
    """Write the operator that example pairs come from as an ONNX graph, to be run without torch."""
    from ..storage import check_writable
    from ..transducer import Transducer

    check_writable(out, force, (".onnx",))
    T = Transducer.from_pretrained(model)
    if _of_region(T, at, x):
        from ..climate_regression import condition_climate
        from ..families import open_climate

        O = condition_climate(T, open_climate(_files(examples), v=v, u=u))
    else:
        O = T.regress(_pairs(T, examples, v or "v", u or "u", x or "x"))
    written = O.export(out, at=at, force=force)
    shapes = " -> ".join(
        f"{name} ({', '.join(map(str, ('m', *shape)))})"
        for name, shape in (("v", written.v), ("u", written.u))
    )
    size, difference = f"{written.size / 1e6:.1f} MB", f"{written.difference:.1e} from torch"
    say(
        f"{model}: n = {len(O.examples)} examples, {shapes}, {size}, {difference}, written to {out}"
    )


def _of_region(T: Transducer, at: int | None, x: str | None) -> bool:
    """Whether a model is of a region, which has a grid of its own: raises if another is asked
    for."""
    from ..spaces import Region
    from ..types import TransduceError

    if isinstance(T.V, Region) and (at is not None or x is not None):
        grid = " x ".join(map(str, T.V.grid))
        raise TransduceError(
            f"{'--x' if at is None else '--at'} was given to a model of a region, whose grid is "
            f"{grid}. Leave it out."
        )
    return isinstance(T.V, Region)


Answers = tuple[
    dict[str, Any], int, float
]  # by name, from how many examples, in how many milliseconds


def _answers(
    T: Transducer, examples: Path, queries: Path, v: str, u: str, x: str, at: int | None
) -> Answers:
    import numpy as np

    from ..families.images import check_pixels
    from ..storage import read_functions

    pairs = _pairs(T, examples, v, u, x)
    v_query, x_query = read_functions(queries, v, x, keep_uniform=pairs.x is not None)
    if _classifies(T):
        check_pixels(v_query, f"{v} in {queries}")
    start = time.perf_counter()
    u_hat = T.regress(pairs)(v_query, at=at, x=x_query)
    milliseconds = 1000 * (time.perf_counter() - start)
    at_sensors = pairs.x is not None and at is None
    return (
        {u: np.asarray(u_hat), x: np.asarray(pairs.x)} if at_sensors else {u: u_hat},
        len(pairs),
        milliseconds,
    )


def _pairs(T: Transducer, examples: Path, v: str, u: str, x: str) -> ExampleSet:
    """The pairs in a file, of a kind that the model takes."""
    from ..families.images import check_pixels
    from ..storage import read_examples, read_variable

    if _classifies(T):
        _check_classes(read_variable(examples, u), f"{u} in {examples}", T.U.size)
    pairs = read_examples(examples, v, u, x)
    if _classifies(T):
        check_pixels(pairs.v, f"{v} in {examples}")
    return pairs


def _classifies(T: Transducer) -> bool:
    """Whether a model goes from images to classes: between their spaces, and by a recipe of images
    or a kernel that reads images."""
    from ..recipes import IMAGES_TO_CLASSES

    match T.card:
        case {"recipe": {"name": "images" | "images-softmax"}} | {
            "model": {"kappa": "convolutional"}
        }:
            return all(
                IMAGES_TO_CLASSES[space].items() <= T.config[space].items() for space in "VU"
            )
    return False


def _climate_answers(
    T: Transducer, examples: list[Path], queries: list[Path], v: str | None, u: str | None
) -> Answers:
    """The queries are read from the variable that the examples were: another temperature is that of
    another height."""
    from ..climate_regression import regress_climate
    from ..families import open_climate, open_inputs

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
    from ..types import TransduceError, to_tensor

    values = to_tensor(u, name)
    if (
        values.ndim != 2
        or values.shape[1] != classes
        or not (((values == 0) | (values == 1)).all() and (values.sum(1) == 1).all())
    ):
        raise TransduceError(
            f"{name} has shape {tuple(u.shape)}; this model classifies images and expects one-hot "
            f"classes of {classes} columns, "
            f"(n, {classes}), with a 1 in that of each image's class. For labels, use "
            "transduce.sklearn.TransducerClassifier."
        )
