"""Linear ridge and RBF kernel ridge with the mean inside the fit.

    u_hat(v) = c + sum_i (K(v_i, v) + B) alpha_i,      c = the mean of the u_i
    alpha = (K + B + lambda I)^-1 (u - c)

    linear    K(v, v') = <v - m, v' - m> / s,  m = the mean of the v_i, s = the mean of |v_i - m|^2
    rbf       K(v, v') = exp(-|v - v'|^2 / (w d)),  d = the median of |v_i - v_j|^2, i != j

B = 1000 is the prior variance of a constant, so leave-one-out residuals also leave example i out of
the mean. lambda, and w of rbf, have the least leave-one-out error; B, c, m, s and d are the same
for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from ..types import Array, ExampleSet, like
from .classical import expect_grid, in_span, powers_of_ten, rows_of, squared_distances
from .leave_one_out import RidgeFit, best_ridge, residuals_like

RIDGES = powers_of_ten(-10, 2)
WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0)
CONSTANT = 1e3  # B
TINY = 1e-300  # of a scale, where all v_i are the same


@dataclass(frozen=True, eq=False)
class LinearKernel:
    """<v - centre, v' - centre> / scale + B, between rows and the examples."""

    examples: Float[np.ndarray, "n d"]
    centre: Float[np.ndarray, " d"]
    scale: float

    @classmethod
    def of(cls, v: Float[np.ndarray, "n d"]) -> LinearKernel:
        centred = v - v.mean(0)
        return cls(centred, v.mean(0), float(np.square(centred).sum(1).mean()) + TINY)

    def __call__(self, v: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m n"]:
        return (v - self.centre) @ self.examples.T / self.scale + CONSTANT


@dataclass(frozen=True, eq=False)
class RbfKernel:
    """exp(-|v - v'|^2 / width) + B, between rows and the examples."""

    examples: Float[np.ndarray, "n d"]
    width: float

    def __call__(self, v: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m n"]:
        return rbf(squared_distances(v, self.examples), self.width)


def rbf(distances: Float[np.ndarray, "m n"], width: float) -> Float[np.ndarray, "m n"]:
    """exp(-distances / width) + B."""
    with np.errstate(over="ignore"):  # examples that are all the same have no width
        return np.exp(-distances / width) + CONSTANT


@dataclass(frozen=True)
class LinearRidge:
    """Linear ridge regression on the values at the grid points; lambda by leave-one-out.

    >>> O = LinearRidge().regress(ExampleSet(v, u))      # v, u of shape (50, 101)
    >>> O.residuals.shape                                # leave-one-out, at the examples
    (50, 101)
    """

    def regress(self, examples: ExampleSet) -> RidgeOperator:
        v, u = Outputs.rows(examples)
        kernel = LinearKernel.of(v)
        return u.operator(kernel, best_ridge(kernel(v), u.numbers, RIDGES), examples)


@dataclass(frozen=True)
class RbfRidge:
    """Kernel ridge regression with an RBF kernel on the values at the grid points; its width and
    lambda by leave-one-out.

    >>> O = RbfRidge().regress(ExampleSet(v, u))      # v, u of shape (50, 101)
    """

    def regress(self, examples: ExampleSet) -> RidgeOperator:
        v, u = Outputs.rows(examples)
        distances = squared_distances(v, v)
        unit = median_off_diagonal(distances) + TINY
        fits = (
            (best_ridge(rbf(distances, width * unit), u.numbers, RIDGES), width) for width in WIDTHS
        )
        fit, width = min(fits, key=lambda found: found[0].error)
        return u.operator(RbfKernel(v, width * unit), fit, examples)


@dataclass(frozen=True, eq=False)
class Outputs:
    """The examples' u as the mean and numbers to regress: u = mean + numbers directions."""

    mean: Float[np.ndarray, " d"]
    numbers: Float[np.ndarray, "n k"]
    directions: Float[np.ndarray, "k d"]

    @classmethod
    def rows(cls, examples: ExampleSet) -> tuple[Float[np.ndarray, "n e"], Outputs]:
        """The examples' v as rows of values, and their u."""
        v, u = rows_of(examples.v, "examples.v"), rows_of(examples.u, "examples.u")
        return v, cls(u.mean(0), *in_span(u - u.mean(0)))

    def operator(
        self, kernel: LinearKernel | RbfKernel, fit: RidgeFit, examples: ExampleSet
    ) -> RidgeOperator:
        residuals = residuals_like(fit.residuals @ self.directions, examples.u)
        shapes = tuple(examples.v.shape[1:]), tuple(examples.u.shape[1:])
        alpha = fit.alpha @ self.directions
        return RidgeOperator(kernel, alpha, self.mean, fit.ridge, fit.error, residuals, *shapes)


@dataclass(frozen=True, eq=False)
class RidgeOperator:
    """v -> mean + sum_i kernel(v, v_i) alpha_i.

    Attributes:
        kernel: with its width or scale.
        alpha: coefficients, a row for each example.
        mean: of the examples' u.
        ridge: the lambda chosen.
        leave_one_out: its error, squares summed over the grid.
        residuals: leave-one-out residuals at the examples, of the shape of their u.
        v_shape, u_shape: shape of one function.
    """

    kernel: LinearKernel | RbfKernel
    alpha: Float[np.ndarray, "n d"]
    mean: Float[np.ndarray, " d"]
    ridge: float
    leave_one_out: float
    residuals: Array
    v_shape: tuple[int, ...]
    u_shape: tuple[int, ...]

    def __call__(self, v: Array) -> Array:
        expect_grid(v, self.v_shape)
        u_hat = self.kernel(rows_of(v, "v")) @ self.alpha + self.mean
        return like(torch.from_numpy(u_hat).reshape(-1, *self.u_shape), v)


def median_off_diagonal(distances: Float[np.ndarray, "n n"]) -> float:
    """The median of the distances between different examples; 1 where there is but one."""
    if len(distances) == 1:
        return 1.0
    return float(np.median(distances[~np.eye(len(distances), dtype=bool)]))
