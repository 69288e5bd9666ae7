"""An open file: the names of its variables, and how each is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..types import Array, TransduceError, is_uniform

if TYPE_CHECKING:
    import pandas as pd

RESERVED = ("x", "x_v", "x_u", "xv", "xu", "parameters", "groups")


class MissingVariableError(TransduceError):
    """The file has no variable of this name."""


@dataclass(frozen=True)
class Description:
    """A variable, described without reading its values.

    Args:
        name: of the variable.
        shape: of its array.
        dtype: the type of its values.
        units: of its values, or "".
        dims: the names of its dimensions, if they have names.
        numeric: whether it holds numbers.
        coordinate: whether it holds the coordinates of a dimension.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    units: str = ""
    dims: tuple[str, ...] = ()
    numeric: bool = True
    coordinate: bool = False


@dataclass(frozen=True)
class OpenFile:
    """An open file.

    Args:
        path: what error messages call the file.
        names: the names of its variables.
        load: reads the variable of a name.
        x_is_positions: whether a variable x always holds positions of scattered sensors. In the
            formats of xarray, x is often the coordinate of a uniform grid.
        describe: describes the variable of a name; default: by reading it.
        columns: for tables, the variables that may be v or u, in the order of their columns.
        whole: for tables whose columns are single numbers, the variable of all columns.
        notes: how the file was read.
        guesses: how it was read where that may be wrong, of which users are warned.
        position: for tables, the column that became the positions x, or "".
        layout: for tables, "wide", "long", "marked" or "columns".
        functions: for tables, the variables of many columns.
        singles: for tables, the columns that may be parameters; for chosen files, those that are.
        counts: for tables, the columns of integers that label rows and are no parameters.
        frame: for tables with a header, reads columns of some names.
        as_layout: for tables, the same with an example in each row ("wide") or column ("columns").
    """

    path: Path
    names: Sequence[str]
    load: Callable[[str], Array]
    x_is_positions: bool = False
    describe: Callable[[str], Description] | None = None
    columns: tuple[str, ...] | None = None
    whole: str | None = None
    notes: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()
    position: str = ""
    layout: str = ""
    functions: tuple[str, ...] = ()
    singles: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    frame: Callable[[Sequence[str]], pd.DataFrame] | None = None
    as_layout: Callable[[str], OpenFile] | None = None

    def parameters(self) -> pd.DataFrame | Array | None:
        """The parameters of each row: single columns, or a variable of that name; or None."""
        if self.frame is not None and self.singles:
            return self.frame(self.singles)
        return self.fetch("parameters") if "parameters" in self.names else None

    def fetch(self, name: str) -> Array:
        """The variable of this name."""
        name = "x" if name == self.position and name not in self.names else name
        if name not in self.names:
            raise MissingVariableError(
                f"{self.path} has no variable {name!r}; it has "
                f"{', '.join(sorted(self.names)) or 'none'}. Name one of these that all files "
                "have (--v, --u, --x), or rename it."
            )
        try:
            return self.load(name)
        except ValueError as error:
            if "pickle" not in str(error):
                raise
            raise TransduceError(
                f"{name} in {self.path} holds Python objects, which is a pickle and is not read; "
                "expected numbers. Convert it with .astype(float)."
            ) from None

    def described(self, name: str) -> Description:
        """What is known about a variable."""
        return self.describe(name) if self.describe else describe_array(name, self.fetch(name))

    def candidates(self) -> list[Description]:
        """The variables that may be v or u."""
        if self.columns is not None:
            return [self.described(name) for name in self.columns]
        names = [name for name in self.names if name.rpartition(".")[2] not in RESERVED]
        found = [self.described(name) for name in names]
        return [one for one in found if one.numeric and one.shape and not one.coordinate]

    def positions(self, name: str, keep_uniform: bool = False) -> Array | None:
        """The positions of scattered sensors; None if functions are on a uniform grid.

        Args:
            name: of the variable. It may be missing if it is "x", which is the default name.
            keep_uniform: whether to return the coordinate of a uniform grid as well.
        """
        if name == "x" and name not in self.names:
            return None
        x = as_vector(self.fetch(name))
        keep = keep_uniform or self.x_is_positions or not is_uniform(np.asarray(x))
        return x if keep else None


def describe_array(name: str, array: Array, coordinate: bool = False) -> Description:
    """A variable by its array."""
    dtype = str(array.dtype).removeprefix("torch.")
    attrs, dims = getattr(array, "attrs", {}), getattr(array, "dims", ())
    return Description(
        name,
        tuple(array.shape),
        dtype,
        str(attrs.get("units", "")),
        tuple(map(str, dims)),
        np.asarray(array).dtype.kind in "fiub",
        coordinate,
    )


def as_vector(x: Array) -> Array:
    """Positions of shape (1, points) or (points, 1), as MATLAB has them, with one axis."""
    if isinstance(x, np.ndarray) and x.ndim == 2 and 1 in x.shape:
        return x.reshape(-1)
    return x


def check_size(path: Path, size: int, most: int | None) -> None:
    """Raise an error if a file unpacks to more bytes than allowed.

    Args:
        path: the file.
        size: bytes of its numbers.
        most: bytes that are allowed, or None.
    """
    if most is not None and size > most:
        raise TransduceError(
            f"{path} unpacks to {size} bytes; expected at most {most}. Give fewer functions, "
            "or fewer points."
        )
