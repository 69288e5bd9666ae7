"""One ridge regression from a window of v to the value of u at its middle, shared by all points.

    u_hat(v)(x) = sum_k W_k f_k(v, x),
    f(v, x) = v at x - h, ..., x + h (the end values repeated beyond the grid),
              optionally the products of any two of v at x - 2, ..., x + 2,
              and 1, x, x^2
    W = argmin_W  sum_i |u_i - F_i W|^2 + lambda s |W|^2,
    s = the mean diagonal of sum_i F_i' F_i

F_i holds f(v_i, x) in the rows of x. Without example i, W follows from sums without its part, so
h, products or not, and lambda have the least leave-one-out error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from jaxtyping import Float
from numpy.lib.stride_tricks import sliding_window_view

from ..types import Array, ExampleSet, TransduceError, like, to_tensor
from .classical import expect_grid
from .leave_one_out import residuals_like

HALF_WIDTHS = (2, 7, 20)
RIDGES = (1e-9, 1e-6, 1e-4, 1e-2)
NEAR = 2  # points on either side that products are of


@dataclass(frozen=True)
class WindowRidge:
    """Ridge regression on a window of v that all points share.

    Functions have one variable: (n, points) or (n, channels, points). v is interpolated to u's
    number of points where these differ.

    >>> O = WindowRidge().regress(ExampleSet(v, u))      # v, u of shape (50, 101)
    """

    def regress(self, examples: ExampleSet) -> WindowOperator:
        v, u = channels_of(examples.v, "examples.v"), channels_of(examples.u, "examples.u")
        v = interpolated(v, u.shape[-1])
        fits = (
            fit
            for h, products in product(HALF_WIDTHS, (False, True))
            for fit in _fits(Features(h, products, scale_of(v)), v, np.swapaxes(u, 1, 2))
        )
        best = min(fits, key=lambda fit: fit.error)
        shapes = tuple(examples.v.shape[1:]), tuple(examples.u.shape[1:])
        residuals = np.ascontiguousarray(np.swapaxes(best.residuals, 1, 2))
        left_out = residuals_like(residuals, examples.u)
        return WindowOperator(best.features, best.weights, best.ridge, left_out, *shapes)


@dataclass(frozen=True)
class Features:
    """What the value of u at a point is regressed from.

    Attributes:
        half_width: points of v on either side.
        products: whether products of the nearest values are among them.
        scale: v is divided by it.
    """

    half_width: int
    products: bool
    scale: float

    def of(self, v: Float[np.ndarray, "n c p"]) -> Float[np.ndarray, "n p d"]:
        near = windows(v / self.scale, self.half_width)  # (n, p, c, 2 h + 1)
        parts = [near.reshape(*near.shape[:2], -1)]
        if self.products:
            few = min(self.half_width, NEAR)
            middle = near[..., self.half_width - few : self.half_width + few + 1]
            middle = middle.reshape(*near.shape[:2], -1)
            i, j = np.triu_indices(middle.shape[-1])
            parts.append(middle[..., i] * middle[..., j])
        x = np.linspace(-1, 1, v.shape[-1])
        trend = np.stack([np.ones_like(x), x, x * x], -1)
        parts.append(np.broadcast_to(trend, (len(v), *trend.shape)))
        return np.concatenate(parts, -1)


@dataclass(frozen=True, eq=False)
class WindowFit:
    """Weights, and the leave-one-out residuals and their sum of squares."""

    features: Features
    ridge: float
    weights: Float[np.ndarray, "d c"]
    residuals: Float[np.ndarray, "n p c"]
    error: float


def _fits(
    features: Features, v: Float[np.ndarray, "n c p"], u: Float[np.ndarray, "n p e"]
) -> Iterator[WindowFit]:
    """The fit for each candidate of lambda."""
    F = features.of(v)
    squares, targets = F.mT @ F, F.mT @ u  # (n, d, d), (n, d, e)
    whole, target = squares.sum(0), targets.sum(0)
    size = len(whole)
    for ridge in RIDGES:
        penalty = ridge * np.trace(whole) / size * np.eye(size)
        without = np.linalg.solve(whole - squares + penalty, target - targets)
        residuals = u - F @ without
        weights = np.linalg.solve(whole + penalty, target)
        yield WindowFit(features, ridge, weights, residuals, float(np.square(residuals).sum()))


@dataclass(frozen=True, eq=False)
class WindowOperator:
    """v -> sum_k W_k f_k(v, x) at each point x, with what was chosen and the leave-one-out
    residuals at the examples."""

    features: Features
    weights: Float[np.ndarray, "d c"]
    ridge: float
    residuals: Array
    v_shape: tuple[int, ...]
    u_shape: tuple[int, ...]

    def __call__(self, v: Array) -> Array:
        expect_grid(v, self.v_shape)
        values = interpolated(channels_of(v, "v"), self.u_shape[-1])
        u_hat = np.ascontiguousarray(np.swapaxes(self.features.of(values) @ self.weights, 1, 2))
        return like(torch.from_numpy(u_hat).reshape(-1, *self.u_shape), v)


def scale_of(v: np.ndarray) -> float:
    """The standard deviation of all values; their size where they are all the same."""
    size = float(np.abs(v).max())
    deviation = float(v.std())
    return deviation if deviation > 1e-14 * size else size or 1.0


def windows(v: Float[np.ndarray, "*many p"], half_width: int) -> np.ndarray:
    """Values around each point, shape (n, points, ..., 2 half_width + 1); the values at the ends
    are repeated beyond them."""
    ends = [(0, 0)] * (v.ndim - 1) + [(half_width, half_width)]
    views = sliding_window_view(np.pad(v, ends, mode="edge"), 2 * half_width + 1, axis=-1)
    return np.moveaxis(views, -2, 1)


def channels_of(f: Array, name: str) -> Float[np.ndarray, "n c p"]:
    """Functions of one variable as (n, channels, points), in double precision."""
    values = to_tensor(f, name).detach().cpu().double().numpy()
    if values.ndim not in (2, 3):
        raise TransduceError(
            f"{name} has shape {tuple(values.shape)}; this regression expects functions of one "
            "variable, (n, points) or (n, channels, points). Reshape it, or leave this baseline "
            "out."
        )
    return values[:, None] if values.ndim == 2 else values


def interpolated(v: Float[np.ndarray, "n c p"], points: int) -> Float[np.ndarray, "n c q"]:
    """v on another number of points of the same interval, by linear interpolation."""
    if v.shape[-1] == points:
        return v
    x, old = np.linspace(0, 1, points), np.linspace(0, 1, v.shape[-1])
    rows = [np.interp(x, old, row) for row in v.reshape(-1, v.shape[-1])]
    return np.reshape(rows, (*v.shape[:2], points))
