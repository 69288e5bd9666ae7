"""Consecutive states of one trajectory: u(., t) to u(., t + dt), in random order.

The equations are those of transport, of flows of two components, of warps with mixing, all with
small steps; a source or a wave keeps some of them going.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..laws import Dice, Law, Map, Measure, Pairs, RejectedError, require_bounded
from .flows import draw_flow
from .grid import TORUS
from .measures import draw_smooth, field
from .transport import draw_transport, draw_wind
from .warp import interpolated, interpolation

LONGEST = 100  # states of a trajectory that are drawn at once


def trajectory(dice: Dice) -> Law:
    """Pairs of consecutive states of one trajectory."""
    kind = dice.pick((carried, flowing, mixed), (3, 1, 2))
    return states_of(*kind(dice), dice)


def states_of(start: Measure, advance: Map, dice: Dice) -> Law:
    """The law of one trajectory from a random start."""
    first = start(1, dice)

    def states(count: int) -> Tensor:
        found = [first]
        for _ in range(count):
            found.append(advance(found[-1]))
        q = torch.cat(found)
        require_bounded(q)
        return q

    q = states(LONGEST)
    if q.std(0).square().mean() < 1e-6 * q.square().mean():
        raise RejectedError

    def sample(n: int, dice: Dice) -> Pairs:
        drawn = q if n <= LONGEST else states(n)
        order = dice.order(len(drawn) - 1)[:n]
        return drawn[order], drawn[order + 1]

    return sample


def carried(dice: Dice) -> tuple[Measure, Map]:
    """Advection, diffusion and reaction with a small step."""
    equation = draw_transport(dice, steps=1)
    speed = dice.log_uniform(0.05, 0.4)
    wind = None if equation.wind is None else speed * equation.wind
    a, b = (kappa * speed**2 / 4 for kappa in equation.kappa)
    equation = replace(equation, wind=wind, kappa=(a, b))
    if (reaction := equation.reaction) is not None:
        equation = replace(equation, reaction=lambda s: speed * reaction(s))
    pinned = equation.condition == "zero"
    return draw_smooth(dice, equation.grid, pinned=pinned), equation.flow()


def flowing(dice: Dice) -> tuple[Measure, Map]:
    """A flow of two components, far slower than in `flow`."""
    length = dice.log_uniform(0.12, 0.4)
    flow = draw_flow(dice, length, 0.002, 0.01)
    turning = 0.05 * (flow.m - flow.m.mT)  # in place of growth
    return draw_smooth(dice, flow.grid, 2, length=length), replace(flow, m=turning, g=flow.g / 10)


def mixed(dice: Dice) -> tuple[Measure, Map]:
    """Warps that keep turning the field, with a little forgetting and a source."""
    at = torch.stack(torch.meshgrid(TORUS.x, TORUS.x, indexing="ij"))
    A = interpolation(at + dice.log_uniform(0.005, 0.05) * draw_wind(dice, TORUS), TORUS)
    forget, source = dice.uniform(0, 0.05), field(dice, TORUS) * dice.uniform(0, 1)

    def advance(s: Tensor) -> Tensor:
        return (1 - forget) * interpolated(A, s) + forget * source

    return draw_smooth(dice, TORUS, dice.pick((1, 2)), length=0.15), advance
