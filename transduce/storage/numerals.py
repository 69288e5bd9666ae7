"""Numbers and dates that are written as text."""

from __future__ import annotations

import re

import numpy as np

MISSING = {"", "na", "n/a", "nan", "null", "none", "-", ".", "?", "#n/a", "<na>"}
DATE = re.compile(r"^\d{4}[-/]\d{2}([-/]\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?)?$")


def number(cell: str, decimal_comma: bool = False) -> float | None:
    """The number in a cell; NaN if its value is missing, None if it is something else.

    >>> number("1.5"), number("NA"), number("Monday")
    (1.5, nan, None)
    """
    cell = cell.strip()
    if cell.lower() in MISSING:
        return float("nan")
    if "_" in cell:  # float() takes 1_000
        return None
    try:
        return float(cell.replace(",", ".") if decimal_comma else cell)
    except ValueError:
        return None


def is_number(cell: str, decimal_comma: bool = False) -> bool:
    """Whether a cell holds a number that is not missing."""
    found = number(cell, decimal_comma)
    return found is not None and found == found


def numbers(cells: list[str], decimal_comma: bool = False) -> tuple[np.ndarray, list[int]]:
    """A column of cells as float64, shape (n,), and the places of cells that hold text."""
    try:
        if not decimal_comma and "_" not in "".join(cells):
            return np.array(cells, dtype=np.float64), []
    except ValueError:
        pass
    found = [number(cell, decimal_comma) for cell in cells]
    text = [i for i, value in enumerate(found) if value is None]
    return np.array([np.nan if value is None else value for value in found]), text


def positions(labels: list[str]) -> np.ndarray | None:
    """Numbers or ISO dates as an array of shape (n,), or None if a label is neither."""
    if labels and all(DATE.match(label) for label in labels):
        try:
            return np.array([label.replace("/", "-") for label in labels], dtype="datetime64[ns]")
        except ValueError:
            return None
    values, text = numbers(labels)
    return None if text or not np.isfinite(values).all() else values
