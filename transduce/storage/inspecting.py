"""What a file holds, in words: shapes, types, ranges, units, grids, gaps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..types import Array, DataArray, TransduceError
from .formats import format_of
from .open_file import RESERVED, Description, OpenFile, as_vector
from .opening import opened
from .single_columns import NO_CATEGORY

SHOWN = 20  # variables that are listed
LEVELS = 5  # categories that are listed
LAYOUTS = {
    "wide": "a table with a row for each function",
    "long": "a table with a row for each point",
    "columns": "a table with a column for each function",
    "marked": "a table with a function in each row, and first what it is",
}


def lines_about(path: Path, columns: bool = False) -> list[str]:
    """A line on the file, one on each variable, and notes.

    Args:
        path: the file.
        columns: whether functions look like the columns of arrays.
    """
    with opened(path) as file:
        head = f"{path}: {format_of(path)}"
        head += f", {LAYOUTS[file.layout]}" if file.layout else ""
        rows = list(_rows(file, columns))
        return [head, *_table(rows), *_more(file), *file.notes, *file.guesses]


def _more(file: OpenFile) -> list[str]:
    return [f"  and {len(file.names) - SHOWN} more"] if len(file.names) > SHOWN else []


def _rows(file: OpenFile, columns: bool) -> Iterator[list[str]]:
    """For each variable its name, shape, type, range and the rest."""
    first = file.columns or ()
    names = [*first, *(name for name in file.names if name not in first)]
    if file.singles and file.whole in names:  # its columns are listed one by one
        names.remove(file.whole)
    for name in names[:SHOWN]:
        about = file.described(name)
        try:
            array = file.fetch(name)
        except TransduceError as error:
            yield [name, "", about.dtype, str(error)]
            continue
        values = np.asarray(array)
        unit = f" {about.units}" if about.units else ""
        yield [
            name,
            _axes(about, columns),
            "text" if values.dtype.kind in "UO" else str(values.dtype),
            _range(values) + unit,
            _grid(array, about),
        ]


def _table(rows: list[list[str]]) -> list[str]:
    """Rows with their first three columns aligned."""
    widths = [max((len(row[j]) for row in rows), default=0) for j in range(3)]
    return [
        "  " + "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)),
                          ", ".join(filter(None, row[3:]))]).rstrip()
        for row in rows
    ]  # fmt: skip


def _axes(about: Description, columns: bool) -> str:
    """The shape, and what the axes of functions are."""
    shape = str(about.shape)
    if about.name.rpartition(".")[2] in RESERVED or about.coordinate or not about.numeric:
        return shape
    two = "points, examples" if columns else "examples, points"
    known = {1: "examples", 2: two, 3: "examples, channels or x, points"}
    return f"{shape} {known.get(len(about.shape), '')}".rstrip()


def _range(values: np.ndarray) -> str:
    """From the least to the greatest value, and how many are missing."""
    if not values.size:
        return "no values"
    if values.dtype.kind == "c":
        return "complex numbers"
    if values.dtype.kind not in "fiub":
        return _levels(values) if values.ndim else ""
    numbers = values.astype(np.float64)
    there = numbers[np.isfinite(numbers)]
    said = f"{there.min():.4g} to {there.max():.4g}" if len(there) else "no values"
    missing = ~np.isfinite(numbers)
    if not missing.any():
        return said
    rows = int(missing.reshape(len(numbers), -1).any(1).sum()) if numbers.ndim else 1
    return f"{said}, {int(missing.sum())} missing in {rows} of {len(numbers)} rows"


def _levels(values: np.ndarray) -> str:
    """How many categories a column of text holds, and which if they are few."""
    cells = [str(cell) for cell in values.ravel().tolist()]
    there = [cell for cell in cells if cell.lower() not in NO_CATEGORY]
    levels = sorted(set(there))
    shown = f": {', '.join(levels)}" if len(levels) <= LEVELS else ""
    missing = f", {len(cells) - len(there)} missing" if len(there) < len(cells) else ""
    noun = "category" if len(levels) == 1 else "categories"
    return f"{len(levels)} {noun}{shown}{missing}"


def _grid(array: Array, about: Description) -> str:
    """The positions of the last axis, if they are known."""
    if about.name.rpartition(".")[2] in RESERVED[:5] or about.coordinate:
        return grid_in_words(np.asarray(as_vector(array)))
    if not isinstance(array, DataArray) or array.ndim < 2:
        return ""
    points = array.dims[-1]
    return grid_in_words(np.asarray(array.coords[points])) if points in array.coords else ""


def grid_in_words(x: np.ndarray) -> str:
    """Such as "grid 400 to 700, step 2"."""
    if x.ndim != 1 or len(x) < 2:
        return ""
    if x.dtype.kind in "UO":
        return f"columns {x[0]} to {x[-1]}"
    if x.dtype.kind not in "fiu":
        return f"grid {x[0]!s:.19} to {x[-1]!s:.19}"
    steps = np.diff(x.astype(np.float64))
    even = np.ptp(steps) <= 1e-3 * np.abs(steps).mean()
    return f"grid {x[0]:g} to {x[-1]:g}, " + (f"step {steps.mean():.4g}" if even else "uneven")
