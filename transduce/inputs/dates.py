"""Dates and durations as JSON, and back: without pickles.

datetime64, timedelta64     {"kind": "datetime64[D]", "values": [18322, ...]}
datetime                    {"kind": "datetime", "values": ["2020-03-01T00:00:00+01:00", ...]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np

from .messages import caution

Dates = dict[str, str | list[int] | list[str]]


def to_json(x: np.ndarray) -> Dates | None:
    """Positions as JSON; None if they are numbers, or dates of another calendar.

    Args:
        x: positions, as `read_positions` returns them.
    """
    if x.dtype.kind in "Mm":
        return {"kind": str(x.dtype), "values": x.astype(np.int64).tolist()}
    if x.dtype != object:
        return None
    if not all(isinstance(day, datetime) for day in x):
        caution(
            f"positions of type {type(x[0]).__name__} are saved as seconds since the first. Give "
            "datetime64 to keep dates."
        )
        return None
    return {"kind": "datetime", "values": [day.isoformat() for day in x]}


def from_json(dates: Mapping[str, str | Sequence[int] | Sequence[str]]) -> np.ndarray:
    """The inverse of `to_json`.

    Args:
        dates: what `to_json` returned.
    """
    kind, values = dates["kind"], dates["values"]
    if kind == "datetime":
        return np.array([datetime.fromisoformat(str(text)) for text in values], dtype=object)
    return np.array(values, dtype=np.int64).astype(str(kind))
