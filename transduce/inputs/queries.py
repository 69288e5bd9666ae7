"""New inputs for an operator, checked against its examples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .alignment import aligned
from .categories import encoded, owned
from .checks import scale_change
from .columns import in_order
from .covariates import check_parameters_present, read_parameters
from .functions import Functions, arrange
from .grids import Grid
from .layouts import Layout
from .messages import TURN, caution, problem
from .pairs import Pairs, columns_of
from .rows import ArgumentValues, check_query_rows
from .sources import Source, read_source
from .units import check_units

UNCOVERED = 0.02  # of the examples' interval, from which queries that leave it out give a warning
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


def read_query(
    pairs: Pairs, v: object, x: object = None, parameters: object = None, gaps: bool = False
) -> Query:
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
        gaps: whether missing values are allowed.
    """
    expected = pairs.v.layout
    check_units(v, parameters, pairs.stated)
    v, parameters, name = _inputs(pairs, v, parameters)
    v = aligned(v, pairs.v.template, expected.kind == "grid", name)
    source = read_source(in_order(v, expected.names, name, pairs.levels), name)
    parameters = in_order(parameters, pairs.parameter_names, "parameters", pairs.levels)
    _check_shape(source, pairs)
    grid = _grid(source, expected, x)
    points = expected.points if grid is None else len(grid)
    shape = (*source.shape[1:],)
    functions = arrange(source, replace(expected, shape=shape, points=points, grid=grid))
    width = None if pairs.parameters is None else pairs.parameters.shape[1]
    check_parameters_present(parameters, width)
    numbers = read_parameters(parameters, len(functions), width)
    if not gaps:
        _check_gaps(pairs, functions, numbers, source, parameters)
    other = _check_scale(pairs, functions)
    same = grid is None or expected.grid is None or grid.same_as(expected.grid)
    return Query(functions, numbers, same, other)


def _check_gaps(
    pairs: Pairs,
    v: Functions,
    numbers: np.ndarray | None,
    source: Source,
    parameters: object,
) -> None:
    """Raise if queries have missing values."""
    parts, sources = (
        [ArgumentValues(source.name, v.array, columns_of(v.layout, pairs.levels))],
        [source],
    )
    if numbers is not None:
        names = owned(pairs.parameter_names, numbers.shape[1], pairs.levels)
        parts.append(ArgumentValues("parameters", numbers, names))
        sources.append(read_source(parameters, "parameters"))
    check_query_rows(parts, sources)


def _check_scale(pairs: Pairs, v: Functions) -> bool:
    """Whether queries are so much larger or smaller than the examples that a warning is given."""
    with np.errstate(invalid="ignore"):
        ratio = scale_change(*_columns(pairs.v), *_columns(v))
    other = not 1 / OTHER_SCALE < ratio < OTHER_SCALE and np.isfinite(ratio)
    if other:
        caution(
            f"v of the queries is {ratio:.1g} times as large as that of the examples. Give both in "
            "the same units."
        )
    return bool(other)


def _inputs(pairs: Pairs, v: object, parameters: object) -> tuple[object, object, str]:
    """v and parameters, with categories as numbers, and the argument that gave v. If the examples
    are tables of parameters, v is too, under either name."""
    if pairs.parameters is not None:
        return v, encoded(parameters, pairs.levels, "parameters"), "v"
    name = "v"
    if v is None and parameters is not None and pairs.v.layout.kind == "numbers":
        v, parameters, name = parameters, None, "parameters"
    return encoded(v, pairs.levels, name), parameters, name


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
    elif source.transposes and _accepts(layout, source.shape[:1]) and layout.kind != "grid":
        remedy = f"Rows must be queries: give {source.transposed}."
    elif layout.kind == "grid" and len(shape) == 2:
        remedy = f"Give the {layout.channels} channels of the examples, in their order."
    raise problem(
        f"{source.name} of the queries has shape {source.shape}",
        f"{layout}, as in the examples",
        remedy,
        f"Write queries as the examples are written. {TURN}",
    )


def _accepts(layout: Layout, shape: tuple[int, ...]) -> bool:
    """Whether one function may have this shape."""
    if layout.kind != "grid":
        return shape == layout.shape or (layout.points == 1 and shape in ((), (1,)))
    if len(shape) == 1:
        return layout.channels == 1 and shape[0] >= 2
    return len(shape) == 2 and shape[0] == layout.channels and shape[1] >= 2


def _grid(source: Source, layout: Layout, x: object) -> Grid | None:
    """The positions of queries; None for plain numbers and fields."""
    points, examples = source.shape[-1], layout.grid
    if examples is None and x is not None:
        raise problem(
            "x is given with queries",
            f"no x, since the examples' v are {_plural(layout.kind)}",
            "Leave out x.",
        )
    if examples is None:
        return None
    if x is None and source.labels is not None and examples.given:
        grid = examples.at(source.labels, "the label of points of v", source.sorting("x"))
        return _covering(grid, examples)
    if x is not None:
        grid = examples.at(x)
        if len(grid) != points:
            remedy = f"Give one position for each of the {points} points."
            if source.transposes and len(grid) == source.shape[0]:
                remedy = f"Rows must be functions: give {source.transposed}."
            raise problem(
                f"x holds {len(grid)} positions, and v of the queries has shape {source.shape}",
                f"as many positions as points, {points}",
                remedy,
                f"Write one position for each of the {points} points. {TURN}",
            )
        return _covering(grid, examples)
    if points == len(examples):
        return examples
    caution(
        f"v of the queries has {points} points and came without x; the examples have "
        f"{len(examples)}. Equal steps over the same interval are assumed. Give x= for others."
    )
    return examples.resampled(points)


def _covering(grid: Grid, examples: Grid) -> Grid:
    """The grid, with a warning if it leaves out a part of the examples' interval."""
    missing = max(grid.unit[0] - examples.unit[0], examples.unit[-1] - grid.unit[-1])
    if missing > UNCOVERED:
        low, high = sorted(grid.x[[0, -1]])
        caution(
            f"v of the queries is known from {low} to {high}, and v of the examples from "
            f"{min(examples.x[0], examples.x[-1])} to {max(examples.x[0], examples.x[-1])}. Beyond "
            "its ends it is taken to be constant; give v on the whole interval."
        )
    return grid


def _columns(functions: Functions) -> tuple[np.ndarray]:
    """Values whose second axis is that of units: channels, or columns of plain numbers."""
    values = functions.array
    return (np.swapaxes(values, 1, 2) if functions.layout.kind == "numbers" else values,)


def _plural(kind: str) -> str:
    return {"field": "fields", "numbers": "plain numbers"}.get(kind, kind)
