"""Columns of tables that go by names: later tables are read in the order of the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .categories import NO_LEVELS, Levels, owned
from .messages import caution, named, problem
from .numbers import loaded
from .positions import read_labels


def in_order(
    values: object, names: Sequence[str], argument: str, levels: Levels = NO_LEVELS
) -> object:
    """A DataFrame with the columns of these names, in this order. Other values come back unchanged.

    Warns if the names of columns differ: then they are read by place, and renamed.

    Args:
        values: what the user gave.
        names: of the columns of the examples; () if they had none.
        argument: the argument's name, for messages.
        levels: of the categories among these columns, which are encoded.
    """
    if not names or not isinstance(values, loaded("pandas", "DataFrame")):
        return values
    frame: Any = values
    own = [str(label) for label in frame.columns]
    if own == list(names) or _is_unnamed(frame):
        return values
    if len(set(own)) == len(own) and set(names) <= set(own):
        return frame.iloc[:, [own.index(name) for name in names]]
    missing = [name for name in names if name not in own]
    if missing and set(own) < set(names):
        lacking = list(dict.fromkeys(owned(missing, len(missing), levels)))
        raise problem(
            f"{argument} lacks {named(lacking, 'column')}",
            "the columns of the examples",
            "Add them, or regress again without them.",
        )
    if len(own) == len(names):
        other = [i for i, pair in enumerate(zip(own, names, strict=True)) if pair[0] != pair[1]]
        caution(
            f"{named([repr(own[i]) for i in other], 'column')} of {argument}, where the examples "
            f"have {', '.join(repr(names[i]) for i in other[:8])}: columns are read by place. "
            f"Rename them to have them read by name."
        )
        return frame.set_axis(list(names), axis=1)
    return values


def _is_unnamed(values: object) -> bool:
    """Whether the columns are numbered, or labelled by positions."""
    import pandas as pd

    frame: Any = values
    return isinstance(frame.columns, pd.RangeIndex) or read_labels(frame.columns) is not None
