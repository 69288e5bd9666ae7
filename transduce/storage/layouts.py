"""Tables as variables.

wide    one row for each function: v_0, v_1, ..., u_0, u_1, ...; a leading column may label rows
long    one row for each point: id, x, v, u
columns one column for each function, after a column of positions: wavelength, s1, s2, ...
marked  one row for each function, whose first cell says what it is: v, u or v_query
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .columns import WHOLE, Variable, label_of, without_unit
from .labelling import is_label, may_measure
from .long_tables import read_long
from .open_file import RESERVED
from .single_columns import counting, frame_of, is_short, singles_of
from .table import Table
from .text import KINDS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

FEW = 8  # rows that positions have at least
AXES = {"wavelength", "wavelengths", "wavenumber", "wavenumbers", "nm"}  # of spectra

Rows = tuple[str, dict[str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Contents:
    """The variables of a table.

    Args:
        arrays: functions that make the variable of each name.
        candidates: the names that may be v or u, in the order of their columns.
        whole: the name of the variable of all columns, for files that hold one variable.
        notes: how the table was read.
        guesses: how it was read where that may be wrong.
        layout: "wide", "long", "marked" or "columns".
        position: the name of the column that became the positions x, or "".
        functions: the names of the variables of many columns.
        singles: the names of the columns that may be parameters.
        counts: the names of the columns of integers that label rows.
    """

    arrays: Mapping[str, Callable[[], xr.DataArray]]
    candidates: tuple[str, ...]
    whole: str | None
    layout: str
    position: str = ""
    notes: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    singles: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()


def contents_of(table: Table, layout: str = "") -> tuple[Table, Contents]:
    """A table with an example in each row, or in several, and its variables.

    Args:
        table: the table.
        layout: "wide" if each row is an example and "columns" if each column is, whatever the
            table looks like; default: as it looks.
    """
    if layout == "columns" or (not layout and _has_functions_in_columns(table)):
        note = (
            f"{table.called(0)!r} of {table.path} is read as positions, and each further column as "
            "a function. If each row is an example, name what is a parameter (--parameters)."
        )
        guesses = () if layout else (note,)
        other = table.transposed()
        found = replace(_wide(other), layout="columns", notes=(), guesses=guesses)
        return other, replace(
            found, position=table.called(0) if table.starts_with_positions else ""
        )
    return table, _marked(table) if _is_marked(table) else _in_rows(table, layout == "wide")


def _has_functions_in_columns(table: Table) -> bool:
    """Whether the first column has positions, by its name, and the others are counted."""
    if table.names is None or len(table.values) < FEW or not table.starts_with_positions:
        return False
    if label_of(table.names[0]).name.strip().lower() not in AXES or len(table.text):
        return False
    others = table.variables(list(range(1, table.width)))
    x = others[0].x if len(others) == 1 else None
    return x is not None and bool((np.diff(x) == 1).all())


def _in_rows(table: Table, wide: bool) -> Contents:
    """The variables of a table with an example in each row, or a point."""
    pivoted = None if wide else read_long(table)
    if pivoted is not None:
        arrays, position, notes = pivoted
        names = tuple(name for name in arrays if name not in RESERVED)
        made = {name: partial(_same, array) for name, array in arrays.items()}
        guesses = notes if notes and len(arrays[names[0]]) == 1 else ()
        said = () if guesses else notes
        return Contents(made, names, None, "long", position, said, guesses)
    return _wide(table)


def _wide(table: Table) -> Contents:
    label = _label_column(table)
    variables = _variables(table, label)
    functions = [one for one in variables if one.is_function]
    numbers = [one for one in variables if _is_number(one, table)]
    few = [one for one in functions if one.name not in RESERVED]
    candidates = few if len(few) > 1 else [*few, *numbers]
    rows = _rows(table, label)
    main = [one for one in functions if not is_short(one)] or functions
    shared = _shared(main)
    arrays = {one.name: _maker(table, one, rows, shared and one in main) for one in variables}
    whole = None
    if not functions and len(numbers) > 1:
        whole = WHOLE
        everything = Variable(WHOLE, tuple(j for one in numbers for j in one.columns))
        arrays[whole] = _maker(table, everything, rows, True)
    curves = tuple(one.name for one in few if not is_short(one))
    singles = singles_of(table, variables)
    labels = [j for j in (label, *counting(table, variables)) if j is not None]
    counts = tuple(without_unit(table.called(j)) for j in labels if may_measure(table, j))
    if shared and main and main[0].x is not None:
        arrays["x"] = partial(_positions, main[0].x)
    names = tuple(one.name for one in candidates)
    notes, guesses = _notes(table, label)
    guesses = table.notes + guesses
    return Contents(arrays, names, whole, "wide", "", notes, guesses, curves, singles, counts)


def frame_maker(table: Table) -> Callable[[Sequence[str]], pd.DataFrame]:
    """A function that makes a DataFrame of the columns of some names."""
    rows = next(iter(_rows(table, _label_column(table))[1].items()), None)
    return lambda names: frame_of(table, names, rows)


def _variables(table: Table, label: int | None) -> list[Variable]:
    """The variables in the order of their columns. Each column of text is one of its own."""
    columns = [j for j in range(table.width) if j != label]
    names = table.names or []
    text = [j for j in columns if table.is_text(j)] if names else []
    _check_no_points(table, text)
    found = table.variables([j for j in columns if j not in text])
    found += [Variable(without_unit(names[j]), (j,)) for j in text]
    return [_unreserved(one, table) for one in sorted(found, key=lambda one: min(one.columns))]


def _check_no_points(table: Table, text: Sequence[int]) -> None:
    """Raise an error if a column of text is a point of a function, by its name."""
    if not text:
        return
    found = {j: label_of(name) for j, name in enumerate(table.names or ())}
    functions = {label.name for j, label in found.items() if label.place and not table.is_text(j)}
    for j in text:
        if found[j].place is not None and found[j].name in functions:
            raise table.not_a_number(j)


def _is_number(variable: Variable, table: Table) -> bool:
    """Whether a variable is a single column of numbers that may be v or u."""
    first = variable.columns[0]
    text = table.is_text(first) and table.names is not None
    return not variable.is_function and variable.name not in RESERVED and not text


def _unreserved(variable: Variable, table: Table) -> Variable:
    """Columns x1, x2, x3 are values, not positions."""
    if variable.name not in RESERVED[:5] or not variable.is_function:
        return variable
    first, last = (table.called(variable.columns[i]) for i in (0, -1))
    return Variable(f"{first}..{last}", variable.columns, variable.x, variable.unit)


def _label_column(table: Table) -> int | None:
    """The leading column, if it labels rows: an index, or text that differs from row to row."""
    if _labels_rows(table):
        return 0
    if not table.is_text(0) or table.called(0) == "groups":
        return None
    if table.names is None:
        return 0
    _check_no_points(table, [0])
    return 0 if len(np.unique(table.text[0])) == len(table.values) else None


def _labels_rows(table: Table) -> bool:
    """Whether the first column has an index, by its name or by its numbers."""
    if table.width < 2:
        return False
    if table.names is not None:
        return is_label(table.names[0], table.labels(0))
    first, n = table.values[:, 0], len(table.values)
    counted = any(np.array_equal(first, np.arange(n) + start) for start in (0, 1))
    return n > 2 and table.width > 2 and counted


def _rows(table: Table, label: int | None) -> Rows:
    """The name of the rows' dimension and, if they have them, their labels as coordinates."""
    if label is None:
        return "row", {}
    name = "" if table.names is None else label_of(table.names[label]).name.strip()
    name = name if name and name not in RESERVED else "row"
    return name, {name: table.labels(label)}


def _shared(functions: list[Variable]) -> bool:
    """Whether all functions are on the same positions."""
    first = functions[0].x if functions else None
    return all(
        one.x is not None and first is not None and np.array_equal(one.x, first)
        for one in functions
    )


def _maker(
    table: Table, variable: Variable, rows: Rows, shared: bool
) -> Callable[[], xr.DataArray]:
    """A function that makes the array of a variable."""

    def make() -> xr.DataArray:
        import xarray as xr

        name, labels = rows
        attrs = {"units": variable.unit} if variable.unit else {}
        if not variable.is_function:
            (column,) = variable.columns
            text = table.is_text(column)
            values = table.labels(column) if text else table.numbers((column,))[:, 0]
            if table.names is not None or table.width > 1:
                return xr.DataArray(values, labels, [name], variable.name, attrs)
        points = "x" if shared else f"x_{variable.name}"
        coords = labels if variable.x is None else labels | {points: variable.x}
        if variable.name == WHOLE and variable.x is None and table.names is not None:
            own = np.array([without_unit(table.called(j)) for j in variable.columns])
            points, coords = "column", labels | {"column": own}
        values = table.numbers(variable.columns)
        return xr.DataArray(values, coords, [name, points], variable.name, attrs)

    return make


def _same(array: xr.DataArray) -> xr.DataArray:
    return array


def _positions(x: np.ndarray) -> xr.DataArray:
    import xarray as xr

    return xr.DataArray(x, {"x": x}, ["x"], "x")


def _notes(table: Table, label: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What was read how, and what of that may be wrong."""
    said = () if label is None else (f"{table.called(label)!r} labels the rows of {table.path}.",)
    certain = table.names is not None or label is None or table.is_text(label)
    return (said, ()) if certain else ((), said)


def _is_marked(table: Table) -> bool:
    """Whether the first cell of each row is v, u or v_query."""
    return table.names is None and 0 in table.text and set(table.text[0].tolist()) <= KINDS


def _marked(table: Table) -> Contents:
    columns = tuple(range(1, table.width))

    def maker(kind: str) -> Callable[[], xr.DataArray]:
        import xarray as xr

        rows = table.numbers(columns)[table.text[0] == kind]
        there = np.flatnonzero(~np.isnan(rows).all(axis=0))  # kinds may be of unequal width
        rows = rows[:, : there[-1] + 1 if len(there) else 0]
        return lambda: xr.DataArray(rows, dims=[f"row_{kind}", f"x_{kind}"], name=kind)

    found = [kind for kind in ("v", "u", "v_query") if kind in table.text[0]]
    return Contents({kind: maker(kind) for kind in found}, tuple(found), None, "marked")
