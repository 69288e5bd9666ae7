"""How far a prediction is from the truth.

    relative squared error of one function      e(u_hat, u) = sum_k (u_hat_k - u_k)^2 / sum_k u_k^2

The paper's "RMSE" is the mean of e over functions, `relative_mse`: a relative mean *squared* error.
The authors' code pools both sums over everything first, `pooled_relative_mse`. The pointwise
quotient of the supplement is singular where u is zero, as it is at Dirichlet ends, and is not used.

Of classes, as one-hot vectors: how often the largest number of an answer is at the right one, and
whether answers are as often right as they are sure.

Functions are arrays of shape (n, *grid) or (n, channels, *grid), numpy, torch or xarray. Torch
results can be differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np

from .types import Array, DataArray, TransduceError


def squared_errors(u_hat: Array, u: Array) -> Any:
    """sum_k (u_hat_k - u_k)^2 of each function: shape (n,)."""
    if u_hat.shape != u.shape:
        raise TransduceError(
            f"u_hat has shape {tuple(u_hat.shape)} and u {tuple(u.shape)}; expected the same. "
            "Predict each u on its own grid."
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


def hits(u_hat: Array, u: Array) -> Any:
    """Whether the largest number of each answer stands at the class of u, which is one-hot: shape
    (n,)."""
    return _values(u_hat).argmax(1) == _values(u).argmax(1)


def bin_of(confidence: Any, bins: int) -> Any:
    """The number of the bin that each probability is in, of so many of equal width."""
    return np.minimum((bins * np.asarray(confidence, dtype=float)).astype(int), bins - 1)


def expected_calibration_error(confidence: Any, right: Any, bins: int = 15) -> float:
    """The mean distance between how sure answers are and how often they are right, over bins of
    sureness of equal width.

    >>> right = np.array([True, True, True, False])
    >>> expected_calibration_error(np.array([0.9, 0.9, 0.6, 0.6]), right)
    0.1
    """
    confidence, right = np.asarray(confidence, dtype=float), np.asarray(right, dtype=float)
    gaps = np.abs(np.bincount(bin_of(confidence, bins), confidence - right, bins))
    return float(round(gaps.sum() / len(right), 12))


def _values(f: Any) -> Any:
    """Bare values: subtracting DataArrays would first align their coordinates."""
    return f.values if isinstance(f, DataArray) else f
