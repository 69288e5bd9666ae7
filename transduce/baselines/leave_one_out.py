"""The ridge of least leave-one-out error, without a refit.

    alpha = (K + lambda I)^-1 u,
    u_i - u_hat_{-i}(v_i) = alpha_i / [(K + lambda I)^-1]_ii

The second line is the residual of example i in the fit to all others with the same K and lambda.
One eigendecomposition of K gives it for every lambda."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from ..types import Array, like


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """A ridge regression and its leave-one-out residuals.

    Attributes:
        error: mean over the examples of the squared residuals, summed over the values of u.
        ridge: the lambda of least error.
        alpha: coefficients, a row for each example.
        residuals: u_i minus the prediction of the fit without example i.
    """

    error: float
    ridge: float
    alpha: Float[np.ndarray, "n d"]
    residuals: Float[np.ndarray, "n d"]


def best_ridge(
    K: Float[np.ndarray, "n n"], u: Float[np.ndarray, "n d"], ridges: Float[np.ndarray, " r"]
) -> RidgeFit:
    """The ridge regression of least leave-one-out error.

    Args:
        K: the kernel at the examples.
        u: values to regress.
        ridges: candidates for lambda; the first of equals is chosen.
    """
    variance, directions = np.linalg.eigh(K)
    inverse = 1 / (variance.clip(min=0) + ridges[:, None])  # (ridges, n)
    alphas = (directions * inverse[:, None, :]) @ (directions.T @ u)
    residuals = alphas / (inverse @ directions.T**2)[:, :, None]
    errors = np.square(residuals).sum(-1).mean(-1)
    best = int(errors.argmin())
    return RidgeFit(float(errors[best]), float(ridges[best]), alphas[best], residuals[best])


def residuals_like(residuals: np.ndarray, u: Array) -> Array:
    """Leave-one-out residuals as the same kind of array as the examples' u, and of its shape.

    They are NaN for a single example: nothing is left to fit."""
    if len(residuals) == 1:
        residuals = np.full_like(residuals, np.nan)
    return like(torch.from_numpy(residuals).reshape(tuple(u.shape)), u)
