"""Tables with categories as tables of numbers.

A column of text or categories with two levels becomes one column of 0 and 1; with more levels, it
becomes one such column for each. Levels are those of the examples. Missing categories become NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .messages import named, problem
from .numbers import loaded, numeric_objects, reads_as_numbers

if TYPE_CHECKING:
    import pandas as pd

Levels = Mapping[str, tuple[str, ...]]
"""The levels of each column that holds categories."""
NO_LEVELS: Levels = MappingProxyType({})
MOST_LEVELS = 20  # of one column
WITHOUT = "Leave the column out: name the others, as in --parameters mass,damping."


def as_table(values: object) -> object:
    """A Series of text or categories as a DataFrame of one column. Other values are unchanged."""
    if not isinstance(values, loaded("pandas", "Series")):
        return values
    series = cast("pd.Series", values)
    frame = series.to_frame("category" if series.name is None else series.name)
    return frame if _text_columns(frame) else values


def levels_of(
    values: object, argument: str, rows: np.ndarray | None = None
) -> dict[str, tuple[str, ...]]:
    """The levels of the columns of a DataFrame that hold categories; none of anything else.

    Args:
        values: what the user gave.
        argument: the argument's name, for messages.
        rows: whether each row counts, since others are left out; None for all.
    """
    found = {}
    for name, column in _text_columns(values).items():
        _check_scalars(column, name, argument)
        some = rows is not None and len(rows) == len(column) and column[rows].notna().any()
        counted = column[rows] if some else column
        found[name] = tuple(sorted(set(_texts(counted.dropna()))))
        _check_levels(column, name, found[name], argument)
    return found


def encoded(values: object, levels: Levels, argument: str, strict: bool = True) -> object:
    """A DataFrame with categories as numbers. Other values come back unchanged.

    Args:
        values: what the user gave.
        levels: those of the examples.
        argument: the argument's name, for messages.
        strict: whether to raise at other categories; else they become NaN.
    """
    if not levels:
        return values
    table = _rows_of(values, levels, argument)
    if not isinstance(table, loaded("pandas", "DataFrame")):
        _check_no_text(table, levels, argument)
        return values
    import pandas as pd

    frame = cast("pd.DataFrame", table)
    _check_codes([str(label) for label in frame.columns], levels, argument)
    columns: dict[str, object] = {}
    for label in frame.columns:
        name, column = str(label), frame[label]
        if name not in levels:
            columns[name] = column
            continue
        text = np.array(_texts(column), dtype=object)
        if strict:
            _check_known(set(text[column.notna()]), name, levels[name], argument)
        known = column.notna().to_numpy() & np.isin(text, levels[name])
        columns |= {
            code: np.where(known, text == level, np.nan)
            for code, level in _codes(name, levels[name])
        }
    return pd.DataFrame(columns, index=frame.index)


def is_design(values: object, fewer_than: int) -> bool:
    """Whether a DataFrame is a small table with categories, as tables of parameters are.

    Args:
        values: what the user gave.
        fewer_than: how many columns it must not reach.
    """
    table = as_table(values)
    if not isinstance(table, loaded("pandas", "DataFrame")):
        return False
    if cast("pd.DataFrame", table).shape[1] >= fewer_than:
        return False
    columns = _text_columns(table).values()
    return any(_is_categorical(column) or not reads_as_numbers(column) for column in columns)


def complete_rows_of(values: object) -> np.ndarray | None:
    """Whether each row of a DataFrame has all its values, and finite numbers; else None."""
    if not isinstance(values, loaded("pandas", "DataFrame")):
        return None
    frame = cast("pd.DataFrame", values)
    numbers = frame.select_dtypes("number", exclude="complex").to_numpy(
        dtype=np.float64, na_value=np.nan
    )
    whole: np.ndarray = frame.notna().all(axis=1).to_numpy() & np.isfinite(numbers).all(axis=1)
    return whole


def owners(levels: Levels) -> dict[str, str]:
    """For each column that encodes a category, the column of the user's table."""
    return {code: name for name, own in levels.items() for code, _ in _codes(name, own)}


def owned(names: Sequence[str], count: int, levels: Levels) -> list[str]:
    """The columns of the user's table, quoted, for each of `count` columns of numbers.

    Args:
        names: of the columns of numbers; () if they are numbered.
        count: how many there are.
        levels: of the categories.
    """
    known = owners(levels)
    return [repr(known.get(name, name)) for name in names] or [str(j) for j in range(count)]


def _codes(name: str, levels: tuple[str, ...]) -> list[tuple[str, str]]:
    """The names of the columns that encode a category, each with the level that is 1 there."""
    if not levels:  # all are missing
        return [(name, "")]
    shown = levels[1:] if len(levels) == 2 else levels
    return [(f"{name}={level}", level) for level in shown]


def _texts(column: Iterable[object]) -> list[str]:
    """Categories as text: bytes are decoded."""
    return [c.decode(errors="replace") if isinstance(c, bytes) else str(c) for c in column]


def _rows_of(values: object, levels: Levels, argument: str) -> object:
    """A table of queries. Raises if it is a single row of one."""
    if not isinstance(values, loaded("pandas", "Series")):
        return values
    series = cast("pd.Series", values)
    if set(levels) <= {str(label) for label in series.index}:
        raise problem(
            f"{argument} is a single row of a table",
            "a table with one row for each query",
            f"For a single query, give {argument}.to_frame().T.",
        )
    return series.to_frame(next(iter(levels))) if len(levels) == 1 else values


def _check_no_text(values: object, levels: Levels, argument: str) -> None:
    """Raise if an array without names of columns holds categories."""
    if isinstance(values, np.ndarray | list | tuple) and _holds_text(values):
        raise problem(
            f"{argument} holds text in an array, and the examples have categories in "
            f"{named([repr(name) for name in levels], 'column')}",
            "a table with the columns of the examples",
            f"Give pd.DataFrame({argument}, columns=...) with their names.",
        )


def _holds_text(values: Any) -> bool:
    cells = np.asarray(values, dtype=object).ravel()
    return any(isinstance(cell, str) for cell in cells)


def _check_scalars(column: pd.Series, name: str, argument: str) -> None:
    kinds = {type(c).__name__ for c in column if isinstance(c, list | tuple | dict | set)}
    kinds |= {"array" for c in column if isinstance(c, np.ndarray)}
    if kinds:
        raise problem(
            f"column {name!r} of {argument} holds Python objects ({', '.join(sorted(kinds))})",
            "one number or text in each row",
            f"Leave the column out, {argument}.drop(columns=[{name!r}]), or give each of its "
            "numbers a column.",
            WITHOUT,
        )


def _check_levels(column: pd.Series, name: str, levels: tuple[str, ...], argument: str) -> None:
    """Raise if a column of text holds numbers, or too many categories."""
    own = f"{argument}[{name!r}]"
    if not _is_categorical(column) and sum(map(_is_number, levels)) > len(levels) / 2:
        raise problem(
            f"column {name!r} of {argument} holds numbers that are written as text "
            f"({', '.join(levels[:4])}{', ...' if len(levels) > 4 else ''})",
            "numbers, or categories",
            f"For numbers: {own} = pd.to_numeric({own}, errors='coerce'), and missing='drop' if "
            f"some are none. For categories: {own} = {own}.astype('category').",
            f"Write numbers, and NA where some are missing; for categories, text. {WITHOUT}",
        )
    if len(levels) > MOST_LEVELS:
        raise problem(
            f"column {name!r} of {argument} holds {len(levels)} different texts",
            f"at most {MOST_LEVELS} categories in a column",
            f"Leave the column out, {argument}.drop(columns=[{name!r}]), or join categories that "
            "are alike.",
            f"{WITHOUT} Or join categories that are alike.",
        )


def _check_known(found: set[str], name: str, levels: tuple[str, ...], argument: str) -> None:
    unknown = sorted(found - set(levels))
    if unknown and levels:
        raise problem(
            f"column {name!r} of {argument} holds {named([repr(u) for u in unknown], 'category')}",
            f"one of {', '.join(map(repr, levels))}, as in the examples",
            "Leave these rows out, or regress again with examples of that category.",
        )


def _check_codes(names: Sequence[str], levels: Levels, argument: str) -> None:
    """Raise if a column that would encode a category has the name of another column. A table whose
    categories are numbers already has none to encode."""
    levels = {name: own for name, own in levels.items() if name in names}
    codes = [code for name, own in levels.items() for code, _ in _codes(name, own)]
    taken = [*codes, *(name for name in names if name not in levels)]
    code = next((code for code in codes if taken.count(code) > 1), None)
    if code is not None:
        name = owners(levels)[code]
        raise problem(
            f"{argument} has a column {code!r}, which is what the category of column {name!r} is "
            "called as a number",
            "another name",
            "Rename one of them.",
        )


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _is_categorical(column: pd.Series) -> bool:
    return isinstance(column.dtype, loaded("pandas", "CategoricalDtype"))


def _text_columns(values: object) -> dict[str, pd.Series]:
    """The columns of a DataFrame that hold text or categories."""
    if not isinstance(values, loaded("pandas", "DataFrame")):
        return {}
    import pandas as pd

    frame = cast("pd.DataFrame", values)
    types = pd.api.types
    found = {}
    for j, label in enumerate(frame.columns):
        column = frame.iloc[:, j]
        text = types.is_string_dtype(column.dtype) and not numeric_objects(column)
        if text or _is_categorical(column):
            found[str(label)] = column
    if found and not frame.columns.is_unique:
        raise problem(
            f"columns of a table have the same name ({', '.join(map(str, frame.columns[:8]))})",
            "one name for each column",
            "Rename them.",
        )
    return found
