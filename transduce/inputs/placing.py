"""Which positions belong to v and which to u."""

from __future__ import annotations

from typing import Any

import numpy as np

from .functions import check_x_fits
from .layouts import FEW, Channels, has_channels
from .messages import problem
from .positions import read_positions
from .sources import Source

Placed = tuple[np.ndarray | None, str]
"""Positions that the user gave, or None, and the argument that gave them."""


def positions_of(
    sources: tuple[Source, Source], channels: Channels, x: object, x_v: object, x_u: object
) -> tuple[Placed, Placed]:
    """The positions of v and of u.

    Args:
        sources: v and u.
        channels: the user's option.
        x: common positions, or None.
        x_v: positions of v, or None.
        x_u: positions of u, or None.
    """
    v, u = sources
    if x is None:
        return _own(v, u, channels, x_v), _own(u, v, channels, x_u)
    _check_either(x_v, x_u)
    return _shared(sources, channels, read_positions(x, "x"))


def count_of(x: object) -> int:
    """How many positions the user gave; 0 if none, or if they cannot be read."""
    given: Any = x
    try:
        return len(given)
    except TypeError:
        return 0


def positions_of_outputs(
    sources: tuple[Source, Source], channels: Channels, x: object, x_u: object
) -> Placed:
    """The positions of u, where the inputs are a table of parameters.

    Args:
        sources: the table and u.
        channels: the user's option.
        x: positions, or None.
        x_u: the same by its other name, or None.
    """
    table, u = sources
    if x is None:
        return _own(u, table, channels, x_u)
    _check_either(None, x_u)
    return _own(u, table, channels, x, "x")


def _check_either(x_v: object, x_u: object) -> None:
    given = [name for name, own in (("x_v", x_v), ("x_u", x_u)) if own is not None]
    if given:
        raise problem(
            f"x and {' and '.join(given)} are both given",
            "x for common positions of v and u, or x_v and x_u",
            f"Leave out x, or {' and '.join(given)}.",
        )


def _own(source: Source, other: Source, channels: Channels, x: object, name: str = "") -> Placed:
    """Positions that were given for one source."""
    name = name or f"x_{source.name}"
    if x is None:
        return None, name
    positions = read_positions(x, name)
    _check_length(positions, name, source, other)
    check_x_fits(source, channels, positions, name)
    return positions, name


def _shared(
    sources: tuple[Source, Source], channels: Channels, x: np.ndarray
) -> tuple[Placed, Placed]:
    """x for each of v and u that it fits; at least one."""
    fits = [_fits(source, channels, x) for source in sources]
    if not any(fits):
        for source in sources:
            if source.shape[-1] == len(x):
                check_x_fits(source, channels, x, "x")
        _check_length(x, "x", *sorted(sources, key=_points, reverse=True))
    for fit, source, other in zip(fits, sources, sources[::-1], strict=True):
        if not fit and _needs_grid(source, channels):
            points = source.shape[-1]
            raise problem(
                f"x holds {len(x)} positions, and {source.name} {points} points",
                "as many positions as points",
                f"Give x_{other.name} for {other.name}, and x_{source.name} with {points} "
                f"positions for {source.name}.",
            )
    one, two = ((x if fit else None, "x") for fit in fits)
    return one, two


def _fits(source: Source, channels: Channels, x: np.ndarray) -> bool:
    return _one_variable(source, channels) and source.shape[-1] == len(x) and len(x) > 1


def _needs_grid(source: Source, channels: Channels) -> bool:
    """Whether functions have so many points that x should have been theirs too."""
    return _one_variable(source, channels) and source.shape[-1] >= FEW


def _one_variable(source: Source, channels: Channels) -> bool:
    shape = source.shape[1:]
    return len(shape) == 1 or (len(shape) == 2 and has_channels(shape, channels))


def _points(source: Source) -> int:
    return source.shape[-1] if len(source.shape) > 1 else 1


def _check_length(x: np.ndarray, name: str, source: Source, other: Source) -> None:
    """Raise unless x has a position for each point of the source, and at least two."""
    points = _points(source)
    if len(x) == points and points > 1:
        return
    raise problem(
        f"{name} holds {len(x)} position{'s' * (len(x) > 1)}, and {source.name} has shape "
        f"{source.shape}",
        f"as many positions as points, {points}" if points > 1 else "no positions",
        _remedy(len(x), name, source, other),
    )


def _remedy(count: int, name: str, source: Source, other: Source) -> str:
    """What to do about positions that do not fit.

    Args:
        count: how many positions there are.
        name: the argument that gave them.
        source: whose positions they should be.
        other: the other one of v and u, or the table of parameters.
    """
    points, functions = _points(source), {source.name, other.name} == {"v", "u"}
    if points == 1:
        flat = len(source.shape) == len(other.shape) == 1
        if functions and flat and count == len(source.values) > 1:
            return f"For a single function, give {source.one} and {other.one}."
        return f"Leave out {name}: one value a row is read as a plain number."
    if functions and name != "x" and count == _points(other):
        return f"These seem to be positions of {other.name}: give them as x_{other.name}."
    swap = source.transposes and other.transposes and source.shape == other.shape
    if functions and swap and count == len(source.values):
        return f"Rows must be functions: give {source.transposed} and {other.transposed}."
    return f"Give one position for each of the {points} points."
