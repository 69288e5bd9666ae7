"""Rollouts: an operator that maps a state to the next one, applied repeatedly.

    s_hat(0) = v,      s_hat(t + 1) = O(s_hat(t))

If the examples are consecutive states of trajectories (u_i is some v_j, exactly), O is the answer
of least error in repeated steps; see `steps`. A trajectory stops when a state is far outside the
examples, when it is not finite, or when the user's `until` says so: later states are NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..files import brief
from ..inputs import Query
from ..inputs.messages import caution, named
from ..types import TransduceError
from .ensembles import spreads
from .rollout_inputs import check_same_states, check_steps, initial_states
from .rollout_outputs import in_kind
from .shapes import as_tensor
from .stepper import Stepper
from .steps import Parameters, States

if TYPE_CHECKING:
    from .operator import RegressedOperator

OUTSIDE, INFINITE, ASKED = "outside the examples", "not finite", "until"
Until = Callable[[Any], object] | None


@dataclass(frozen=True, eq=False)
class Rollout:
    """States of repeated steps.

    Attributes:
        states: shape (m, kept steps, *shape of u), in the kind of the examples' u. A DataArray has
            the dimension `step`; a DataFrame has one row for each state, labelled by trajectory
            and step. NaN after the end of a trajectory.
        low: lower end of the band, likewise; None without a band.
        high: upper end of the band.
        steps: the numbers of the kept steps, from 1.
        stopped: for each trajectory the step of its last state, 0 if that is the initial one; None
            if it was not stopped.
        reason: for each trajectory why it was stopped: "outside the examples", "not finite" or
            "until"; None if it was not.
        answer: what was applied: "answer" for the operator itself, one of its answers, or "law",
            a law of evolution with constant coefficients.
    """

    states: Any
    low: Any
    high: Any
    steps: np.ndarray
    stopped: tuple[int | None, ...]
    reason: tuple[str | None, ...]
    answer: str


@dataclass(frozen=True, eq=False)
class RolledStates:
    """The states after the kept steps.

    Attributes:
        states: NaN after the end of a trajectory.
        stopped: the step of each trajectory's last state.
        reason: why it stopped.
    """

    states: Float[Tensor, "m t c p"]
    stopped: list[int | None]
    reason: list[str | None]


def rollout(
    O: RegressedOperator,
    v: object,
    steps: int,
    band: float | None = None,
    every: int = 1,
    until: Until = None,
    parameters: object = None,
) -> Rollout:
    """The states of repeated steps. `RegressedOperator.rollout` has the arguments."""
    check_same_states(O.pairs)
    check_steps(steps, every, band, until)
    query = initial_states(O.pairs, v, parameters)
    stepper = O._stepper
    kept = np.arange(every, steps + 1, every)
    made = _made(O, stepper, query, kept, int(steps), until)
    _warn(made)
    parts: list[Tensor | None] = [made.states, None, None]
    if band is not None:
        half = _half_widths(O, stepper, query, made, kept, band)
        parts = [made.states, made.states - half, made.states + half]
    states, low, high = (
        None if part is None else in_kind(O.pairs.u, part, query.v, kept) for part in parts
    )
    return Rollout(states, low, high, kept, tuple(made.stopped), tuple(made.reason), stepper.name)


def _made(
    O: RegressedOperator,
    stepper: Stepper,
    query: Query,
    kept: Int[np.ndarray, " t"],
    steps: int,
    until: Until,
) -> RolledStates:
    """The states after the kept steps, until each trajectory stops."""
    states, p = as_tensor(query.v.array), query.parameters
    found = torch.full((len(states), len(kept), *states.shape[1:]), torch.nan, dtype=torch.float64)
    stopped: list[int | None] = [None] * len(states)
    reason: list[str | None] = [None] * len(states)
    active = np.arange(len(states))
    for step in range(steps + 1):
        why = _reasons(O, states, None if p is None else p[active], until if step else None)
        for i, said in zip(active.tolist(), why, strict=True):
            if said is not None and step < steps:
                stopped[i], reason[i] = step, said
        going = np.array([said is None for said in why], bool)
        active = active[going]
        if step == steps or not len(active):
            break
        states = stepper(states[going], None if p is None else p[active])
        place = int(np.searchsorted(kept, step + 1))
        if place < len(kept) and kept[place] == step + 1:
            found[active, place] = states
    return RolledStates(found, stopped, reason)


def _reasons(
    O: RegressedOperator, states: States, parameters: Parameters, until: Until
) -> list[str | None]:
    """Why each trajectory stops at these states; None for those that continue."""
    finite = states.isfinite().flatten(1).all(1).numpy()
    known = torch.where(states.isfinite(), states, 0.0)
    outside = O._stepper.outside(known, parameters)
    asked = np.zeros(len(states), bool)
    if until is not None:
        rows = in_kind(O.pairs.u, states[:, None], None, None)
        asked = np.array([_is_asked(until, row[0]) for row in rows])
    each = zip(finite, asked, outside, strict=True)
    return [INFINITE if not f else ASKED if a else OUTSIDE if o else None for f, a, o in each]


def _is_asked(until: Callable[[Any], object], state: Any) -> bool:
    """What the user's function says of a state."""
    try:
        return bool(until(state))
    except (ValueError, TypeError) as error:
        raise TransduceError(
            f"until failed on a state of shape {np.shape(state)} ({brief(error)}); expected True "
            "or False for each state, such as until=lambda state: bool((state > 3).any()). Correct "
            "the function."
        ) from error


def _half_widths(
    O: RegressedOperator,
    stepper: Stepper,
    query: Query,
    made: RolledStates,
    kept: Int[np.ndarray, " t"],
    level: float,
) -> Tensor:
    """Half the width of the band at each state."""
    errors = stepper.errors
    states, p = as_tensor(query.v.array), query.parameters
    every = int(kept[0])
    d = spreads(stepper, states, p, made.states, errors.residuals, O.pairs, every)
    factors = [errors.factor(int(t) - 1, level) for t in kept]
    return d * torch.tensor(factors, dtype=torch.float64)[:, None, None]


def _warn(made: RolledStates) -> None:
    """Warn once of trajectories that left the examples or became infinite."""
    for why in (OUTSIDE, INFINITE):
        ended = [i for i, said in enumerate(made.reason) if said == why]
        if ended:
            first = min(ended, key=lambda i: made.stopped[i] or 0)
            caution(
                f"{len(ended)} of {len(made.reason)} rollouts stopped {why} "
                f"({named(ended, 'trajectory', 'trajectories')}; first "
                f"trajectory {first} at step {made.stopped[first]}). Later states are NaN: give "
                "examples like these states, or fewer steps."
            )
