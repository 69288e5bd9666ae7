"""What `O.terms` accepts: curves on one grid, before and after a step of time."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float

from ..inputs import Grid, Pairs
from ..inputs.numbers import number_of
from ..types import TransduceError

FEWEST_PAIRS, FEWEST_POINTS, MOST_CHANNELS = 6, 24, 3
CONSTANT = 1e-12  # change in units of the states


def checked(dt: object, most: object, level: object) -> tuple[float, int, float]:
    """The options as numbers."""
    step = number_of(dt)
    if not 0 < step < np.inf:
        raise TransduceError(
            f"dt={dt!r}; expected the time from v to u, a number above 0. Give dt=0.1, or leave "
            "it out to count time in steps."
        )
    count, share = number_of(most), number_of(level)
    if not count >= 1 or count != int(count):
        raise TransduceError(f"most={most!r}; expected a number of terms from 1. Give most=6.")
    if not 0 < share < 1:
        raise TransduceError(f"level={level!r}; expected a share between 0 and 1. Give level=0.9.")
    return step, int(count), share


def readable(pairs: Pairs) -> Grid:
    """The grid of the states. Raises where no equation can be found."""
    _check_kind(pairs)
    _check_sizes(pairs)
    return _same_grid(pairs)


def _check_kind(pairs: Pairs) -> None:
    for name, f in (("v", pairs.v), ("u", pairs.u)):
        if f.grid is None:
            raise TransduceError(
                f"{name} are {f.layout.described}; expected curves of one variable x, the states "
                "of a system before and after a step of time. Give curves, of at least "
                f"{FEWEST_POINTS} points; equations of fields are not supported."
            )
    if pairs.parameters is not None:
        raise TransduceError(
            "the pairs have parameters; expected pairs of one system, with the same coefficients. "
            "Regress the pairs of each setting on their own, without parameters."
        )


def _check_sizes(pairs: Pairs) -> None:
    (_, c, p), outputs = pairs.v.array.shape, pairs.u.array.shape
    if outputs[1:] != (c, p):
        raise TransduceError(
            f"v have {c} channels of {p} points, and u {outputs[1]} of {outputs[2]}; expected "
            "states on one grid. Give u on the points of v."
        )
    if c > MOST_CHANNELS:
        raise TransduceError(
            f"{c} channels; expected at most {MOST_CHANNELS}, whose products are terms. Give "
            "channels that act on each other."
        )
    if p < FEWEST_POINTS:
        raise TransduceError(
            f"{p} points; expected at least {FEWEST_POINTS}, for derivatives of order 4. Give "
            "states on a finer grid."
        )
    if len(pairs) < FEWEST_PAIRS:
        raise TransduceError(
            f"{len(pairs)} pairs; expected at least {FEWEST_PAIRS}, some of which are left out. "
            "Give more."
        )


def _same_grid(pairs: Pairs) -> Grid:
    grid, other = pairs.v.grid, pairs.u.grid
    assert grid is not None and other is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # positions elsewhere are refused below
        same = grid.same_as(other) and np.allclose(np.sort(grid.to_unit(other.x)), grid.unit)
    if not same:
        raise TransduceError(
            f"x of v runs from {grid.x[0]} to {grid.x[-1]}, and x of u from {other.x[0]} to "
            f"{other.x[-1]}; expected the same points. Give u on the points of v."
        )
    return grid


def check_change(v: Float[np.ndarray, "n c p"], u: Float[np.ndarray, "n c p"]) -> None:
    """Raises where a channel stays as it is, or is zero."""
    for channel in range(v.shape[1]):
        change = np.abs(u[:, channel] - v[:, channel]).max()
        if change <= CONSTANT * np.abs(v[:, channel]).max():
            raise TransduceError(
                f"u equals v in channel {channel}; expected states that change over a step. Give "
                "a longer step, or leave out this channel."
            )
        if not np.abs(v[:, channel]).max():
            raise TransduceError(
                f"v is zero in channel {channel}; expected states that vary. Leave it out."
            )


def change_of(
    v: Float[np.ndarray, "n c p"], u: Float[np.ndarray, "n c p"]
) -> Float[np.ndarray, " c"]:
    """The variation of u - v in each channel, in units of that of v and u. It is 2 for states that
    have nothing to do with each other, and 1 if one of them is much smaller too."""
    of_change, before, after = (np.square(f - f.mean(0)).sum((0, 2)) for f in (u - v, v, u))
    return 2 * of_change / np.maximum(before + after, 1e-300)
