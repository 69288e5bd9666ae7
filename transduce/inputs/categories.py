"""Tables with categories as tables of numbers.

A column of text or categories with two levels becomes one column of 0 and 1; with more levels, it
becomes one such column for each. Levels are those of the examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .messages import named, problem
from .numbers import loaded, numeric_objects, reads_as_numbers

Levels = Mapping[str, tuple[str, ...]]
"""The levels of each column that holds categories."""
MOST_LEVELS = 20  # of one column


def levels_of(values: object, argument: str) -> dict[str, tuple[str, ...]]:
    """The levels of the columns of a DataFrame that hold categories; none of anything else.

    Args:
        values: what the user gave.
        argument: the argument's name, for messages.
    """
    found = {}
    for name, column in _text_columns(values).items():
        _check_complete(column, name, argument)
        levels = tuple(sorted({str(value) for value in column}))
        if len(levels) > MOST_LEVELS:
            raise problem(
                f"column {name!r} of {argument} holds {len(levels)} different texts",
                f"at most {MOST_LEVELS} categories in a column",
                "Leave the column out, or join categories that are alike.",
            )
        found[name] = levels
    return found


def encoded(values: object, levels: Levels, argument: str) -> object:
    """A DataFrame with categories as numbers; anything else as it is.

    Args:
        values: what the user gave.
        levels: those of the examples.
        argument: the argument's name, for messages.
    """
    if not levels or not isinstance(values, loaded("pandas", "DataFrame")):
        return values
    import pandas as pd

    frame: Any = values
    columns: dict[str, object] = {}
    for label in frame.columns:
        name, column = str(label), frame[label]
        if name not in levels:
            columns[name] = column
            continue
        _check_complete(column, name, argument)
        text = column.astype(str)
        _check_known(text, name, levels[name], argument)
        columns |= {
            code: (text == level).astype(float) for code, level in _codes(name, levels[name])
        }
    return pd.DataFrame(columns, index=frame.index)


def is_design(values: object, fewer_than: int) -> bool:
    """Whether a DataFrame is a small table with categories, as tables of parameters are.

    Args:
        values: what the user gave.
        fewer_than: how many columns it must not reach.
    """
    frame: Any = values
    if not isinstance(values, loaded("pandas", "DataFrame")) or frame.shape[1] >= fewer_than:
        return False
    return any(not reads_as_numbers(column) for column in _text_columns(values).values())


def _codes(name: str, levels: tuple[str, ...]) -> list[tuple[str, str]]:
    """The names of the columns that encode a category, each with the level that is 1 there."""
    shown = levels[1:] if len(levels) <= 2 else levels
    return [(f"{name}={level}", level) for level in shown]


def _check_complete(column: Any, name: str, argument: str) -> None:
    missing = int(column.isna().sum())
    if missing:
        raise problem(
            f"column {name!r} of {argument} lacks a category in {missing} rows",
            "a category in each row",
            f"Drop these rows, or fill them in the examples: {argument}[{name!r}].fillna('other').",
        )


def _check_known(text: Any, name: str, levels: tuple[str, ...], argument: str) -> None:
    unknown = sorted(set(text) - set(levels))
    if unknown:
        raise problem(
            f"column {name!r} of {argument} holds {named([repr(u) for u in unknown], 'category')}",
            f"one of {', '.join(map(repr, levels))}, as in the examples",
            "Leave these rows out, or regress again with examples of that category.",
        )


def _text_columns(values: object) -> dict[str, Any]:
    """The columns of a DataFrame that hold text or categories."""
    if not isinstance(values, loaded("pandas", "DataFrame")):
        return {}
    import pandas as pd

    frame: Any = values
    types = pd.api.types
    found = {}
    for j, label in enumerate(frame.columns):
        column = frame.iloc[:, j]
        text = types.is_string_dtype(column.dtype) and not numeric_objects(column)
        if text or isinstance(column.dtype, pd.CategoricalDtype):
            found[str(label)] = column
    if found and not frame.columns.is_unique:
        raise problem(
            f"columns of a table have the same name ({', '.join(map(str, frame.columns[:8]))})",
            "one name for each column",
            "Rename them.",
        )
    return found
