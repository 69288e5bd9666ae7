"""Linear elliptic problems with fixed coefficients: forcing to solution.

    -div(a grad u) + b . grad u + q u = v,      q < 0 for Helmholtz

The equation is factorised once (sparse LU), with values or no flux at the sides. Periodic ones of
constant coefficients are solved by Fourier series.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from scipy import sparse
from scipy.sparse.linalg import splu
from torch import Tensor

from ..laws import Dice, Law, Map, RejectedError, of_map
from .darcy import SIDES
from .elliptic import between
from .grid import FINE, FINE_TORUS, Grid, frequencies
from .measures import draw_measure, field

LARGEST = 1.0  # gain of a wave, of which 1 / (2 pi)^2 is usual


def forced(dice: Dice) -> Law:
    """Forcing to solution."""
    if dice.chance(0.35):
        return of_map(draw_measure(dice, FINE_TORUS), by_series(draw_symbol(dice, FINE_TORUS)))
    grid, conditions = FINE, dice.pick(SIDES)
    one = torch.ones(grid.points, grid.points, dtype=torch.float64)
    a = torch.exp(dice.uniform(0.2, 1.2) * field(dice, grid)) if dice.chance(0.5) else one
    wind = dice.log_uniform(1, 30) * dice.chance(0.35)
    b = torch.stack([wind * (dice.uniform(-1, 1) + field(dice, grid, 0.2) / 2) for _ in range(2)])
    q = dice.pick((0.0, dice.log_uniform(1, 300), -dice.log_uniform(5, 400)), (2, 1, 1.5))
    if q == 0 and "zero" not in conditions:
        q = dice.log_uniform(1, 300)
    g = field(dice, grid, 0.2) * dice.log_uniform(0.01, 0.3) if dice.chance(0.3) else 0 * one
    return of_map(draw_measure(dice, grid), Forced(a, b, q, conditions, g))


class Forced:
    """v -> u on the grid with both ends.

    Args:
        a: of the equation; arithmetic means between points.
        b: of the equation; centred differences.
        q: of the equation.
        conditions: of both pairs of sides, "zero" or "even".
        g: values at sides of condition "zero".
    """

    def __init__(
        self,
        a: Float[Tensor, "p p"],
        b: Float[Tensor, "2 p p"],
        q: float,
        conditions: tuple[str, str],
        g: Float[Tensor, "p p"],
    ):
        held = torch.zeros_like(a, dtype=torch.bool)
        for axis, condition in enumerate(conditions):
            held.select(axis, 0).logical_or_(torch.tensor(condition == "zero"))
            held.select(axis, -1).logical_or_(torch.tensor(condition == "zero"))
        self.inside, self.g = ~held.flatten().numpy(), g.numpy().ravel()
        self.A = _matrix(a.numpy(), b.numpy()) + q * sparse.eye(a.numel())
        self.A = self.A.tocsr()[self.inside]
        try:
            self.factors = splu(self.A[:, self.inside].tocsc(), permc_spec="MMD_AT_PLUS_A")
        except RuntimeError as error:  # exactly singular
            raise RejectedError from error

    def __call__(self, v: Float[Tensor, "n 1 p p"]) -> Float[Tensor, "n 1 p p"]:
        right = v.flatten(1).numpy()[:, self.inside].T
        known = np.where(self.inside, 0, self.g)
        u = np.tile(known, (len(v), 1))
        u[:, self.inside] = self.factors.solve(right - (self.A @ known)[:, None]).T
        return torch.from_numpy(u).view(v.shape)


def _matrix(a: np.ndarray, b: np.ndarray) -> sparse.spmatrix:
    """-div(a grad) + b . grad, without flux through the sides."""
    p = len(a)
    eye, step = sparse.eye(p), sparse.diags([-1.0, 1.0], [0, 1], shape=(p - 1, p)) * (p - 1)
    w = np.ones(p)
    w[0] = w[-1] = 0.5
    faces = torch.from_numpy(a)
    A = sparse.csr_matrix((p * p, p * p))
    for axis, D in enumerate((sparse.kron(step, eye), sparse.kron(eye, step))):
        low, high = faces.narrow(axis, 0, p - 1), faces.narrow(axis, 1, p - 1)
        flux = sparse.diags(between(low, high, False).numpy().ravel()) @ D
        halved = np.broadcast_to(w[:, None] if axis == 0 else w, (p, p)).ravel()
        A = A + sparse.diags(1 / halved) @ D.T @ flux
        A = A + sparse.diags(b[axis].ravel() / halved / 2) @ abs(D).T / (p - 1) @ D
    return A


def draw_symbol(dice: Dice, grid: Grid) -> Tensor:
    """1 / (a k.Mk + i b.k + q): the inverse of an equation with constant coefficients."""
    k_1, k_2 = frequencies(grid.points, grid.h)
    skew = dice.uniform(-0.8, 0.8) * dice.chance(0.3)
    k = k_1**2 + dice.log_uniform(0.3, 3) * k_2**2 + skew * k_1 * k_2
    wind = dice.uniform(0, 30) * dice.chance(0.35)
    slope = wind * (dice.uniform(-1, 1) * k_1 + dice.uniform(-1, 1) * k_2)
    q = dice.pick((dice.log_uniform(1, 300), -dice.log_uniform(20, 600), 0.0), (2, 1, 1))
    symbol = k + q + 1j * slope
    power = dice.pick((1.0, 2.0, 0.5), (5, 1, 1)) if q > 0 else 1.0
    if q == 0:
        symbol[0, 0] = torch.inf  # solutions of mean 0
    inverse = symbol**-power
    if not torch.isfinite(torch.view_as_real(inverse)).all() or inverse.abs().max() > LARGEST:
        raise RejectedError
    return inverse


def by_series(symbol: Tensor) -> Map:
    """Multiplication of Fourier coefficients of periodic fields."""
    return lambda v: torch.fft.irfft2(symbol * torch.fft.rfft2(v), s=v.shape[-2:])
