"""Boundary-value problems: forcing or coefficient to solution.

    sum_k a_k(x) u^(k)(x) + c u(x)^3 = v(x),        order 1 to 4
    -(exp(s v) u')' + q u = f,      -u'' + 15 s (1 + s v) u = f

Conditions of the first: values, slopes or mixtures of both at the ends, values inside, the mean;
zero or not, so that many of these operators are affine. u^(k) is the k-th derivative; s, q and f
belong to the operator.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..laws import Dice, Law, Map, RejectedError, of_map, require_bounded
from .grid import BOUNDARIES, H, N, derivative, quadrature, x
from .linear import affine
from .measures import draw_measure, field

WORST = 1e11  # condition number from which rounding decides the solution


def forced(dice: Dice) -> Law:
    """Forcing to solution, linear or with a cubic term."""
    measure = draw_measure(dice, dice.pick(BOUNDARIES))
    A, rows, values = draw_problem(dice)
    scale = _size_of_solutions(A, rows)
    values = values * scale
    if dice.chance(0.25):
        c = dice.log_uniform(0.1, 3) / scale**3 * dice.pick((1.0, 1.0, -0.3))
        return of_map(measure, cubic(A, rows, values, c))
    return of_map(measure, linear(A, rows, values))


def draw_problem(dice: Dice) -> tuple[Float[Tensor, "N N"], list[int], Tensor]:
    """The matrix of a differential operator with conditions in some of its rows, these rows, and
    the values of the conditions in units of the solution."""
    order = dice.pick((1, 2, 3, 4), (1.5, 5, 1, 1))
    terms = {order: _coefficient(dice, 1.0)}
    stretch = dice.log_uniform(1, 30)
    for k in range(order):
        if dice.chance(0.5):
            terms[k] = _coefficient(dice, dice.uniform(-1, 1) * stretch ** (order - k))
    rows, places = _places(order, dice)
    at_left = sum(row < order for row in rows)
    A = torch.zeros(N, N, dtype=torch.float64)
    for k, a in terms.items():
        A = A + a[:, None] * _derivative(k, 2 * at_left < order)
    A = A / A.abs().max()
    scale = A.abs().sum(1).max()
    for row, place in zip(rows, places, strict=True):
        A[row] = _condition(row, place, dice) * scale
    inhomogeneous = 1.5 * dice.chance(0.4)
    return A, rows, inhomogeneous * scale * dice.normal(order)


def _derivative(k: int, from_right: bool) -> Float[Tensor, "N N"]:
    """The matrix of u^(k).

    Stencils of an even number of points reach further to one side. Where most conditions are on the
    other side, the matrix with conditions is singular up to rounding, so `from_right` mirrors it.
    """
    if k == 0:
        return torch.eye(N, dtype=torch.float64)
    return (-1) ** k * derivative(k).flip(0, 1) if from_right else derivative(k)


def _coefficient(dice: Dice, size: float) -> Tensor:
    """A constant, or a function that keeps its sign."""
    one = torch.ones(N, dtype=torch.float64)
    return size * (torch.exp(0.5 * field(dice, 0.15, 0.6)) if dice.chance(0.4) else one)


def _places(order: int, dice: Dice) -> tuple[list[int], list[int]]:
    """The rows that conditions replace, all near the ends, and the place where each condition
    holds: the nearest end, or now and then a place inside."""
    inside = sorted(dice.order(N)[:order].tolist()) if dice.chance(0.15) else None
    first = (order + 1) // 2 if inside or dice.chance(0.5) else order // 2
    rows = [*range(first), *range(N - (order - first), N)]
    return rows, inside or [0 if row < first else N - 1 for row in rows]


def _condition(row: int, place: int, dice: Dice) -> Float[Tensor, " N"]:
    """A linear functional of unit size: a value, a slope, a mixture of both or the mean."""
    value = torch.zeros(N, dtype=torch.float64)
    value[place] = 1
    slope = derivative(1)[place]
    slope = slope / slope.abs().max()
    at_end = place in (0, N - 1)
    if at_end and row not in (0, N - 1):  # the second condition at the same end is of the slope
        return slope
    kind = dice.pick(("value", "slope", "mixture", "mean"), (5, 1.5, 1, 0.3))
    mean = quadrature() * (N - 1) / 10
    return {"value": value, "slope": slope, "mixture": 0.5 * value + slope, "mean": mean}[kind]


def _size_of_solutions(A: Tensor, rows: list[int]) -> float:
    """The typical size of A^-1 applied to smooth forcing of unit size, or an error if rounding
    decides it."""
    inverse = torch.linalg.inv(A)
    trial = torch.cos(torch.arange(6, dtype=torch.float64)[:, None] * 3 * x()).T.clone()
    trial[rows] = 0
    size = (inverse @ trial).square().mean().sqrt().item()
    condition = torch.linalg.matrix_norm(A, 1) * torch.linalg.matrix_norm(inverse, 1)
    if not (condition < WORST and 1e-12 < size < 1e9):
        raise RejectedError
    return size


def linear(A: Tensor, rows: list[int], values: Tensor) -> Map:
    """The solution of A u = v with conditions in some rows of A."""
    inverse = torch.linalg.inv(A)
    keep = torch.ones(N, dtype=torch.float64)
    keep[rows] = 0
    right = torch.zeros(N, dtype=torch.float64)
    right[rows] = values
    return affine(inverse * keep, inverse @ right)


def cubic(A: Tensor, rows: list[int], values: Tensor, c: float) -> Map:
    """The solution of A u + c |A| u^3 = v with conditions in some rows of A, by Newton's method.

    |A| is the largest entry of A.
    """
    active = torch.ones(N, dtype=torch.float64)
    active[rows] = 0
    norm = A.abs().max()

    def solve(v: Tensor) -> Tensor:
        right = v * active
        right[:, rows] = values
        u = torch.linalg.solve(A, right.T).T
        for _ in range(12):
            residual = u @ A.T + c * norm * active * u**3 - right
            jacobian = A + torch.diag_embed(3 * c * norm * active * u**2)
            step = torch.linalg.solve(jacobian, residual)
            u = u - step
            require_bounded(u, 1e9)
            if step.abs().max() < 1e-10 * (1 + u.abs().max()):
                return u
        raise RejectedError

    return solve


@dataclass(frozen=True)
class Medium:
    """Coefficient to solution, with u(0) = left and u(1) = right or u'(1) = 0.

    Args:
        source: f.
        strength: s; s v is limited to [-4, 4].
        diffusion: whether v is the logarithm of a diffusion coefficient; else it is a potential.
        q: of the term q u in the diffusion equation.
        left: u(0).
        right: u(1); None: the slope vanishes there.
    """

    source: Float[Tensor, " N"]
    strength: float
    diffusion: bool
    q: float
    left: float
    right: float | None

    def __call__(self, v: Float[Tensor, "n N"]) -> Float[Tensor, "n N"]:
        w = (self.strength * v).clamp(-4, 4)
        if self.diffusion:
            A = diffusion(w) + self.q * torch.eye(N, dtype=torch.float64)
        else:
            A = -derivative(2) + torch.diag_embed(15 * self.strength * (1 + w))
        f = self.source.expand_as(v).clone()
        A[:, [0, -1]] = 0.0
        A[:, 0, 0], f[:, 0] = 1.0, self.left
        if self.right is None:
            A[:, -1], f[:, -1] = derivative(1)[-1] / (N - 1), 0.0
        else:
            A[:, -1, -1], f[:, -1] = 1.0, self.right
        u = torch.linalg.solve(A, f)
        require_bounded(u, 1e6)
        return u


def diffusion(w: Float[Tensor, "n N"]) -> Float[Tensor, "n N N"]:
    """The matrices of u -> -(exp(w) u')' inside, with fluxes between neighbouring points."""
    slope = torch.eye(N, dtype=torch.float64).diff(dim=0) / H
    between = torch.exp((w[:, 1:] + w[:, :-1]) / 2)
    return slope.T @ (between[..., None] * slope)


def coefficient(dice: Dice) -> Law:
    """Coefficient to solution: a diffusion coefficient or a potential."""
    measure = draw_measure(dice, dice.pick(BOUNDARIES))
    source = 10 * (field(dice, 0.1, 0.5) if dice.chance(0.5) else torch.ones(N).double())
    strength, diffusion = dice.log_uniform(0.2, 1), dice.chance(0.5)
    q, left, right = dice.uniform(0, 20) * dice.chance(0.5), dice.uniform(0, 1), dice.uniform(0, 1)
    medium = Medium(source, strength, diffusion, q, left, None if dice.chance(0.3) else right)
    return of_map(measure, medium)
