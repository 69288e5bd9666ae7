"""How far a prediction is from the truth.

    relative squared error of one function      e(u_hat, u) = sum_k (u_hat_k - u_k)^2 / sum_k u_k^2

The paper's "RMSE" is the mean of e over functions, `relative_mse`: a relative mean *squared* error. The authors' code pools both
sums over everything first, `pooled_relative_mse`. The pointwise quotient of the supplement is singular where u is zero,
as it is at Dirichlet ends, and is not used.

Functions are arrays of shape (n, *grid) or (n, channels, *grid), numpy, torch or xarray. Torch results can be differentiated.
"""

from __future__ import annotations

from typing import Any

import xarray as xr

from .types import Array, TransduceError


def squared_errors(u_hat: Array, u: Array) -> Any:
    """sum_k (u_hat_k - u_k)^2 of each function: shape (n,)."""
    if u_hat.shape != u.shape:
        raise TransduceError(
            f"u_hat has shape {tuple(u_hat.shape)} and u {tuple(u.shape)}; expected the same. Predict each u on its own grid."
        )
    return squared_norms(_values(u_hat) - _values(u))


def squared_norms(u: Array) -> Any:
    """sum_k u_k^2 of each function: shape (n,)."""
    return (_values(u) ** 2).reshape(len(u), -1).sum(1)


def relative_squared_errors(u_hat: Array, u: Array) -> Any:
    """e(u_hat, u) of each function: shape (n,)."""
    return squared_errors(u_hat, u) / squared_norms(u)


def relative_mse(u_hat: Array, u: Array) -> Any:
    """The mean of e over functions: what the paper calls RMSE.

    >>> relative_mse(np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 1.0]]))
    np.float64(0.5)
    """
    return relative_squared_errors(u_hat, u).mean()


def pooled_relative_mse(u_hat: Array, u: Array) -> Any:
    """The sum of all squared errors over the sum of all squares: large functions count for more."""
    return squared_errors(u_hat, u).sum() / squared_norms(u).sum()


def relative_l2(u_hat: Array, u: Array) -> Any:
    """The mean of sqrt(e) over functions: what the neural operator literature reports."""
    return (relative_squared_errors(u_hat, u) ** 0.5).mean()


def _values(f: Any) -> Any:
    """Bare values: subtracting DataArrays would first align their coordinates."""
    return f.values if isinstance(f, xr.DataArray) else f
