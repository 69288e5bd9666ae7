"""Columns that label rows, and are neither functions nor parameters."""

from __future__ import annotations

import numpy as np

from .columns import label_of
from .table import Table

INDICES = {"", "id", "index", "idx", "row", "rownames", "unnamed", "key"}  # these measure nothing
LABELS = INDICES | {
    *("name", "label", "no", "nr", "number", "sample", "run", "case", "curve", "function"),
    *("example", "pair", "subject", "series", "group", "trial", "patient", "station", "site"),
    *("date", "time", "datetime", "timestamp", "day", "experiment"),
}


def is_label(name: str, values: np.ndarray, names: set[str] = LABELS) -> bool:
    """Whether a column labels rows: by its name, and by values that differ from row to row and are
    text or ascending integers. An index may be in any order.

    Args:
        name: of the column.
        values: text, integers or other numbers.
        names: those of labels.
    """
    label = label_of(name)
    called = label.name.strip().lower()
    if called not in names or (label.place is not None and not called):  # a position is no name
        return False
    if values.dtype.kind not in "iU" or len(np.unique(values)) < len(values):
        return False
    text_or_index = values.dtype.kind == "U" or called in INDICES
    return text_or_index or bool((np.diff(values) > 0).all())


def may_measure(table: Table, column: int) -> bool:
    """Whether a column that labels rows may be a parameter: integers, by its name no index."""
    if table.names is None or column in table.text:
        return False
    return label_of(table.names[column]).name.strip().lower() not in INDICES
