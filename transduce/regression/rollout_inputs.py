"""What a rollout needs: v and u of one kind, options that make sense, and initial states."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inputs import Functions, Pairs, Query, read_query
from ..inputs.numbers import loaded, number_of
from ..types import TransduceError

SAME = 1e-6  # of the interval: positions nearer than that are equal


def check_same_states(pairs: Pairs) -> None:
    """Raise unless u can be given as v: equal layout, names and grid."""
    v, u = pairs.v, pairs.u
    if (v.layout.kind, v.layout.shape) != (u.layout.kind, u.layout.shape):
        raise TransduceError(
            f"a rollout of an operator from {v.layout.described} {v.layout.shape} to "
            f"{u.layout.described} {u.layout.shape}; expected u like v, since each answer is the "
            "next input. Regress on pairs of states: transduce.pairs(trajectory)."
        )
    if v.layout.names != u.layout.names:
        raise TransduceError(
            f"v has columns {', '.join(v.layout.names) or 'without names'}, and u "
            f"{', '.join(u.layout.names) or 'without names'}; expected the same, in one order. "
            "Give u[v.columns]."
        )
    if not _same_grid(v, u):
        raise TransduceError(
            f"v has positions from {_ends(v)} and u from {_ends(u)}, or others between; expected "
            "one grid, since each answer is the next input. Interpolate u to the points of v."
        )


def _same_grid(v: Functions, u: Functions) -> bool:
    """Whether both have the same positions, in either direction."""
    if v.grid is None or u.grid is None:
        return v.grid is u.grid
    if v.grid.x.dtype.kind not in "fiu" or u.grid.x.dtype.kind not in "fiu":
        return bool(np.array_equal(np.sort(v.grid.x), np.sort(u.grid.x)))
    apart = np.abs(np.sort(v.grid.x) - np.sort(u.grid.x)).max()
    return bool(apart <= SAME * abs(v.grid.span))


def _ends(f: Functions) -> str:
    assert f.grid is not None
    return f"{f.grid.x[0]} to {f.grid.x[-1]}"


def check_steps(steps: object, every: object, band: object, until: object) -> None:
    """Raise unless steps and every are whole numbers that keep a state."""
    for name, value in (("steps", steps), ("every", every)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise TransduceError(
                f"{name}={value!r}; expected a whole number from 1. Give {name}=1."
            )
    if every > steps:  # type: ignore[operator]
        raise TransduceError(
            f"every={every} of {steps} steps keeps no state; expected at most {steps}. Give a "
            "smaller every, or more steps."
        )
    if band is not None and not 0 < number_of(band) < 1:
        raise TransduceError(
            f"band={band!r}; expected a share of the values between 0 and 1. Give band=0.9."
        )
    if until is not None and not callable(until):
        raise TransduceError(
            f"until={until!r}; expected a function of a state that returns True to stop, such as "
            "until=lambda state: state.max() > 3. Give one, or leave it out."
        )


def initial_states(pairs: Pairs, v: object, parameters: object) -> Query:
    """The initial states, on the grid of the examples. A single one may come without rows."""
    query = read_query(pairs, _with_rows(v, pairs.v.layout.shape), None, parameters)
    if not query.same_grid:
        raise TransduceError(
            f"initial states have {query.v.layout.points} points, other than the examples' "
            f"{pairs.v.layout.points}; expected states on the grid of the examples. Interpolate "
            "them, or take a first step with O(v)."
        )
    return query


def _with_rows(v: object, shape: tuple[int, ...]) -> Any:
    """One state as an array of one row."""
    state: Any = v
    if np.shape(state) != shape or not shape:
        return v
    if isinstance(v, loaded("xarray", "DataArray")):
        return state.expand_dims("trajectory")
    if isinstance(v, loaded("pandas", "Series")):
        return state.to_frame().T
    return state[None] if hasattr(state, "shape") else [state]
