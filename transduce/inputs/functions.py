"""Functions as arrays (n, channels, points) by ascending x, and back to the user's arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .grids import Grid
from .layouts import FEW, Channels, Layout, has_channels, layout_of
from .messages import problem
from .numbers import Values, detached, is_tensor
from .sources import Source
from .templates import Template


@dataclass(frozen=True, eq=False)
class Functions:
    """n functions that were read from one argument.

    Args:
        values: float64, shape (n, channels, points), points by ascending x: a tensor with its
            gradients if the user gave one, else a numpy array. Numbers and fields have all
            their values along the last axis.
        layout: how they were read.
        template: the user's kind of array.
    """

    values: Values
    layout: Layout
    template: Template

    def __len__(self) -> int:
        return len(self.values)

    @property
    def array(self) -> np.ndarray:
        """The values as a numpy array, without gradients."""
        return detached(self.values)

    @property
    def grid(self) -> Grid | None:
        """The positions of the points; None for numbers and fields."""
        return self.layout.grid

    def take(self, rows: np.ndarray) -> Functions:
        """The functions of these rows."""
        if len(rows) == len(self):
            return self
        return replace(self, values=self.values[rows], template=self.template.take(rows))

    def restore(
        self, values: Values, query: Functions | None = None, grid: Grid | None = None
    ) -> object:
        """Answers in the user's kind of array, shape and order of points.

        The kind and the labels of points are those of these functions (the examples' u), the
        labels of rows those of the query. A tensor among both makes the answer a tensor. The
        dtype is float32 if these functions came in float32, and float64 otherwise.

        Args:
            values: answers of shape (m, channels, points), points by ascending x.
            query: the queries; None for answers without labels of rows.
            grid: the positions of the answers; None for those of these functions.
        """
        layout = self.layout
        positions = grid or layout.grid
        if positions is not None and positions.flipped:
            values = _reversed(values)
        last = () if grid is None else (len(grid),)
        shape = layout.shape[: len(layout.shape) - len(last)] + last
        moved = None if grid is None or grid is layout.grid else grid.x
        rows = Template() if query is None else query.template
        return self.template.answer(values.reshape(len(values), *shape), rows, moved)


def arrange(source: Source, layout: Layout) -> Functions:
    """The functions of a source in the shape (n, channels, points), by ascending x."""
    values = source.values.reshape(len(source.values), layout.channels, layout.points)
    if layout.grid is not None and layout.grid.flipped:
        values = _reversed(values)
    return Functions(values, layout, source.template)


def read_layout(source: Source, channels: Channels, x: np.ndarray | None, x_name: str) -> Layout:
    """The layout of a source, with its grid.

    Args:
        source: the functions.
        channels: the user's option.
        x: positions that the user gave for these functions, as many as their points; or None for
            those of the labels.
        x_name: the argument that gave x, for messages.
    """
    shape = source.shape[1:]
    labels = source.labels if len(shape) in (1, 2) else None
    if x is None and labels is None:
        layout = layout_of(shape, channels, x_given=False)
        grid = Grid.default(layout.points) if layout.kind == "grid" else None
        return replace(layout, grid=grid, names=source.names)
    layout = replace(layout_of(shape, channels, x_given=True), names=source.names)
    if layout.kind != "grid":
        return layout
    if x is not None:
        return replace(layout, grid=Grid.of(x, x_name))
    name = source.name
    remedy = source.sorting(f"x_{name}")
    return replace(layout, grid=Grid.of(labels, f"the label of points of {name}", remedy))


def as_numbers(source: Source) -> Layout:
    """The layout of a table of numbers, however many columns it has."""
    if len(source.shape) > 2:
        raise problem(
            f"{source.name} has shape {source.shape}",
            "a table (n, p): one row for each run, one column for each parameter",
            f"Give {source.flattened}.",
            "Write one row for each run.",
        )
    shape = source.shape[1:]
    return Layout("numbers", shape, 1, math.prod(shape), names=source.names)


def check_x_fits(source: Source, channels: Channels, x: np.ndarray, x_name: str) -> None:
    """Raise if these functions cannot have positions.

    Args:
        source: the functions.
        channels: the user's option.
        x: positions, as many as the last axis is long.
        x_name: the argument that gave x, for messages.
    """
    shape = source.shape[1:]
    if len(shape) >= 2 and (len(shape) > 2 or not has_channels(shape, channels)):
        remedy = f"Leave out {x_name}."
        if len(shape) == 2 and shape[1] < FEW <= shape[0]:
            remedy = f"Channels come before points: give np.moveaxis({source.name}, -1, 1)."
        elif len(shape) == 2:
            remedy = (
                f"Give channels={shape[0]} to read {shape[0]} channels of {shape[1]} points, or "
                f"leave out {x_name}."
            )
        raise problem(
            f"{source.name} has shape {source.shape} and is read as a field, which has no x",
            "functions of one variable where x is given",
            remedy,
        )


def _reversed(values: Values) -> Values:
    if is_tensor(values):
        tensor: Any = values
        return tensor.flip(-1)
    return values[..., ::-1]
