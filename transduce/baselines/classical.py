"""Regression without training: the mean of the examples, the identity, and kernel ridge.

    u_hat(v) = sum_i K(v_i, v) alpha_i,
    alpha = (K + lambda I)^-1 u,
    K(v, v') = exp(-gamma sum_k (v_k - v'_k)^2)

gamma and lambda are those with the least leave-one-out error, which no refit is needed for
(leave_one_out.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from ..types import Array, ExampleSet, TransduceError, like, to_tensor
from .leave_one_out import RidgeFit, best_ridge, residuals_like


def powers_of_ten(first: int, last: int, to_each: int = 1) -> np.ndarray:
    """10^first, ..., 10^last, so many to each factor of ten; the same bits on every machine, which
    numpy's powers are not."""
    return np.array([10.0 ** (k / to_each) for k in range(first * to_each, last * to_each + 1)])


GAMMAS = powers_of_ten(-6, -1, 2)[:-1]
LAMBDAS = powers_of_ten(-12, -2)
MANY = 1000  # values of u, above which a regression is of fewer numbers


@dataclass(frozen=True)
class MeanOfExamples:
    """u_hat(v) = the mean of the u_i, whatever v: the least that a regression should beat."""

    def regress(self, examples: ExampleSet) -> ConstantOperator:
        u = to_tensor(examples.u, "examples.u")
        left_out = rows_of(examples.u, "examples.u")
        left_out = (left_out - left_out.mean(0)) * (len(u) / max(len(u) - 1, 1))
        return ConstantOperator(u.mean(0), residuals_like(left_out, examples.u))


@dataclass(frozen=True, eq=False)
class ConstantOperator:
    """v -> u, the same for every v, with leave-one-out residuals at the examples."""

    u: torch.Tensor
    residuals: Array

    def __call__(self, v: Any) -> Any:
        return like(self.u.repeat(len(v), *[1] * self.u.ndim), v)


@dataclass(frozen=True)
class Identity:
    """u_hat(v) = v, whatever the examples: what an operator that changes little would earn for
    nothing."""

    def regress(self, examples: ExampleSet) -> IdentityOperator:
        v, u = (tuple(f.shape[1:]) for f in (examples.v, examples.u))
        if v != u:
            raise TransduceError(
                f"examples.v has functions of shape {v} and examples.u of shape {u}; the identity "
                "answers with what it is asked, so it "
                "expects the same. Interpolate one of them to the other's grid, or leave this "
                "baseline out."
            )
        residuals = rows_of(examples.u, "examples.u") - rows_of(examples.v, "examples.v")
        whole = torch.from_numpy(residuals).reshape(tuple(examples.u.shape))
        return IdentityOperator(like(whole, examples.u))


@dataclass(frozen=True, eq=False)
class IdentityOperator:
    """v -> v, with the residuals u - v at the examples."""

    residuals: Array

    def __call__(self, v: Any) -> Any:
        return like(to_tensor(v, "v"), v)


class KernelRidge:
    """Kernel ridge regression on the values at the grid points, in double precision, neither
    centred nor scaled.

    gammas, lambdas: what leave-one-out chooses from.

    >>> O = KernelRidge().regress(ExampleSet(v, u))      # v, u of shape (50, 101)
    >>> O(v_query).shape                                 # v_query of shape (7, 101)
    (7, 101)
    """

    def __init__(self, gammas: Any = GAMMAS, lambdas: Any = LAMBDAS):
        self.gammas, self.lambdas = np.asarray(gammas, float), np.asarray(lambdas, float)

    def __repr__(self) -> str:
        return f"KernelRidge(gammas={self.gammas.tolist()}, lambdas={self.lambdas.tolist()})"

    def regress(self, examples: ExampleSet) -> KernelRidgeOperator:
        v, u = rows_of(examples.v, "examples.v"), rows_of(examples.u, "examples.u")
        distances = squared_distances(v, v)
        numbers, directions = in_span(u)
        fits = ((self._fit(gamma, distances, numbers), gamma) for gamma in self.gammas.tolist())
        fit, gamma = min(fits, key=lambda found: found[0].error)
        shapes = tuple(examples.v.shape[1:]), tuple(examples.u.shape[1:])
        left_out = residuals_like(fit.residuals @ directions, examples.u)
        alpha = fit.alpha @ directions
        return KernelRidgeOperator(v, alpha, gamma, fit.ridge, fit.error, *shapes, left_out)

    def _fit(
        self, gamma: float, distances: Float[np.ndarray, "n n"], u: Float[np.ndarray, "n d"]
    ) -> RidgeFit:
        return best_ridge(np.exp(-gamma * distances), u, self.lambdas)


@dataclass(frozen=True, eq=False)
class KernelRidgeOperator:
    """v -> sum_i K(v_i, v) alpha_i, with the gamma and lambda chosen, their leave-one-out error
    (squares summed over the grid) and residuals."""

    v: Float[np.ndarray, "n d_v"]
    alpha: Float[np.ndarray, "n d_u"]
    gamma: float
    ridge: float
    leave_one_out: float
    v_shape: tuple[int, ...]
    u_shape: tuple[int, ...]
    residuals: Array

    def __call__(self, v: Any) -> Any:
        expect_grid(v, self.v_shape)
        u_hat = gaussian_kernel(rows_of(v, "v"), self.v, self.gamma) @ self.alpha
        return like(torch.from_numpy(u_hat).reshape(-1, *self.u_shape), v)


def squared_distances(
    x: Float[np.ndarray, "m d"], y: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "m n"]:
    """|x_i - y_j|^2, by |x|^2 - 2 <x, y> + |y|^2; exactly 0 between an array and itself."""
    squares = (np.einsum("ij,ij->i", f, f) for f in (x, y))
    found = np.add.outer(*squares) - 2 * x @ y.T
    np.maximum(found, 0, out=found)
    if x is y:
        np.fill_diagonal(found, 0)
    return found


def gaussian_kernel(
    x: Float[np.ndarray, "m d"], y: Float[np.ndarray, "n d"], gamma: float
) -> Float[np.ndarray, "m n"]:
    """exp(-gamma |x_i - y_j|^2)."""
    return np.exp(-gamma * squared_distances(x, y))


def rows_of(f: Any, name: str) -> Float[np.ndarray, "n d"]:
    """Functions as rows of values, in double precision."""
    return to_tensor(f, name).detach().cpu().double().flatten(1).numpy()


def in_span(
    u: Float[np.ndarray, "n d"],
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "k d"]]:
    """u = numbers directions, the directions being orthonormal: n of them where the values of u are
    many, else the values themselves.

    What is regressed is a combination of the u_i, and sums of squares over the grid are sums over
    the numbers."""
    if u.shape[1] <= MANY:
        return u, np.eye(u.shape[1])
    directions, numbers = np.linalg.qr(u.T)
    return numbers.T, directions.T


def expect_grid(v: Any, shape: tuple[int, ...]) -> None:
    """The grid of the queries must be that of the examples."""
    if tuple(v.shape[1:]) != shape:
        raise TransduceError(
            f"v has shape {tuple(v.shape)}; the examples' v had (n, "
            f"{', '.join(map(str, shape))}), and this regression compares "
            "values point by point. Interpolate v to their grid."
        )
