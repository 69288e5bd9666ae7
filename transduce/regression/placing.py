"""Where an operator is asked to answer."""

from __future__ import annotations

import warnings

import numpy as np

from ..inputs import Functions, Grid
from ..types import TransduceError

OUTSIDE = 1e-9  # of the interval, by rounding


def answer_grid(u: Functions, at: object) -> Grid | None:
    """The grid of the answers; None for the examples' own.

    Args:
        u: outputs of the examples.
        at: a number of points over their interval, positions in their units, or None.
    """
    if at is None:
        return None
    own = u.grid
    if own is None:
        raise TransduceError(f"at={at!r}, but u are {u.layout}, without positions. Leave out at.")
    if isinstance(at, int | np.integer):
        if at < 2:
            raise TransduceError(
                f"at={at}; expected at least 2 points, or positions. Give a larger number."
            )
        return own.resampled(int(at))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # positions outside are refused below
        grid = own.at(at, "at")
    if grid.unit[0] < -OUTSIDE or grid.unit[-1] > 1 + OUTSIDE:
        low, high = sorted(own.x[[0, -1]])
        asked_low, asked_high = sorted(grid.x[[0, -1]])
        raise TransduceError(
            f"at runs from {asked_low} to {asked_high}; expected positions between {low} and "
            f"{high}, where the examples' u are known. Leave out those beyond."
        )
    return grid
