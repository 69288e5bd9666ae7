"""Whether the first row of a text table is its header, and the table that follows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..types import TransduceError
from .labelling import LABELS
from .numerals import MISSING, is_number, number, numbers
from .table import Table
from .text import Cells

FEW = 5  # fewer numbers in the first row are values, not positions
MANY = 8  # from here on, uneven positions are recognised too
LOOKED_AT = 20  # rows that are compared with the first


def table_of(cells: Cells) -> Table:
    """The table in the cells of a text file."""
    names, rows, note = _header(cells)
    if names is not None and cells.decimal_comma:
        names = [re.sub(r"(?<=\d),(?=\d)", ".", name) for name in names]
    first = len(cells.rows) - len(rows)
    values, text, wrong = np.empty((len(rows), cells.width)), {}, {}
    for j in range(cells.width):
        column = [row[j] for row in rows]
        values[:, j], places = numbers(column, cells.decimal_comma)
        if places:
            text[j], wrong[j] = np.array(column), places[0]
    if len(text) == cells.width:
        raise _no_numbers(cells.path, rows)
    return Table(cells.path, names, values, text, wrong, tuple(cells.lines[first:]), note)


def _header(cells: Cells) -> tuple[list[str] | None, list[list[str]], tuple[str, ...]]:
    """The names of columns or None, the rows below, and what to tell the user."""
    first, rest = cells.rows[0], cells.rows[1:]
    if _names_columns(first, rest, cells.decimal_comma):
        return first, rest, ()
    if _are_positions(first, rest, cells.decimal_comma):
        note = (
            f"the first row of {cells.path} is read as positions, from {first[0] or first[1]} to "
            f"{first[-1]}. If it is a function, add a header above it, like v_0, v_1, ..."
        )
        return first, rest, () if _is_regular(_finite(first[1:], cells.decimal_comma)) else (note,)
    comment = cells.comment
    if comment is not None and len(comment) == cells.width:
        return comment, cells.rows, ()
    return None, cells.rows, ()


def _names_columns(first: list[str], rest: list[list[str]], comma: bool) -> bool:
    """Whether the first row has names."""
    named = [j for j, cell in enumerate(first) if number(cell, comma) is None]
    if first[0] == "" and rest and rest[0][0] != "":
        named.append(0)
    if not rest or not named:
        return False
    if len(named) == len(first) or any(_is_numeric(rest, j, comma) for j in named):
        return True
    return first[0].strip().lower() in LABELS


def _is_numeric(rows: list[list[str]], column: int, comma: bool) -> bool:
    """Whether the first value that is not missing is a number."""
    cells = (row[column] for row in rows if row[column].lower() not in MISSING)
    return is_number(next(cells, ""), comma)


def _are_positions(first: list[str], rest: list[list[str]], comma: bool) -> bool:
    """Whether the first row holds numbers that ascend or descend as those of the rows below do
    not. A label may stand before them."""
    skip = int(not is_number(first[0], comma))
    row = _finite(first[skip:], comma)
    below = [_finite(cells[skip:], comma) for cells in rest[:LOOKED_AT]]
    if row is None or len(row) < FEW or not below or not _is_monotone(row):
        return False
    if _is_regular(row) and not any(map(_is_regular, below)):
        return True
    return len(row) >= MANY and not any(f is not None and _is_monotone(f) for f in below)


def _finite(cells: list[str], comma: bool) -> np.ndarray | None:
    values, text = numbers(cells, comma)
    return None if text or not np.isfinite(values).all() else values


def _is_monotone(row: np.ndarray) -> bool:
    steps = np.diff(row)
    return bool((steps > 0).all() or (steps < 0).all())


def _is_regular(row: np.ndarray | None) -> bool:
    if row is None:
        return False
    steps = np.diff(row)
    return _is_monotone(row) and float(np.ptp(steps)) <= 1e-2 * float(np.abs(steps).mean())


def _no_numbers(path: Path, rows: list[list[str]]) -> TransduceError:
    if len(rows) == 1 and len(rows[0]) > 1:
        return TransduceError(
            f"{path} has a header and no rows; expected a row of numbers for each function. Write "
            "it again."
        )
    shown = ", ".join(rows[0][:3])
    return TransduceError(
        f"{path} holds text where numbers are expected ({shown[:60]!r}, ...); expected rows like "
        "0.1,0.2,0.3 with commas, semicolons, tabs or blanks between. Write numbers, or another "
        "suffix if it is another format."
    )
