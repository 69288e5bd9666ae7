"""scikit-learn's regressions, on the values at the grid points: each function is a row of numbers,
each point of u an output.

    k-nearest neighbours      u_hat(v) = sum_i w_i u_i over the k nearest v_i
    decision tree             u_hat(v) = the mean of the u_i in the leaf of v
    linear ridge              u_hat(v) = A v + b,  least |u - A v - b|^2 + lambda |A|^2
    kernel ridge
    u_hat(v) = sum_i K(v_i, v) alpha_i,  width and lambda as the paper sets them
    Gaussian process          u_hat(v) = E[u | D_O],  covariances of greatest marginal likelihood

All but the paper's kernel ridge choose their parameters from the examples they are given, as their
users would."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    DotProduct,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from ..types import ExampleSet, like
from .classical import expect_grid, in_span, powers_of_ten, rows_of

FOLDS = 5
NEIGHBOURS = (1, 2, 3, 5, 8, 15)
DEPTHS = (2, 4, 6, 8, None)
LEAVES = (1, 2, 4, 8)
LAMBDAS = powers_of_ten(-8, 2)


class Scikit:
    """Any estimator of scikit-learn that takes several outputs, fitted to the values at the grid
    points, in double precision.

    estimator: makes it, unfitted, for n examples.

    >>> # v, u of shape (50, 101)
    >>> O = Scikit(lambda n: Lasso(alpha=1e-3)).regress(ExampleSet(v, u))
    """

    def __init__(self, estimator: Callable[[int], Any]):
        self.estimator = estimator

    def __repr__(self) -> str:
        return f"Scikit({' '.join(repr(self.estimator(50)).split())})"

    def regress(self, examples: ExampleSet) -> ScikitOperator:
        v, u = rows_of(examples.v, "examples.v"), rows_of(examples.u, "examples.u")
        numbers, directions = in_span(u)
        scale = (
            numbers.shape[1] / u.shape[1]
        ) ** 0.5  # the mean square of the outputs is that of u, as a likelihood asks
        with warnings.catch_warnings():
            # A covariance at the end of its range is an answer.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = self.estimator(len(v)).fit(v, scale * numbers)
        return ScikitOperator(
            fitted, directions / scale, tuple(examples.v.shape[1:]), tuple(examples.u.shape[1:])
        )


@dataclass(frozen=True, eq=False)
class ScikitOperator:
    """v -> the fitted estimator's answer, in terms of the directions of u."""

    fitted: Any
    directions: Float[np.ndarray, "k d_u"]
    v_shape: tuple[int, ...]
    u_shape: tuple[int, ...]

    def __call__(self, v: Any) -> Any:
        expect_grid(v, self.v_shape)
        numbers = self.fitted.predict(rows_of(v, "v")).reshape(len(v), -1)
        return like(torch.from_numpy(numbers @ self.directions).reshape(-1, *self.u_shape), v)


def nearest_neighbours() -> Scikit:
    """The number of neighbours and their weights chosen by cross-validation."""

    def estimator(n: int) -> Any:
        # As many as the smallest part trained on.
        few = [k for k in NEIGHBOURS if k <= n - -(-n // FOLDS)]
        return cross_validated(
            KNeighborsRegressor(1), {"n_neighbors": few, "weights": ["uniform", "distance"]}, n
        )

    return Scikit(estimator)


def nearest_example() -> Scikit:
    """The u of the example whose v is nearest: nothing is chosen."""
    return Scikit(lambda n: KNeighborsRegressor(1))


def decision_tree() -> Scikit:
    """The depth and the least size of a leaf chosen by cross-validation."""
    choices = {"max_depth": DEPTHS, "min_samples_leaf": LEAVES}
    return Scikit(lambda n: cross_validated(DecisionTreeRegressor(random_state=0), choices, n))


def linear_ridge() -> Scikit:
    """lambda chosen by leaving out each example; one example leaves nothing to choose by."""
    return Scikit(lambda n: RidgeCV(LAMBDAS) if n > 1 else Ridge())


def paper_kernel_ridge() -> Scikit:
    """The paper's: a Gaussian kernel of scikit-learn's default width, gamma = 1 / points, and
    lambda = 1e-3."""
    return Scikit(lambda n: SklearnKernelRidge(alpha=1e-3, kernel="rbf"))


def gaussian_process() -> Scikit:
    """A rational quadratic covariance times a linear one, with noise, one for all outputs.

    The product grows with v as operators that are nearly linear do: it was the best of nine
    covariances on unseen operators."""
    smooth = RationalQuadratic(10.0, 1.0, (1e-1, 1e4), (1e-1, 1e3))
    covariance = ConstantKernel(1.0, (1e-3, 1e6)) * smooth * DotProduct(
        1e-1, (1e-4, 1e2)
    ) + WhiteKernel(1e-4, (1e-10, 1e1))
    return Scikit(
        lambda n: GaussianProcessRegressor(covariance, n_restarts_optimizer=2, random_state=0)
    )


def cross_validated(estimator: Any, choices: dict[str, Any], n: int) -> Any:
    """The estimator with the choice of least cross-validated error; as it is for one example, which
    nothing can be held out of."""
    return (
        GridSearchCV(estimator, choices, scoring="neg_mean_squared_error", cv=min(n, FOLDS))
        if n > 1
        else estimator
    )
