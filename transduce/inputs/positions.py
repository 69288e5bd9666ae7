"""Positions x of grid points: numbers, dates or durations, as 1-D arrays."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np

from .messages import problem
from .numbers import is_tensor, loaded

NOUNS = {"f": "numbers", "i": "numbers", "M": "dates", "m": "durations", "O": "dates (objects)"}


def read_positions(x: object, name: str) -> np.ndarray:
    """Positions that the user gave, as a 1-D array of float64, int64, datetime64, timedelta64, or
    date objects that differ by a timedelta (datetime, cftime).

    Args:
        x: list, numpy array, tensor, pandas Index or Series, or DataArray.
        name: the argument's name, for messages.
    """
    array = _plain(x)
    if array.ndim != 1 or not len(array):
        raise problem(
            f"{name} has shape {array.shape}",
            "one position for each grid point, the same for all functions, of shape (points,)",
            "Interpolate functions on unequal grids to common positions.",
        )
    read = _read(array)
    if read is None:
        raise problem(
            f"{name} holds {array.dtype} values ({array[0]!s:.20}, ...)",
            "numbers or dates",
            "Give the positions as numbers, such as metres or seconds.",
        )
    if not _finite(read).all():
        place = int(np.flatnonzero(~_finite(read))[0])
        raise problem(
            f"{name}[{place}] is {read[place]}",
            "finite positions",
            f"Leave out the grid points whose position is unknown, in {name} and in the functions.",
        )
    return read


def read_labels(labels: object) -> np.ndarray | None:
    """The labels of columns as positions, or None if they are not positions: names, repeated
    default labels 0, 1, 2, ..., or fewer than two labels."""
    array = _plain(labels)
    read = _read(array) if array.ndim == 1 and len(array) > 1 else None
    if read is None or not _finite(read).all():
        return None
    default = read.dtype.kind in "fi" and np.array_equal(read, np.arange(len(read)))
    return None if default else read


def elapsed(x: np.ndarray, origin: object) -> np.ndarray:
    """x - origin in float64; in seconds if x are dates or durations."""
    if x.dtype == object:
        start: Any = origin
        return np.array([(day - start).total_seconds() for day in x])
    with np.errstate(over="ignore", invalid="ignore"):
        gap = x - origin
    return gap / np.timedelta64(1, "s") if gap.dtype.kind == "m" else gap.astype(np.float64)


def after(origin: object, gaps: np.ndarray) -> np.ndarray:
    """The positions origin + gaps: the inverse of `elapsed`."""
    start: Any = origin
    if isinstance(origin, np.datetime64 | np.timedelta64):
        return start + np.round(gaps * 1e9).astype("timedelta64[ns]")
    if isinstance(origin, int | float | np.number):
        return float(start) + gaps
    return np.array([start + timedelta(seconds=float(gap)) for gap in gaps], dtype=object)


def _plain(x: object) -> np.ndarray:
    """A numpy array of the positions."""
    given: Any = x
    if is_tensor(x):
        given = given.detach().cpu().numpy()
    elif isinstance(x, loaded("pandas", "PeriodIndex")):
        given = given.to_timestamp()
    if isinstance(given, np.ma.MaskedArray):
        given = np.ma.filled(given.astype(np.float64), np.nan)
    try:
        return np.asarray(given)
    except ValueError:  # ragged
        return np.empty((0,))


def _read(array: np.ndarray) -> np.ndarray | None:
    """The array as positions, or None if it holds something else."""
    if array.dtype.kind in "f":
        return array.astype(np.float64)
    if array.dtype.kind in "iu" and (array.dtype.kind == "i" or array.max() < 2**63):
        return array.astype(np.int64)
    if array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] in "YM":
        return array.astype("datetime64[D]")  # months and years have no length in seconds
    if array.dtype.kind in "Mm":
        return array
    if array.dtype.kind in "UST" or all(isinstance(label, str) for label in array.ravel()):
        return _from_text(array)
    return _from_objects(array) if array.dtype == object else None


def _from_text(array: np.ndarray) -> np.ndarray | None:
    """Numbers or ISO dates that are written as text."""
    for dtype in (np.float64, np.dtype("datetime64[us]")):
        try:
            return array.astype(str).astype(dtype)
        except ValueError:
            continue
    return None


def _from_objects(array: np.ndarray) -> np.ndarray | None:
    """Python numbers or dates."""
    if any(isinstance(label, str | bytes | bool | tuple) for label in array):
        return None
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    if all(isinstance(day, date) and getattr(day, "tzinfo", None) is None for day in array):
        return array.astype("datetime64[us]")
    try:
        elapsed(array, array[0])
    except (AttributeError, TypeError, ValueError):
        return None
    return array


def _finite(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "Mm":
        return ~np.isnat(x)
    return np.isfinite(x) if x.dtype.kind == "f" else np.ones(len(x), dtype=bool)
