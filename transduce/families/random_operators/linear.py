"""Linear operators and their sums: integral operators, filters, products, derivatives, warps.

    u(x) = int G(x, y) v(y) dy + a(x) v(phi(x)) + b(x) v'(x)

G may be smooth, of low rank, a convolution, causal, or have a kink on the diagonal.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from ..laws import Dice, Law, Map, of_map
from .grid import BOUNDARIES, N, derivative, differences, field_root, integral, quadrature, x
from .measures import draw_measure, field, fields


def linear(dice: Dice) -> Law:
    """One or two terms, each of unit size, and an offset now and then."""
    measure = draw_measure(dice, dice.pick(BOUNDARIES))
    A = _unit(draw_matrix(dice))
    if dice.chance(0.35):
        A = A + dice.uniform(-1, 1) * _unit(draw_matrix(dice))
    offset = field(dice) * dice.uniform(0, 2) if dice.chance(0.25) else torch.zeros(N).double()
    return of_map(measure, affine(A, offset))


def affine(A: Float[Tensor, "N N"], offset: Float[Tensor, " N"]) -> Map:
    """v -> A v + offset."""
    return lambda v: v @ A.T + offset


def draw_matrix(dice: Dice) -> Float[Tensor, "N N"]:
    """The matrix of a random linear operator."""
    kinds = (convolution, causal, kinked, low_rank, smooth, product, warp, differential, power)
    return dice.pick(kinds, (2, 2, 1.5, 1, 1, 1, 2, 1, 1))(dice)


def _unit(A: Float[Tensor, "N N"]) -> Float[Tensor, "N N"]:
    """Scaled so that smooth random fields of unit size stay about that."""
    root = field_root(math.inf, 0.2)
    return A / ((A @ root).square().sum(1).mean().sqrt() + 1e-12)


def convolution(dice: Dice) -> Tensor:
    """Blurs, exponentials and damped waves; tapered in x or not."""
    d, length = (
        differences() + dice.uniform(-0.1, 0.1) * dice.chance(0.4),
        dice.log_uniform(0.01, 0.4),
    )
    K = dice.pick(
        (
            torch.exp(-0.5 * (d / length) ** 2),
            torch.exp(-d.abs() / length),
            torch.exp(-d.abs() / length) * torch.cos(dice.uniform(3, 30) * d + dice.uniform(0, 6)),
            (1 - (d / length) ** 2) * torch.exp(-0.5 * (d / length) ** 2),
        )
    )
    return _tapered(K, dice) * quadrature()


def causal(dice: Dice) -> Tensor:
    """Integrals from 0 to x, with memory that decays or oscillates; from x to 1 now and then."""
    decay, frequency = (
        dice.pick((0.0, dice.log_uniform(1, 50))),
        dice.pick((0.0, dice.uniform(0, 25))),
    )
    d = differences().clamp(min=0)
    response = torch.exp(-decay * d) * torch.cos(frequency * d)
    A = integral() * _tapered(response, dice)
    return A.flip(0, 1) if dice.chance(0.2) else A


def kinked(dice: Dice) -> Tensor:
    """Green's functions with a kink or a jump on the diagonal."""
    y = x()
    low, high = torch.minimum(y[:, None], y), torch.maximum(y[:, None], y)
    a = dice.log_uniform(0.5, 12)
    K = dice.pick(
        (
            low * (1 - high),
            low,
            torch.sinh(a * low) * torch.sinh(a * (1 - high)),
            torch.sin(a * low) * torch.sin(a * (1 - high)),
            torch.sign(differences()) * torch.exp(-a * differences().abs()),
        )
    )
    return _tapered(K, dice) * quadrature()


def low_rank(dice: Dice) -> Tensor:
    """Sums of a few products g(x) h(y)."""
    rank = dice.pick((1, 2, 3, 6))
    return fields(rank, dice).T @ fields(rank, dice) * quadrature()


def smooth(dice: Dice) -> Tensor:
    """A random field G(x, y)."""
    left, right = (field_root(math.inf, dice.log_uniform(0.08, 0.4)) for _ in range(2))
    return left @ dice.normal(left.shape[1], right.shape[1]) @ right.T * quadrature()


def product(dice: Dice) -> Tensor:
    """A product with a fixed function."""
    return torch.diag(1 + dice.log_uniform(0.1, 2) * field(dice, 0.05, 0.6))


def warp(dice: Dice) -> Tensor:
    """u(x) = a(x) v(phi(x)), blurred or not: shifts, stretches, delays."""
    moved = x() + dice.uniform(-0.15, 0.15) * dice.chance(0.6)
    moved = moved + dice.log_uniform(0.003, 0.05) * field(dice, 0.15, 0.6)
    if dice.chance(0.25):
        moved = 0.5 + (moved - 0.5) * dice.uniform(0.3, 1)
    A = interpolation(moved.clamp(0, 1))
    if dice.chance(0.5):
        A = (1 + dice.uniform(0, 0.6) * field(dice, 0.1, 0.6))[:, None] * A
    if dice.chance(0.3):
        K = torch.exp(-0.5 * (differences() / dice.log_uniform(0.01, 0.06)) ** 2)
        A = K / K.sum(1, keepdim=True) @ A
    return A


def interpolation(places: Float[Tensor, " p"]) -> Float[Tensor, "p N"]:
    """The matrix of linear interpolation at places in [0, 1]."""
    t = places * (N - 1)
    i = t.floor().long().clamp(max=N - 2)
    A = torch.zeros(len(places), N, dtype=torch.float64)
    A[torch.arange(len(places)), i] = 1 - (t - i)
    A[torch.arange(len(places)), i + 1] = t - i
    return A


def differential(dice: Dice) -> Tensor:
    """v' or v'', blurred by a little, or combined with v."""
    K = torch.exp(-0.5 * (differences() / dice.log_uniform(0.01, 0.05)) ** 2)
    A = derivative(dice.pick((1, 1, 2))) @ (K / K.sum(1, keepdim=True))
    return _unit(A) + dice.uniform(-1, 1) * torch.eye(N).double() if dice.chance(0.5) else A


def power(dice: Dice) -> Tensor:
    """(a + D)^-s on cosine series, where D is the root of minus the second derivative: fractional
    smoothing, or roughening for s < 0."""
    modes = torch.arange(N // 2, dtype=torch.float64)
    basis = torch.cos(math.pi * modes[:, None] * x())
    symbol = (dice.log_uniform(1, 10) + math.pi * modes) ** -dice.uniform(-0.5, 2)
    norms = (basis.square() * quadrature()).sum(1, keepdim=True)
    return (basis.T * symbol) @ (basis / norms * quadrature())


def _tapered(K: Float[Tensor, "N N"], dice: Dice) -> Float[Tensor, "N N"]:
    """G(x, y) times functions of x and y, now and then."""
    if dice.chance(0.3):
        K = K * (1 + 0.8 * field(dice, 0.1, 0.6))[:, None]
    return K * (1 + 0.8 * field(dice, 0.1, 0.6)) if dice.chance(0.2) else K
