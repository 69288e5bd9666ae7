"""Partial least squares, scikit-learn's `PLSRegression`, from all values of v to all values of u.

    u_hat(v) = mean + (v - m) R_k Q_k',      k components

R_k holds the first k directions of v of greatest covariance with u, each without what the earlier
ones explain, and Q_k the loadings of u. Both are nested, so one fit gives every smaller number of
components. Values are centred and not scaled, as is usual for spectra. k is the number of least
cross-validated error; k = 0 is the mean."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float
from sklearn.cross_decomposition import PLSRegression
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from .scikit import Scikit

FOLDS = 10
MOST = 25  # components


class CrossValidatedPls:
    """An estimator of scikit-learn: `PLSRegression` with its number of components chosen.

    Args:
        most: the largest number of components to choose from.
        folds: of the cross-validation, which takes examples in their order; at most one for each.
    """

    def __init__(self, most: int = MOST, folds: int = FOLDS):
        self.most, self.folds = most, folds

    def __repr__(self) -> str:
        return f"CrossValidatedPls(most={self.most}, folds={self.folds})"

    def fit(self, v: Float[np.ndarray, "n d"], u: Float[np.ndarray, "n e"]) -> CrossValidatedPls:
        self.components = self._choice(v, u) if len(v) > 2 else 0
        self.v_mean, self.u_mean = v.mean(0), u.mean(0)
        self.maps = coefficients(v, u, self.components)
        return self

    def predict(self, v: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m e"]:
        directions, loadings = self.maps
        return (v - self.v_mean) @ directions @ loadings + self.u_mean

    def _choice(self, v: Float[np.ndarray, "n d"], u: Float[np.ndarray, "n e"]) -> int:
        """The number of components of least cross-validated error."""
        splits = list(KFold(min(len(v), self.folds)).split(v))
        fewest = min(len(train) for train, _ in splits)
        most = min(self.most, fewest - 1, v.shape[1])
        errors = np.zeros(most + 1)
        for train, test in splits:
            directions, loadings = coefficients(v[train], u[train], most)
            scores = (v[test] - v[train].mean(0)) @ directions  # (m, k)
            # The prediction with the first k components, for every k.
            added = np.cumsum(scores.T[:, :, None] * loadings[:, None, :], 0)
            residuals = u[test] - u[train].mean(0) - np.concatenate([0 * added[:1], added])
            errors += np.square(residuals).sum((1, 2))
        return int(np.argmin(errors))


def coefficients(
    v: Float[np.ndarray, "n d"], u: Float[np.ndarray, "n e"], components: int
) -> tuple[Float[np.ndarray, "d k"], Float[np.ndarray, "k e"]]:
    """Directions R of v and loadings Q' of u. Components beyond an exact fit are zero."""
    if components == 0:
        return np.zeros((v.shape[1], 0)), np.zeros((0, u.shape[1]))
    numbers, basis = spanned(v - v.mean(0))
    most = min(components, numbers.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "[yY] residual is constant")
        fitted = PLSRegression(most, scale=False).fit(numbers, u)
    directions, loadings = basis.T @ fitted.x_rotations_, fitted.y_loadings_.T
    missing = components - most
    return np.pad(directions, ((0, 0), (0, missing))), np.pad(loadings, ((0, missing), (0, 0)))


def spanned(
    v: Float[np.ndarray, "n d"],
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "k d"]]:
    """v = numbers basis with an orthonormal basis of the span of v, which PLS does not notice."""
    left, sizes, basis = np.linalg.svd(v, full_matrices=False)
    kept = max(int((sizes > 1e-13 * sizes[0]).sum()), 1)
    return left[:, :kept] * sizes[:kept], basis[:kept]


def partial_least_squares() -> Scikit:
    """Its number of components chosen by cross-validation."""
    return Scikit(lambda n: CrossValidatedPls())
