"""Pairs of consecutive states of trajectories.

    v_i = s_i,      u_i = s_(i + stride)

of each trajectory s_0, s_1, ..., so that the operator of the pairs is a step in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..inputs.messages import named, problem
from ..inputs.numbers import detached
from ..inputs.sources import Source, read_source

NAME = "trajectory"


class TrajectoryPairs(NamedTuple):
    """Pairs of states, in the kind of array of the trajectories.

    Args:
        v: states.
        u: the states `stride` rows later, with the labels of v's rows.
        groups: the number of each pair's trajectory; None if there is one trajectory.
    """

    v: Any
    u: Any
    groups: np.ndarray | None


def pairs(trajectory: object, stride: int = 1) -> TrajectoryPairs:
    """Pairs (v, u) of states of one or several trajectories, `stride` rows apart.

    Args:
        trajectory: states in order of time: an array, tensor, DataFrame or DataArray of shape
            (times, points), (times, channels, points) or (times, x, y). Or a list of several, each
            with its own number of times.
        stride: rows from v to u.

    >>> p = transduce.pairs(states)  # states of shape (200, 64)
    >>> O = transduce.regress(p.v, p.u, x=x)
    """
    several = _is_several(trajectory)
    each: Sequence[Any] = trajectory if several else [trajectory]  # type: ignore[assignment]
    names = [f"{NAME} {i}" if several else NAME for i in range(len(each))]
    sources = [read_source(states, name) for states, name in zip(each, names, strict=True)]
    _check_alike(sources)
    for source in sources:
        _check_stride(stride, source)
        _check_finite(source)
    kind, step = sources[0].template.kind, int(stride)
    kept = [np.asarray(states) if kind == "numpy" else states for states in each]
    parts = [_shifted(states, step, kind) for states in kept]
    v, u = (_joined([part[k] for part in parts], kind) for k in (0, 1))
    counts = [len(source.values) - step for source in sources]
    return TrajectoryPairs(v, u, np.repeat(np.arange(len(each)), counts) if several else None)


def _is_several(trajectory: object) -> bool:
    """Whether this is a list of trajectories: of arrays with two axes or more."""
    if not isinstance(trajectory, list | tuple) or not trajectory:
        return False
    return all(getattr(states, "ndim", 0) >= 2 for states in trajectory)


def _check_alike(sources: Sequence[Source]) -> None:
    """Raise unless all states have one shape and one kind."""
    first = sources[0]
    for source in sources[1:]:
        if source.shape[1:] != first.shape[1:] or source.template.kind != first.template.kind:
            raise problem(
                f"{source.name} has states of shape {source.shape[1:]} ({source.template.kind}), "
                f"and {first.name} of shape {first.shape[1:]} ({first.template.kind})",
                "trajectories of one system, on one grid, in one kind of array",
                "Interpolate or convert them. One trajectory of fields is np.stack(states).",
            )


def _check_stride(stride: object, source: Source) -> None:
    """Raise unless the trajectory has a pair of states so many rows apart."""
    count = len(source.values)
    if isinstance(stride, bool) or not isinstance(stride, int | np.integer) or stride < 1:
        raise problem(f"stride is {stride!r}", "a whole number from 1", "Leave it out for 1.")
    if count <= stride:
        raise problem(
            f"{source.name} has {count} state{'s' * (count > 1)}, and stride is {stride}",
            f"at least {stride + 1} states, in rows",
            "Give more states, or a smaller stride." if stride > 1 else "Give more states.",
        )


def _check_finite(source: Source) -> None:
    """Raise if states have missing values."""
    values = detached(source.values)
    rows = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(1)).tolist()
    if rows:
        raise problem(
            f"{source.name} has missing or infinite values in {named(rows)}",
            "complete states, since a row that is left out would change the step in time",
            "Fill gaps by interpolation in time, or give the parts between them as a list.",
        )


def _shifted(states: Any, stride: int, kind: str) -> tuple[Any, Any]:
    """The states without the last ones, and without the first ones."""
    count = len(states) - stride
    if kind == "xarray":
        time = states.dims[0]
        v, u = (states.isel({time: part}) for part in (slice(0, count), slice(stride, None)))
        own = {name: c.variable for name, c in v.coords.items() if c.dims == (time,)}
        return v, u.drop_vars(list(own)).assign_coords(own)
    if kind == "pandas":
        v, u = states.iloc[:count], states.iloc[stride:]
        return v, u.set_axis(v.index)
    return states[:count], states[stride:]


def _joined(parts: list[Any], kind: str) -> Any:
    """All rows, in the kind of the parts."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if kind == "torch":
        import torch

        return torch.cat(parts)
    if kind == "xarray":
        import xarray as xr

        return xr.concat(parts, first.dims[0])
    if kind == "pandas":
        import pandas as pd

        return pd.concat(parts)
    return first.concatenate(*parts[1:]) if kind == "fda" else np.concatenate(parts)
