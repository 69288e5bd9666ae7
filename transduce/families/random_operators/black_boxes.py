"""Operators without an equation: Volterra series, random neural operators, envelopes, extremes.

u = q(A p(v)),      u = A v + B (v . C v),      u = a network of random integral operators
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..laws import Dice, Law, draw_pointwise, of_map
from .grid import BOUNDARIES, N, x
from .linear import draw_matrix
from .measures import draw_measure, field


def _scaled_matrix(dice: Dice, trial: Tensor) -> Tensor:
    """A random linear operator, scaled to give answers of unit size for these inputs."""
    A = draw_matrix(dice)
    return A / ((trial @ A.T).std() + 1e-9)


def sandwich(dice: Dice) -> Law:
    """Pointwise, linear, pointwise (Hammerstein and Wiener models), and v itself now and then."""
    measure = draw_measure(dice, dice.pick(BOUNDARIES))
    p, trial = draw_pointwise(dice, 0.3), measure(32, dice)
    A, q = _scaled_matrix(dice, p(trial)), draw_pointwise(dice, 0.4)
    direct, r = dice.uniform(-1, 1) * dice.chance(0.4), draw_pointwise(dice)
    gain = 1 + dice.chance(0.3) * field(dice, 0.15, 0.6)
    return of_map(measure, lambda v: q(p(v) @ A.T) + direct * gain * r(v))


def volterra(dice: Dice) -> Law:
    """The first terms of a Volterra series."""
    measure = draw_measure(dice, dice.pick(BOUNDARIES))
    trial = measure(32, dice)
    A, B, C = (_scaled_matrix(dice, trial) for _ in range(3))
    share, third = dice.log_uniform(0.1, 2), dice.uniform(0, 1) * dice.chance(0.3)

    def respond(v: Tensor) -> Tensor:
        b, c = v @ B.T, v @ C.T
        return v @ A.T + share * b * c + third * b * c * c

    return of_map(measure, respond)


def neural(dice: Dice) -> Law:
    """A neural operator of 1 to 3 layers with random weights."""
    measure, width = draw_measure(dice, dice.pick(BOUNDARIES)), dice.pick((2, 4, 8))
    position, trial = dice.chance(0.5), measure(16, dice)
    layers, size = [], 1 + position
    for _ in range(dice.pick((1, 2, 3))):
        A = _scaled_matrix(dice, trial)
        mix, skip = (dice.normal(width, size) / size**0.5 for _ in range(2))
        layers.append(
            (
                A.T,
                mix,
                skip * dice.pick((0.0, 1.0)),
                dice.log_uniform(0.5, 2),
                dice.normal(width, 1) / 2,
            )
        )
        size = width
    out = dice.normal(width)

    def respond(v: Tensor) -> Tensor:
        h = torch.stack([v, x().expand_as(v)][: 1 + position], 1)
        for A, mix, skip, gain, bias in layers:
            h = torch.tanh(gain * (mix @ (h @ A) + skip @ h) + bias)
        return out @ h

    return of_map(measure, respond)


def extremes(dice: Dice) -> Law:
    """Running maxima, envelopes, local energies and sorted values."""
    measure = draw_measure(dice, dice.pick(BOUNDARIES))
    K = torch.exp(-0.5 * ((x()[:, None] - x()) / dice.log_uniform(0.02, 0.15)) ** 2)
    blur = (K / K.sum(1, keepdim=True)).T
    kind = dice.pick(("maximum", "envelope", "energy", "sorted", "above"))
    level = dice.uniform(-0.5, 0.5)

    def respond(v: Tensor) -> Tensor:
        if kind == "maximum":
            return v.cummax(1).values
        if kind == "sorted":
            return v.sort(1).values
        return {"envelope": v.abs(), "energy": v.square(), "above": (v - level).clamp(min=0)}[
            kind
        ] @ blur

    return of_map(measure, respond)


def unrelated(dice: Dice) -> Law:
    """u that does not depend on v, or hardly: the answer is the mean."""
    of_v, of_u = (draw_measure(dice, dice.pick(BOUNDARIES)) for _ in range(2))
    share = dice.pick((0.0, dice.log_uniform(0.02, 0.4)))
    A = _scaled_matrix(dice, of_v(16, dice))

    def sample(n: int, dice: Dice) -> tuple[Tensor, Tensor]:
        v, u = of_v(n, dice), of_u(n, dice)
        return v, (1 - share) * u + share * v @ A.T

    return sample


def curves(dice: Dice) -> Law:
    """Two measured curves of the same objects: both are driven by a few hidden numbers."""
    hidden, of_v = dice.pick((2, 3, 5, 8)), draw_measure(dice)
    left, right = of_v(hidden, dice), draw_measure(dice)(hidden, dice)
    mean = field(dice) * dice.log_uniform(0.3, 10) * dice.chance(0.5)
    bend = dice.uniform(0, 0.5) * dice.chance(0.5)
    shared, noise = dice.uniform(0.3, 1), dice.log_uniform(0.003, 0.3)
    weights = torch.exp(-dice.uniform(0, 0.8) * torch.arange(hidden, dtype=torch.float64))
    A = dice.normal(hidden, hidden) / hidden**0.5

    def sample(n: int, dice: Dice) -> tuple[Tensor, Tensor]:
        z = dice.normal(n, hidden) * weights
        own = shared * z + (1 - shared) * dice.normal(n, hidden) * weights
        v = z @ left + mean + noise * dice.normal(n, N)
        return v, (own + bend * own.square()) @ A @ right

    return sample
