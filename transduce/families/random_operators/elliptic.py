"""Boundary-value problems: forcing or coefficient to solution.

    sum_k a_k(x) u^(k)(x) + c u(x)^3 = v(x),        order 1 to 4
    -(exp(v) u')' + q u = f,     -u'' + v u = f

Conditions: values, derivatives or mixtures at the ends, values inside, the mean, periodicity; zero
or not, so that most of these operators are affine.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from .dice import Dice
from .grid import BOUNDARIES, N, derivative, quadrature, x
from .law import Law, Map, RejectedError, affine, of_map, require_bounded
from .measures import draw_measure, field


def forced(dice: Dice) -> Law:
    """Forcing to solution, linear or with a cubic term."""
    measure = draw_measure(dice, dice.pick(BOUNDARIES))
    A, rows, values = draw_problem(dice)
    scale = _size_of_solutions(A, rows)
    values = values * scale
    if dice.chance(0.25):
        c = dice.log_uniform(0.1, 3) / scale**3 * dice.pick((1.0, 1.0, -0.3))
        return of_map(measure, cubic(A, rows, values, c))
    inverse = torch.linalg.inv(A)
    keep = torch.ones(N, dtype=torch.float64)
    keep[rows] = 0
    right = torch.zeros(N, dtype=torch.float64)
    right[rows] = values
    return of_map(measure, affine(inverse * keep, inverse @ right))


def draw_problem(dice: Dice) -> tuple[Float[Tensor, "N N"], list[int], Tensor]:
    """The matrix of a differential operator with conditions in some of its rows, these rows, and
    the values of the conditions in units of the solution."""
    order = dice.pick((1, 2, 3, 4), (1.5, 5, 1, 1))
    A = _coefficient(dice, 1.0)[:, None] * derivative(order)
    stretch = dice.log_uniform(1, 30)
    for k in range(order):
        if dice.chance(0.5):
            size = dice.uniform(-1, 1) * stretch ** (order - k)
            A = (
                A + _coefficient(dice, size)[:, None] * derivative(k)
                if k
                else A + torch.diag(_coefficient(dice, size))
            )
    A = A / A.abs().max()
    rows = _rows(order, dice)
    scale = A.abs().sum(1).max()
    for row in rows:
        A[row] = _condition(row, order, dice) * scale
    inhomogeneous = 1.5 * dice.chance(0.4)
    return A, rows, inhomogeneous * scale * dice.normal(order)


def _coefficient(dice: Dice, size: float) -> Tensor:
    """A constant, or a function that keeps its sign."""
    one = torch.ones(N, dtype=torch.float64)
    return size * (torch.exp(0.5 * field(dice, 0.15, 0.6)) if dice.chance(0.4) else one)


def _rows(order: int, dice: Dice) -> list[int]:
    """The rows that conditions replace: at the ends, or now and then inside."""
    if dice.chance(0.15):
        return sorted(dice.order(N)[:order].tolist())
    first = (order + 1) // 2 if dice.chance(0.5) else order // 2
    return [*range(first), *range(N - (order - first), N)]


def _condition(row: int, order: int, dice: Dice) -> Float[Tensor, " N"]:
    """A linear functional of unit size: a value, a derivative, a mixture or the mean."""
    value = torch.zeros(N, dtype=torch.float64)
    at = 0 if row < order else N - 1 if row >= N - order else row
    value[at] = 1
    slope = derivative(1)[at]
    slope = slope / slope.abs().max()
    depth = min(row, N - 1 - row) if at in (0, N - 1) else 0
    if depth:  # the second condition at the same end is of the slope
        return slope
    kind = dice.pick(("value", "slope", "mixture", "mean"), (5, 1.5, 1, 0.3))
    mean = quadrature() * (N - 1) / 10
    return {"value": value, "slope": slope, "mixture": 0.5 * value + slope, "mean": mean}[kind]


def _size_of_solutions(A: Tensor, rows: list[int]) -> float:
    """The typical size of A^-1 applied to smooth forcing of unit size."""
    trial = torch.cos(torch.arange(6, dtype=torch.float64)[:, None] * 3 * x()).T.clone()
    trial[rows] = 0
    solution = torch.linalg.lstsq(A, trial).solution
    size = solution.square().mean().sqrt().item()
    if not 1e-12 < size < 1e9:
        raise RejectedError
    return size


def cubic(A: Tensor, rows: list[int], values: Tensor, c: float) -> Map:
    """Newton's method for A u + c u^3 = v with linear conditions."""
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


def coefficient(dice: Dice) -> Law:
    """Coefficient to solution: a diffusion coefficient or a potential."""
    measure = draw_measure(dice, dice.pick(BOUNDARIES))
    source = 10 * (field(dice, 0.1, 0.5) if dice.chance(0.5) else torch.ones(N).double())
    strength, diffusion = dice.log_uniform(0.2, 1), dice.chance(0.5)
    q, left, right = dice.uniform(0, 20) * dice.chance(0.5), dice.uniform(0, 1), dice.uniform(0, 1)
    slopes = dice.chance(0.3)
    D1 = derivative(1, "free")

    def solve(v: Tensor) -> Tensor:
        w = (strength * v).clamp(-4, 4)
        if diffusion:
            A = -(D1 @ (torch.exp(w)[..., None] * D1)) + q * torch.eye(N).double()
        else:
            A = -derivative(2) + torch.diag_embed(15 * strength * (1 + w))
        A, f = A.clone(), source.expand(len(v), N).clone()
        A[:, 0], A[:, -1] = 0.0, (D1[-1] / (N - 1) if slopes else 0.0)
        A[:, 0, 0] = 1.0
        if not slopes:
            A[:, -1, -1] = 1.0
        f[:, 0], f[:, -1] = left, 0.0 if slopes else right
        u = torch.linalg.solve(A, f)
        require_bounded(u, 1e6)
        return u

    return of_map(measure, solve)
