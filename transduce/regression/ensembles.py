"""Bands of repeated steps.

    s_k(t + 1) = O(s_k(t)) + c r_i,      i random for each member k and step

r_i are errors of single steps at examples that are left out, so the operator itself carries them
on. c is the honesty factor of one-step bands, where these errors are leave-one-out residuals, and
1 where they are those of a later part of a trajectory. The band about the state without noise is

    |s(t) - s_hat(t)| <= q_t d(t),        d(t)^2 = mean_k |s_k(t) - s_hat(t)|^2 + least

and q_t holds a share of the values of trajectories among examples that are left out. Without such
trajectories, q_t is the quantile of |r_i| in units of its root mean square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..bands import quantile
from ..inputs import Pairs
from .steps import Parameters, Part, States, Step, bounds_of, repeated, within

MEMBERS, FEWEST_MEMBERS, TOGETHER = 32, 8, 800  # members for each start; states in one call
LEAST = 0.3  # share of the spread at all points in that at one point
SEED = 2026


@dataclass(frozen=True)
class Errors:
    """What bands are made of.

    Attributes:
        residuals: errors of single steps, times the honesty factor.
        ratios: for each part of the examples that was left out, errors at each step of its
            trajectories in units of d; empty if there are none. Their larger factor is used.
    """

    residuals: Float[Tensor, "n c p"]
    ratios: tuple[tuple[Tensor, ...], ...] = ()

    def factor(self, step: int, level: float) -> float:
        """q_t. Beyond the known steps it is that of the last."""
        if not self.ratios:
            return float(quantile(self.residuals.abs() / _spread(self.residuals), level))
        return max(_factor(part, step, level) for part in self.ratios)


def _factor(ratios: tuple[Tensor, ...], step: int, level: float) -> float:
    """The quantile over three steps, or over the last ones that are known."""
    last = min(step + 2, len(ratios))
    near = ratios[max(0, min(step - 1, last - 3)) : last]
    return float(quantile(torch.cat(near), level))


def spreads(
    step: Step,
    states: States,
    parameters: Parameters,
    made: Float[Tensor, "m t c p"],
    residuals: Float[Tensor, "n c p"],
    pairs: Pairs,
    every: int = 1,
) -> Float[Tensor, "m t c p"]:
    """d(t) for each trajectory; NaN after its end.

    Args:
        step: from states to the next ones.
        states: where trajectories start.
        parameters: of each trajectory.
        made: their states without noise after every `every` steps; NaN after their end.
        residuals: errors of single steps.
        pairs: the examples.
        every: steps from one of the states `made` to the next.
    """
    generator = torch.Generator().manual_seed(SEED)
    found = torch.full_like(made, torch.nan)
    count = max(FEWEST_MEMBERS, min(MEMBERS, TOGETHER // len(made)))
    bounds = bounds_of(pairs)
    for some in torch.arange(len(made)).split(max(1, TOGETHER // count)):
        members = states[some].repeat_interleave(count, 0)
        rows = None if parameters is None else parameters[some.numpy()].repeat(count, 0)
        for k in range(made.shape[1]):
            alive = made[some, k].isfinite().flatten(1).all(1)
            some, kept = some[alive], alive.repeat_interleave(count)
            members, rows = members[kept], None if rows is None else rows[kept.numpy()]
            if not len(some):
                break
            for _ in range(every):
                drawn = torch.randint(len(residuals), (len(members),), generator=generator)
                members = within(step(members, rows), bounds, residuals[drawn])
            away = members.unflatten(0, (len(some), count)) - made[some, k, None]
            found[some, k] = _with_least(away.square().mean(1).sqrt())
    return found


def _with_least(spread: Float[Tensor, "m c p"]) -> Float[Tensor, "m c p"]:
    """The spread at each point, with a share of that of all points of a channel."""
    overall = spread.square().mean(-1, keepdim=True).sqrt()
    return torch.hypot(spread, LEAST * overall) / (1 + LEAST**2) ** 0.5 + 1e-300


def _spread(residuals: Float[Tensor, "n c p"]) -> Float[Tensor, "1 c p"]:
    return _with_least(residuals.square().mean(0, keepdim=True).sqrt())


def errors_of(name: str, pairs: Pairs, parts: Sequence[Part], own: Tensor) -> Errors:
    """Errors of single and repeated steps by the map of this name.

    Args:
        name: of the map.
        pairs: the examples.
        parts: regressions from some of them.
        own: leave-one-out residuals times the honesty factor, for examples without trajectories.
    """
    if not parts:
        return Errors(own)
    with torch.no_grad():
        singles = torch.cat([_single(name, pairs, part) for part in parts])
        each = [_ratios(name, pairs, part, singles) for part in parts]
    return Errors(singles, tuple(each))


def _single(name: str, pairs: Pairs, part: Part) -> Float[Tensor, "s c p"]:
    """Errors of the first step."""
    return part.truth[:, 0] - part.step(name)(*part.start(pairs))


def _ratios(name: str, pairs: Pairs, part: Part, singles: Tensor) -> tuple[Tensor, ...]:
    """Errors in units of d, at each step."""
    states, p = part.start(pairs)
    step, steps = part.step(name), part.truth.shape[1]
    made = repeated(step, states, p, steps, bounds_of(pairs))
    apart = (part.truth - made).abs() / spreads(step, states, p, made, singles, pairs)
    return tuple(r[r.isfinite()] for r in apart.unbind(1))
