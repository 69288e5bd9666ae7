"""Queries with named dimensions, in the order of the examples: dimensions by name, and coordinates
of fields, channels and columns by value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .messages import problem
from .numbers import loaded
from .templates import Template

if TYPE_CHECKING:
    import xarray as xr

NEAR = 1e-6  # of the range of coordinates: nearer ones are equal


def aligned(v: object, template: Template, curves: bool, name: str) -> object:
    """A DataArray in the order of the examples; anything else as it is.

    Args:
        v: queries.
        template: of the examples.
        curves: whether the last dimension holds points of curves, which may be elsewhere.
        name: the argument that gave v, for messages.
    """
    if template.kind != "xarray" or not isinstance(v, loaded("xarray", "DataArray")):
        return v
    queries, examples = cast("xr.DataArray", v), cast("xr.DataArray", template.empty)
    inner = examples.dims[1:]
    if queries.ndim != examples.ndim or not set(inner) <= set(queries.dims):
        return v
    queries = queries.transpose(..., *inner)
    for dimension in inner[:-1] if curves else inner:
        queries = _in_order(queries, examples, dimension, name)
    return queries


def _in_order(
    queries: xr.DataArray, examples: xr.DataArray, dimension: Any, name: str
) -> xr.DataArray:
    """Queries by the examples' coordinates along a dimension, where both have some."""
    if dimension not in queries.coords or dimension not in examples.coords:
        return queries
    own, known = (array[dimension].values for array in (queries, examples))
    if len(own) != len(known):
        return queries
    order, places = np.argsort(own, kind="stable"), np.argsort(known, kind="stable")
    if not _equal(own[order], known[places]):
        raise problem(
            f"{dimension} of {name} runs from {own[0]} to {own[-1]} in the queries, and from "
            f"{known[0]} to {known[-1]} in the examples",
            "the same coordinates",
            f"Interpolate: {name}.interp({dimension}=...), or "
            f"{name}.drop_vars({str(dimension)!r}) if only the labels differ.",
        )
    found = np.empty_like(order)
    found[places] = order
    return queries.isel({dimension: found})


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether sorted coordinates are the same, numbers up to rounding."""
    if not all(np.issubdtype(c.dtype, np.number) for c in (a, b)):
        return bool(np.array_equal(a, b))
    return bool(np.abs(a - b).max() <= NEAR * max(float(np.ptp(b.astype(float))), 1e-300))
