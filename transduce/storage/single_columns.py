"""Columns of a table that are one number or one category for each row, as parameters are.

They are columns with names of their own, like mass or damping, and short runs of numbered ones,
like k1, k2. Labels of rows and groups are none of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..types import TransduceError
from .columns import WHOLE, Variable, label_of, without_unit
from .labelling import LABELS, is_label
from .numerals import MISSING
from .open_file import RESERVED
from .table import Table

if TYPE_CHECKING:
    import pandas as pd

CURVE = 8  # columns of numbers from which on they are points of a curve
ROLES = {"v", "u", "V", "U", "v_query", WHOLE, *RESERVED[-2:]}
QUANTITIES = {"group", "date", "time", "datetime", "timestamp", "day", "station", "site"}
NO_CATEGORY = MISSING - {"none"}  # cells of a column of text that are missing
TRUTH = {"true": True, "false": False}
LISTED = 12  # columns that a message names


def is_short(variable: Variable) -> bool:
    """Whether columns of a common name are rather a few numbers, like k1, k2, k3."""
    if not variable.is_function or variable.name in ROLES or variable.x is None:
        return False
    n = len(variable.columns)
    return n < CURVE and any(np.array_equal(variable.x, np.arange(n) + k) for k in (0, 1))


def singles_of(table: Table, variables: Sequence[Variable]) -> tuple[str, ...]:
    """The names of the columns that may be parameters, without units.

    Args:
        table: the table.
        variables: of its columns, without those of labels.
    """
    if table.names is None:
        return ()
    labels = counting(table, variables)
    columns = [j for j in _single(variables) if j not in labels]
    return tuple(without_unit(table.names[j]) for j in columns)


def counting(table: Table, variables: Sequence[Variable]) -> list[int]:
    """The single columns that only number or name the rows.

    Args:
        table: the table.
        variables: of its columns, without those of labels.
    """
    names = LABELS - QUANTITIES
    return [j for j in _single(variables) if is_label(table.called(j), table.labels(j), names)]


def _single(variables: Sequence[Variable]) -> list[int]:
    chosen = [one for one in variables if is_short(one) or not one.is_function]
    return sorted(j for one in chosen if one.name not in ROLES for j in one.columns)


def frame_of(
    table: Table, names: Sequence[str], rows: tuple[str, np.ndarray] | None
) -> pd.DataFrame:
    """Columns of a table by name: numbers as float64, true and false as booleans, text as objects.

    Args:
        table: the table.
        names: of the columns, with or without units.
        rows: what the labels of rows are called, and these; or None.
    """
    import pandas as pd

    own = [] if table.names is None else [name.strip() for name in table.names]
    places = {name: j for j, name in reversed(list(enumerate(own)))}
    places = {without_unit(name): j for name, j in places.items()} | places
    unknown = [name for name in names if name not in places]
    if unknown:
        raise TransduceError(
            f"{table.path} has no column {' or '.join(map(repr, unknown))}; its columns are "
            f"{_listed(own)}. Add what is missing, or name other columns (--parameters, --u)."
        )
    index = None if rows is None else pd.Index(rows[1], name=rows[0])
    columns = {without_unit(name): _cells(table, places[name]) for name in names}
    frame = pd.DataFrame(columns, index=index)
    units = {without_unit(name): label_of(own[places[name]]).unit for name in names}
    frame.attrs["units"] = {name: unit for name, unit in units.items() if unit}
    return frame


def _cells(table: Table, column: int) -> np.ndarray:
    """The values of one column."""
    if not table.is_text(column):
        return table.numbers((column,))[:, 0]
    cells = [None if cell.lower() in NO_CATEGORY else cell for cell in table.cells(column)]
    if all(cell is not None and cell.lower() in TRUTH for cell in cells):
        return np.array([TRUTH[str(cell).lower()] for cell in cells])
    return np.array(cells, dtype=object)


def _listed(names: Sequence[str]) -> str:
    """Names with commas between; functions by their first and last column."""
    shown: list[str] = []
    for name in names:
        group = label_of(name)
        if shown and group.place is not None and _stem(shown[-1]) == group.name:
            shown[-1] = f"{shown[-1].partition('..')[0]}..{name}"
        else:
            shown.append(name)
    more = f" and {len(shown) - LISTED} more" if len(shown) > LISTED else ""
    return (", ".join(shown[:LISTED]) or "numbered, without a header") + more


def _stem(shown: str) -> str | None:
    found = label_of(shown.partition("..")[0])
    return found.name if found.place is not None else None
