"""Long tables, with a row for each point, as functions.

id  x    v    u
a   0.0  1.2  0.3
a   0.5  1.4  0.1        ->   v (ids, points), u (ids, points), x (points,)
b   0.0  0.9  0.7
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from ..inputs.messages import few
from ..types import TransduceError
from .columns import label_of
from .numerals import positions
from .table import Table

if TYPE_CHECKING:
    import xarray as xr

IDS = {
    *("id", "sample", "run", "case", "curve", "function", "example", "pair", "subject", "series"),
    *("group", "trial", "patient", "station", "site", "name", "experiment", "operator", "key"),
}
POSITIONS = {
    *("x", "t", "time", "position", "pos", "wavelength", "wavenumber", "lambda", "frequency"),
    *("freq", "depth", "height", "altitude", "hour", "minute", "second", "distance", "date"),
    *("datetime", "timestamp", "point", "angle", "theta", "energy", "s", "grid", "coordinate"),
}
FEW, ALIKE = 8, 0.8  # points of a function, and share of functions that have all of them
DATES = {"time", "date", "datetime", "timestamp"}


def read_long(table: Table) -> tuple[dict[str, xr.DataArray], str, tuple[str, ...]] | None:
    """The functions of a long table, the name of the column of positions and what to tell the user;
    None if the table is wide."""
    if table.names is None:
        return None
    x_column = _first_called(table, POSITIONS)
    if x_column is None or any(one.is_function for one in table.variables(_numeric(table))):
        return None
    id_column = _id_column(table, x_column)
    values = [j for j in _numeric(table) if j not in (x_column, id_column)]
    x = positions([str(cell) for cell in table.labels(x_column)])
    if not values or x is None:
        return None
    labels = _by_blocks(x) if id_column is None else table.labels(id_column)
    if _is_doubtful(table, x_column, id_column, labels, x):
        return None
    names, places = np.unique(labels, return_index=True)
    names = names[np.argsort(places)]
    order, grid = _order(labels, names, x, table)
    dims = "row" if id_column is None else label_of(table.names[id_column]).name
    rows = (dims if dims != "x" else "row", names)
    notes = _notes(table, x_column, id_column, len(names))
    return _arrays(table, values, order, rows, grid), table.called(x_column), notes


def _arrays(
    table: Table,
    values: list[int],
    order: Int[np.ndarray, "functions points"],
    rows: tuple[str, np.ndarray],
    grid: np.ndarray,
) -> dict[str, xr.DataArray]:
    """The variables; points without any value of a variable are not points of its grid."""
    import xarray as xr

    name, labels = rows
    arrays, everywhere = {}, True
    for column in values:
        parts = label_of(table.called(column))
        numbers = np.where(order < 0, np.nan, table.numbers((column,))[order, 0])
        there = ~np.isnan(numbers).all(0)
        everywhere = everywhere and bool(there.all())
        key = table.called(column) if parts.place else parts.name
        points = "x" if there.all() or not there.any() else f"x_{key}"
        kept = there if there.any() else np.full(len(grid), True)
        coords = {name: labels, points: grid[kept]}
        attrs = {"units": parts.unit} if parts.unit else {}
        arrays[key] = xr.DataArray(numbers[:, kept], coords, [name, points], key, attrs)
    if everywhere:
        arrays["x"] = xr.DataArray(grid, {"x": grid}, ["x"], "x")
    return arrays


def _first_called(table: Table, names: set[str]) -> int | None:
    called = [label_of(name).name.strip().lower() for name in table.names or ()]
    return next((j for j, name in enumerate(called) if name in names), None)


def _numeric(table: Table) -> list[int]:
    return [j for j in range(table.width) if not table.is_text(j)]


def _id_column(table: Table, x_column: int) -> int | None:
    """The column that names the function of each row: by its name, or else the first column whose
    labels repeat and that stands before the positions."""
    named = _first_called(table, IDS)
    if named is not None and named != x_column:
        return named
    before = [j for j in range(x_column) if len(np.unique(table.labels(j))) < len(table.values)]
    return before[0] if before else None


def _is_doubtful(
    table: Table, x_column: int, id_column: int | None, labels: np.ndarray, x: np.ndarray
) -> bool:
    """Whether a row is probably an example, and not a point of a function.

    That is so in three cases:
    - nothing repeats, and positions are dates or in no order;
    - a column is called like an id, and most ids have one row;
    - no column is called like an id, and the rows of equal labels have different positions.
    """
    if id_column is None and len(np.unique(labels)) == 1:
        dates = label_of(table.called(x_column)).name.strip().lower() in DATES
        return dates or not _is_ordered(x)
    _, code, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if id_column is not None and label_of(table.called(id_column)).name.strip().lower() in IDS:
        return bool(counts.max() < 2 < len(counts))
    usual = np.bincount(counts).argmax()
    complete = counts == usual
    if counts.min() < 2 or not (complete.all() or (usual >= FEW and complete.mean() >= ALIKE)):
        return True
    order = np.lexsort((x, code))
    groups = x[order[complete[code[order]]]].reshape(-1, usual)
    return bool((groups != groups[0]).any())


def _is_ordered(x: np.ndarray) -> bool:
    """Whether positions ascend or descend."""
    return bool((x[1:] > x[:-1]).all() or (x[1:] < x[:-1]).all())


def _by_blocks(x: np.ndarray) -> np.ndarray:
    """The number of the function of each row. The first position begins a new function."""
    return np.maximum(np.cumsum(x == x[0]) - 1, 0)


def _order(
    labels: np.ndarray, names: np.ndarray, x: np.ndarray, table: Table
) -> tuple[Int[np.ndarray, "functions points"], np.ndarray]:
    """The row of each function and position, -1 if there is none, and the positions. At least half
    of the functions must have all of them."""
    codes = {name: i for i, name in enumerate(names.tolist())}
    code = np.array([codes[label] for label in labels.tolist()])
    order = np.lexsort((x, code))
    counts = np.bincount(code, minlength=len(names))
    sorted_x = np.split(x[order], np.cumsum(counts)[:-1])
    repeated = [str(n) for n, f in zip(names, sorted_x, strict=True) if len(np.unique(f)) < len(f)]
    if repeated:
        raise TransduceError(
            f"{table.path} has two rows at one position of {few(repeated)}; expected one for each "
            "function and position. Remove one, or write fields of two variables as .nc."
        )
    grid = max(sorted_x, key=len)
    complete = [np.array_equal(f, grid) for f in sorted_x]
    inside = [bool(np.isin(f, grid).all()) for f in sorted_x]
    if 2 * sum(complete) < len(names) or not all(inside):
        wrong = complete if all(inside) else inside
        first = names[complete.index(True)]
        other = [str(name) for name, right in zip(names, wrong, strict=True) if not right]
        raise TransduceError(
            f"{table.path} has other positions for {few(other)} than for {first} ({len(grid)} "
            "points); expected the same for all. Functions on different points are not supported: "
            "interpolate them to common points."
        )
    rows = np.full((len(names), len(grid)), -1)
    rows[code[order], np.searchsorted(grid, x[order])] = order
    return rows, grid


def _notes(table: Table, x_column: int, id_column: int | None, n: int) -> tuple[str, ...]:
    position = table.called(x_column)
    if id_column is not None:
        function = table.called(id_column)
        return (f"{table.path} has a row for each point: {function!r} names the function, "
                f"{position!r} the position.",)  # fmt: skip
    if n > 1:
        return (f"{table.path} has a row for each point: {position!r} names the position, and "
                "where it begins again a new function begins.",)  # fmt: skip
    return (f"{table.path} is read as one function of {position!r}, since no column names "
            "functions. Add a column id if it holds several.",)  # fmt: skip
