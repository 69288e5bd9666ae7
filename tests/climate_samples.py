"""What the tests of climate share: real files, and fields that are made."""

import os
from pathlib import Path

import numpy as np
import pytest

from transduce.families import ClimateFields

REAL = (
    Path(os.environ.get("TRANSDUCE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    / "climate"
)


def real(*names):
    """The paths of real files, or a test that is skipped."""
    if not all((REAL / name).exists() for name in names):
        pytest.skip(f"{REAL} has no {', '.join(names)}")
    return [REAL / name for name in names]


def daily(first, last, drop=()):
    """Fields of 2 x 2 points on all days from first to last but some; v is the number of the
    day."""
    time = np.setdiff1d(
        np.arange(first, last, dtype="datetime64[D]"), np.array(drop, dtype="datetime64[D]")
    )
    return on(time.astype("datetime64[s]") + np.timedelta64(12, "h"))


def on(time):
    numbers = np.broadcast_to(
        np.arange(len(time), dtype=np.float32)[:, None, None], (len(time), 2, 2)
    ).copy()
    return ClimateFields(
        numbers, -numbers, time.astype("datetime64[s]"), np.array([1.0, 0.0]), np.array([0.0, 1.0])
    )


def same(one, other):
    """Equal in all but the last bits of single precision."""
    assert all(
        np.allclose(getattr(one, name), getattr(other, name), rtol=5e-7, atol=0)
        for name in ("v", "u")
    )
    return (
        (one.time == other.time).all()
        and np.allclose(one.lat, other.lat)
        and np.allclose(one.lon, other.lon)
    )


def days(fields, index):
    return fields.time[index].astype("datetime64[D]").astype(str).tolist()
