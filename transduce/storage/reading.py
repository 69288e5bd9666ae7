"""Examples, queries and single variables of files."""

from __future__ import annotations

import numpy as np

from ..files import PathLike
from ..types import Array, ExampleSet, TransduceError
from .choosing import opened_pairs, opened_queries
from .open_file import OpenFile
from .opening import opened
from .roles import Choice


def read_examples(
    path: PathLike,
    v: str | None = None,
    u: str | None = None,
    x: str = "x",
    outputs: PathLike | None = None,
    columns: bool = False,
) -> ExampleSet:
    """The example pairs in a file.

    In an .npz, x holds the positions of the sensors. In the other formats x is often the
    coordinate of a grid: there it means scattered sensors only if its steps are unequal.

    Args:
        path: the file.
        v: the name of the variable of inputs; default: v, or the first in a table of two.
        u: the name of the variable of outputs; default: u, or the second in a table of two.
        x: the name of the variable of positions, which may be missing.
        outputs: the file of the outputs, if the first has the inputs alone.
        columns: whether functions are the columns of the arrays.

    >>> read_examples("pairs.npz")
    ExampleSet(n=50, v=(50, 101), u=(50, 101))
    """
    with opened_pairs(path, Choice(v, u, outputs, columns)) as file:
        if "v" not in file.names and file.parameters() is not None:
            raise TransduceError(
                f"{path} has parameters as the only inputs; expected functions v. Use the general "
                "model, which takes both, or name a variable (--v)."
            )
        return ExampleSet(file.fetch("v"), file.fetch("u"), _positions(file, x))


def _positions(file: OpenFile, name: str) -> Array | None:
    """Scattered positions of v and u. Two files must have the same."""
    if name != "x" or "x" in file.names or "x_v" not in file.names:
        return file.positions(name)
    x = file.positions("x_v")
    if x is not None and "x_u" in file.names and not np.array_equal(x, file.fetch("x_u")):
        raise TransduceError(
            f"{file.path} and the file of outputs have different positions; this model expects "
            "the same. Use the general model, which takes both."
        )
    return x


def read_functions(
    path: PathLike,
    v: str | None = None,
    x: str = "x",
    keep_uniform: bool = False,
    columns: bool = False,
) -> tuple[Array, Array | None]:
    """Functions without outputs, and the positions of their sensors if these are scattered.

    Args:
        path: the file.
        v: the name of the variable of functions; default: v, or the only one.
        x: the name of the variable of positions, which may be missing.
        keep_uniform: whether to return the positions of a uniform grid as well.
        columns: whether functions are the columns of the array.
    """
    with opened_queries(path, Choice(v, columns=columns)) as file:
        v_query = file.fetch("v")
        return v_query, file.positions(x, keep_uniform) if x in file.names else None


def read_variable(path: PathLike, name: str) -> Array:
    """One variable of a file."""
    with opened(path) as file:
        return file.fetch(name)
