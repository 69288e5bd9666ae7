"""New inputs for an operator, checked against its examples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .categories import encoded
from .checks import scale_change
from .columns import in_order
from .covariates import check_parameters_present, read_parameters
from .functions import Functions, arrange
from .grids import Grid
from .layouts import Layout
from .messages import caution, problem
from .pairs import Pairs
from .rows import check_query_rows
from .sources import Source, read_source

OTHER_SCALE = 2e5  # ratio of scales from which queries give a warning


@dataclass(frozen=True, eq=False)
class Query:
    """m inputs whose outputs are wanted.

    Args:
        v: the inputs; `v.grid.unit` are their positions in the coordinates of the examples.
        parameters: float64, shape (m, p), or None.
        same_grid: whether the inputs have the positions of the examples' v.
        other_scale: whether they are so much larger or smaller that a warning was given.
    """

    v: Functions
    parameters: np.ndarray | None = None
    same_grid: bool = True
    other_scale: bool = False

    def __len__(self) -> int:
        return len(self.v)


def read_query(pairs: Pairs, v: object, x: object = None, parameters: object = None) -> Query:
    """New inputs as float64 arrays, in the coordinates of the examples.

    Args:
        pairs: the examples.
        v: inputs of the same layout as the examples' v. Functions of one variable may have other
            points.
        x: positions of the points of v, in the units of the examples' x. None for column labels or
            coordinates that are positions. If there are none either: the points of the examples if
            there are as many, else as many points at equal steps over the same interval, with a
            warning.
        parameters: one row for each query, if the examples have parameters.
    """
    expected = pairs.v.layout
    v, parameters = _inputs(pairs, v, parameters)
    source = read_source(in_order(v, expected.names, "v"), "v")
    parameters = in_order(parameters, pairs.parameter_names, "parameters")
    _check_shape(source, pairs)
    grid = None
    if expected.grid is not None:
        grid = _grid(source, expected.grid, x)
    elif x is not None:
        raise problem(
            "x is given with queries",
            f"no x, since the examples' v are {_plural(expected.kind)}",
            "Leave out x.",
        )
    points = expected.points if grid is None else len(grid)
    shape = (*source.shape[1:],)
    functions = arrange(source, replace(expected, shape=shape, points=points, grid=grid))
    check_query_rows(functions.array, "v", source.without)
    ratio = scale_change(*_columns(pairs.v), *_columns(functions))
    other = not 1 / OTHER_SCALE < ratio < OTHER_SCALE
    if other:
        caution(
            f"v of the queries is {ratio:.1g} times as large as that of the examples. Give both in "
            "the same units."
        )
    width = None if pairs.parameters is None else pairs.parameters.shape[1]
    check_parameters_present(parameters, width)
    numbers = read_parameters(parameters, len(functions), width)
    if numbers is not None:
        check_query_rows(numbers, "parameters", source.without)
    same = grid is None or expected.grid is None or grid.same_as(expected.grid)
    return Query(functions, numbers, same, other)


def _inputs(pairs: Pairs, v: object, parameters: object) -> tuple[object, object]:
    """v and parameters, with categories as numbers. If the examples are tables of parameters, v
    is too, under either name."""
    if pairs.parameters is not None:
        return v, encoded(parameters, pairs.levels, "parameters")
    if v is None and pairs.v.layout.kind == "numbers":
        v, parameters = parameters, None
    return encoded(v, pairs.levels, "v"), parameters


def _check_shape(source: Source, pairs: Pairs) -> None:
    """Raise unless queries have the shape of the examples, up to the number of points."""
    layout, shape = pairs.v.layout, source.shape[1:]
    if _accepts(layout, shape):
        return
    remedy = "Give queries as the examples were given."
    if _accepts(layout, source.shape):
        remedy = f"For a single query, give {source.one}."
    elif layout.kind == "grid" and len(shape) == 2 and shape[1] == layout.channels:
        remedy = f"Channels come before points: give np.swapaxes({source.name}, 1, 2)."
    elif len(source.shape) == 2 and _accepts(layout, source.shape[:1]) and layout.kind != "grid":
        remedy = f"Rows must be queries: give {source.transposed}."
    elif layout.kind == "grid" and len(shape) == 2:
        remedy = f"Give the {layout.channels} channels of the examples, in their order."
    raise problem(
        f"v of the queries has shape {source.shape}",
        f"{layout}, as in the examples",
        remedy,
    )


def _accepts(layout: Layout, shape: tuple[int, ...]) -> bool:
    """Whether one function may have this shape."""
    if layout.kind != "grid":
        return shape == layout.shape or (layout.points == 1 and shape in ((), (1,)))
    if len(shape) == 1:
        return layout.channels == 1 and shape[0] >= 2
    return len(shape) == 2 and shape[0] == layout.channels and shape[1] >= 2


def _grid(source: Source, examples: Grid, x: object) -> Grid:
    """The positions of queries."""
    points = source.shape[-1]
    if x is None and source.labels is not None and examples.given:
        return examples.at(source.labels, "the label of points of v", source.sorting("x"))
    if x is not None:
        grid = examples.at(x)
        if len(grid) != points:
            remedy = f"Give one position for each of the {points} points."
            if len(source.shape) == 2 and len(grid) == source.shape[0]:
                remedy = f"Rows must be functions: give {source.transposed}."
            raise problem(
                f"x holds {len(grid)} positions, and v of the queries has shape {source.shape}",
                f"as many positions as points, {points}",
                remedy,
            )
        return grid
    if points == len(examples):
        return examples
    caution(
        f"v of the queries has {points} points and came without x; the examples have "
        f"{len(examples)}. Equal steps over the same interval are assumed. Give x= for others."
    )
    return examples.resampled(points)


def _columns(functions: Functions) -> tuple[np.ndarray]:
    """Values whose second axis is that of units: channels, or columns of plain numbers."""
    values = functions.array
    return (np.swapaxes(values, 1, 2) if functions.layout.kind == "numbers" else values,)


def _plural(kind: str) -> str:
    return {"field": "fields", "numbers": "plain numbers"}.get(kind, kind)
