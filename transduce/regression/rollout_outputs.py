"""States of rollouts in the user's kind of array."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from ..inputs import Functions


def in_kind(
    u: Functions,
    states: Float[Tensor, "m t c p"],
    query: Functions | None,
    steps: np.ndarray | None,
) -> Any:
    """States in the kind of the examples' u, or of the initial states if these are tensors.

    Args:
        u: of the examples.
        states: points by ascending x.
        query: the initial states; None for arrays without labels.
        steps: numbers of the steps, or None for arrays without labels.

    Returns:
        an array of shape (m, steps, *shape of u); a DataFrame has a row for each state.
    """
    m, t = states.shape[:2]
    kinds = (u.template.kind, "" if query is None else query.template.kind)
    flat = states.flatten(0, 1)
    if "torch" in kinds:
        found: Any = u.restore(flat, query)
        return found.unflatten(0, (m, t))
    values = _arranged(u, flat.numpy()).reshape(m, t, *u.layout.shape)
    if query is None or steps is None or kinds[0] not in ("pandas", "xarray"):
        return values
    return _labelled(u, values, query, steps)


def _arranged(u: Functions, values: np.ndarray) -> np.ndarray:
    """Points in the user's order."""
    flipped = u.grid is not None and u.grid.flipped
    return (values[..., ::-1] if flipped else values).astype(u.template.dtype)


def _labelled(u: Functions, values: np.ndarray, query: Functions, steps: np.ndarray) -> Any:
    """A DataFrame or a DataArray."""
    if u.template.kind == "pandas":
        return _frame(u, values, query, steps)
    import xarray as xr

    each: list[Any] = [u.restore(as_rows(u, values[:, k]), query) for k in range(len(steps))]
    joined: Any = xr.concat(each, xr.DataArray(steps, dims="step", name="step"))
    return joined.transpose(joined.dims[1], "step", *joined.dims[2:])


def as_rows(u: Functions, values: np.ndarray) -> np.ndarray:
    """Values of one step in the shape (m, channels, points), by ascending x."""
    rows = values.reshape(len(values), u.layout.channels, u.layout.points)
    return rows[..., ::-1] if u.grid is not None and u.grid.flipped else rows


def _frame(u: Functions, values: np.ndarray, query: Functions, steps: np.ndarray) -> Any:
    """One row for each state, labelled by trajectory and step."""
    import pandas as pd

    empty: Any = u.template.empty
    rows: Any = query.template.rows if query.template.kind == "pandas" else range(len(values))
    labels = [(row, step) for row in rows for step in steps.tolist()]
    index = pd.MultiIndex.from_tuples(labels, names=["trajectory", "step"])
    if isinstance(empty, pd.Series):
        return pd.Series(values.reshape(-1), index, name=empty.name)
    return pd.DataFrame(values.reshape(len(index), -1), index, empty.columns)
