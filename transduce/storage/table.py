"""A table of columns with names, from text, Parquet or R."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from ..types import TransduceError
from .columns import Variable, variables_of
from .numerals import number


@dataclass(frozen=True, eq=False)
class Table:
    """A table.

    Args:
        path: what messages call it.
        names: of its columns, or None if it has no header.
        values: its numbers, shape (rows, columns), NaN where a value is missing or is text.
        text: columns that hold some text, by number.
        wrong: for each of these, the first row that holds text.
        lines: for text files, the line of each row, from 0.
        notes: how it was read where that may be wrong.
    """

    path: Path
    names: list[str] | None
    values: Float64[np.ndarray, "rows columns"]
    text: dict[int, np.ndarray] = field(default_factory=dict)
    wrong: dict[int, int] = field(default_factory=dict)
    lines: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        return self.values.shape[1]

    def called(self, column: int) -> str:
        """The name of a column, or its number."""
        name = "" if self.names is None else self.names[column]
        return name or f"column {column + 1}"

    def is_text(self, column: int) -> bool:
        """Whether a column holds more text than numbers."""
        if column not in self.text:
            return False
        filled = sum(bool(cell) for cell in self.text[column].tolist())
        return bool(2 * np.isfinite(self.values[:, column]).sum() < filled)

    def variables(self, columns: list[int]) -> list[Variable]:
        """The variables that columns form. Without a header, all are one."""
        if self.names is None:
            return [Variable("values", tuple(columns))]
        return variables_of(self.names, columns, self.path)

    def labels(self, column: int) -> np.ndarray:
        """A column as labels of rows: text, whole numbers or numbers."""
        if column in self.text:
            return self.text[column].astype(str)
        values = self.values[:, column]
        whole = np.isfinite(values).all() and (values == np.round(values)).all()
        return values.astype(np.int64) if whole and np.abs(values).max() < 2**53 else values

    def cells(self, column: int) -> list[str]:
        """A column of text, without blanks around its cells."""
        return [str(cell).strip() for cell in self.text[column].tolist()]

    def numbers(self, columns: tuple[int, ...]) -> Float64[np.ndarray, "rows chosen"]:
        """Columns of numbers."""
        for column in columns:
            if column in self.text:
                raise self.not_a_number(column)
        return self.values[:, list(columns)]

    @property
    def starts_with_positions(self) -> bool:
        """Whether the numbers of the first column ascend or descend."""
        steps = np.diff(self.values[:, 0])
        return len(steps) > 0 and bool((steps > 0).all() or (steps < 0).all())

    def transposed(self) -> Table:
        """The table with a row for each column, labelled by its name. Positions in the first column
        become names."""
        first = int(self.starts_with_positions)
        columns = tuple(range(first, self.width))
        rows = self.numbers(columns).T
        places = [str(x) for x in (self.values[:, 0] if first else range(len(self.values)))]
        if self.names is None:
            return Table(self.path, places if first else None, rows)
        labels = np.array([self.called(j) for j in columns])
        values = np.column_stack([np.full(len(rows), np.nan), rows])
        return Table(self.path, ["function", *places], values, {0: labels}, {0: 0})

    def not_a_number(self, column: int) -> TransduceError:
        """The error for a column that should hold numbers and holds some text."""
        wrong = self.wrong.get(column, 0)
        cell = str(self.text[column][wrong])
        where = f"line {self.lines[wrong] + 1}" if self.lines else f"row {wrong}"
        remedy = "Write NA for a value that is missing, or name other columns (--v, --u, "
        if any(mark.isdigit() for mark in cell):
            remedy = (
                "Write numbers without thousands separators, all with the same decimal mark, and "
                "NA for a value that is missing, or name other columns (--v, --u, "
            )
        return TransduceError(
            f"{where} of {self.path} has {cell[:30]!r} in {self.called(column)}; expected a "
            f"number. {remedy}--parameters)."
        )


def table_of_columns(path: Path, columns: dict[str, np.ndarray]) -> Table:
    """A table of columns of equal length: numbers, dates or text.

    Args:
        path: what messages call it.
        columns: by name.
    """
    rows = len(next(iter(columns.values()), ()))
    if not rows:
        raise TransduceError(
            f"{path} holds a table without values; expected a row of numbers for each function. "
            "Write it again."
        )
    values, text, wrong = np.full((rows, len(columns)), np.nan), {}, {}
    for j, column in enumerate(columns.values()):
        if column.dtype.kind in "fiub":
            values[:, j] = column
        else:
            text[j] = np.array([str(cell) for cell in column])
            wrong[j] = next((i for i, cell in enumerate(text[j]) if number(cell) is None), 0)
    return Table(path, list(columns), values, text, wrong)
