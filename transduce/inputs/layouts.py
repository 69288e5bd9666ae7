"""How arrays are read: as functions of one variable, as plain numbers, or as fields.

| shape of one function | read as |
|---|---|
| (points,), 8 points or more, or x given | one channel on a grid |
| (a, points), a < 8 | a channels on a grid |
| (), (p,), (a, p), p < 8 and no x given | plain numbers, each in its own unit |
| (a, b), a >= 8 | a field of one channel, at evenly spaced points |
| (a, b, c), a < 8 | a channels of fields |
| others of three axes or more | a field: flattened values, no grid |

`channels=` says otherwise: True, a number, or False for an axis that is not of channels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .grids import Grid
from .messages import problem

FEW = 8  # fewer columns are numbers; fewer rows of a function are channels
Kind = Literal["grid", "numbers", "field"]
Channels = bool | int | None


@dataclass(frozen=True, eq=False)
class Layout:
    """How the functions of one array were read.

    Args:
        kind: "grid", "numbers" or "field".
        shape: shape of one function, as the user gives it.
        channels: number of channels; 1 for numbers.
        points: values in each channel.
        grid: the positions of the points; None unless the kind is "grid".
        axes: points along each of the two axes of fields on a grid; () for others.
        names: of the columns of a DataFrame, if they are not positions; else ().
    """

    kind: Kind
    shape: tuple[int, ...]
    channels: int
    points: int
    grid: Grid | None = None
    axes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The shape that arrays must have, for messages."""
        if self.kind == "grid":
            return "(n, points)" if len(self.shape) == 1 else f"(n, {self.channels}, points)"
        return f"(n, {', '.join(map(str, self.shape))})" if self.shape else "(n,)"

    @property
    def described(self) -> str:
        """What the functions are, in words."""
        if self.kind == "numbers":
            named = f" ({', '.join(self.names)})" if 0 < len(self.names) <= FEW else ""
            return ("1 number" if self.points == 1 else f"{self.points} numbers") + named
        if self.kind == "field":
            several = "" if self.channels == 1 else f"{self.channels} channels of "
            return f"{several}fields of shape {self.axes or self.shape}"
        several = "" if self.channels == 1 else f"{self.channels} channels of "
        return f"{several}curves of {self.points} points"


def layout_of(shape: tuple[int, ...], channels: Channels, x_given: bool) -> Layout:
    """The layout of functions of this shape, with no grid yet.

    Args:
        shape: of one function.
        channels: the user's option, or None.
        x_given: whether positions of the points are known.
    """
    size = math.prod(shape)
    if len(shape) >= 2 and not has_channels(shape, channels):
        return Layout("field", shape, 1, size, axes=plane(shape))
    if len(shape) > 2:
        axes = plane(shape[1:])
        heads = shape[0] if axes or explicit_channels(shape, channels) else 1
        return Layout("field", shape, heads, size // heads, axes=axes)
    heads, points = (1, *shape)[-2:] if shape else (1, 1)
    known = x_given or points >= FEW or explicit_channels(shape, channels)
    if points > 1 and known:
        return Layout("grid", shape, heads, points)
    return Layout("numbers", shape, 1, size)


def plane(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape if it is that of a field of two variables on a grid; else ()."""
    return shape if len(shape) == 2 and min(shape) > 1 else ()


def has_channels(shape: tuple[int, ...], channels: Channels) -> bool:
    """Whether the first of two or more axes of a function counts channels."""
    if isinstance(channels, bool):
        return channels
    if channels is not None and (channels == 1 or channels == shape[0]):
        return channels == shape[0]
    return shape[0] < FEW


def explicit_channels(shape: tuple[int, ...], channels: Channels) -> bool:
    """Whether the user said that the first axis counts channels."""
    if len(shape) < 2 or channels is None or channels is False:
        return False
    return channels is True or channels == shape[0]


def check_channels(channels: object, shapes: dict[str, tuple[int, ...]]) -> Channels:
    """The option `channels`, if it is one that some array can have.

    Args:
        channels: what the user gave.
        shapes: shapes of one function of v and of u, by name.
    """
    if channels is None or isinstance(channels, bool):
        return channels
    count = int(channels) if isinstance(channels, int | np.integer) else 0
    if count < 1:
        raise problem(
            f"channels is {channels!r}",
            "True, False, or the number of channels",
            "Leave it out: an axis of fewer than 8 between rows and points is read as channels.",
        )
    if count > 1 and not any(len(s) > 1 and s[0] == count for s in shapes.values()):
        found = " and ".join(f"{name} of shape {('n', *s)}" for name, s in shapes.items())
        last = next((name for name, s in shapes.items() if len(s) > 1 and s[-1] == count), "")
        remedy = (
            f"Reshape, as in np.asarray(v).reshape(len(v), {count}, -1), or leave out channels."
        )
        if last:
            remedy = f"Channels come before points: give np.moveaxis({last}, -1, 1)."
        raise problem(
            f"channels is {count}, with {found}".replace("'", ""),
            f"v or u of shape (n, {count}, points)",
            remedy,
        )
    return count
