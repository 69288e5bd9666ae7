"""Kernel ridge from a window to the value at its middle, for operators that commute with
translations of a periodic grid.

    u_hat(v)(x) = v(x) + sum_j K(w_j, w(v, x)) alpha_j,
    w(v, x) = v at x and around it,
    K(w, w') = exp(-gamma |w - w'|^2)

Every point of every example is an example of the one map from windows to values: n functions on 64
x 64 points are 4096 n of it. Some of these are drawn, and fewer are the centres w_j, whose kernels
span the answer:

    alpha = argmin_alpha  mean_i |y_i - sum_j K(w_j, w_i) alpha_j|^2
                          + lambda sum_jk alpha_j K(w_j, w_k) alpha_k,
    y = u - v

The spacing of a window's points, gamma and lambda are those of least error in examples that are
held out; alpha is then found from all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from ..types import ExampleSet, TransduceError, like
from .classical import expect_grid, gaussian_kernel, powers_of_ten, squared_distances
from .fitting import with_channels

LAMBDAS = powers_of_ten(-13, -1)
HELD_OUT = 5  # one example of so many


@dataclass(frozen=True)
class LocalRidge:
    """Kernel ridge on windows of `across` points along each axis of the grid.

    Functions are periodic. v and u have the same shape: (n, points), (n, channels, points) or
    (n, channels, x, y).

    Args:
        points: number of windows that are drawn.
        centres: number of these that span the answer.
        across: points of a window along each axis.
        spacings: candidates for the distance between a window's points, in grid points.
        gammas: candidates for gamma, in units of one over the median squared distance of windows.
        seed: of the draws.

    >>> O = LocalRidge().regress(ExampleSet(v, u))      # v, u of shape (100, 2, 64, 64)
    """

    points: int = 10_000
    centres: int = 1_000
    across: int = 5
    spacings: tuple[int, ...] = (2, 3, 4)
    gammas: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    seed: int = 0

    def regress(self, examples: ExampleSet) -> LocalRidgeOperator:
        shape, asked = (tuple(f.shape[1:]) for f in (examples.v, examples.u))
        if shape != asked:
            raise TransduceError(
                f"examples.v has functions of shape {shape} and examples.u of shape {asked}; this "
                "regression is of what is added to v, so "
                "it expects the same. Interpolate one of them to the other's grid, or leave this "
                "baseline out."
            )
        v, u = _fields(examples.v, "examples.v"), _fields(examples.u, "examples.u")
        # Of all points of all examples.
        places = np.random.default_rng(self.seed).permutation(v[:, 0].size)
        spacing, gamma, ridge = self._choice(v, u - v, places)
        window, fitted = Window(self.across, spacing), places[: self.points]
        w = window.of(v, fitted)
        alpha = _solved(w, w[: self.centres], _values(u - v, fitted), gamma)(ridge)
        return LocalRidgeOperator(window, gamma, w[: self.centres], alpha, shape)

    def _choice(
        self,
        v: Float[np.ndarray, "n c *grid"],
        y: Float[np.ndarray, "n c *grid"],
        places: Int[np.ndarray, " k"],
    ) -> tuple[int, float, float]:
        """The spacing, gamma and lambda of least error at places held out: in a fifth of the
        examples, or of one example's places."""
        held = (places // v[0, 0].size if len(v) > 1 else places) % HELD_OUT == 0
        fitted, held_out = places[~held][: self.points], places[held][: self.points // HELD_OUT]
        y_fitted, y_held = _values(y, fitted), _values(y, held_out)
        errors = {}
        for spacing in self.spacings:
            w, w_held = (Window(self.across, spacing).of(v, where) for where in (fitted, held_out))
            centres = w[: self.centres]
            unit = np.median(squared_distances(centres, centres))
            for gamma in np.array(self.gammas) / max(unit, 1e-300):
                alpha, K = (
                    _solved(w, centres, y_fitted, gamma),
                    gaussian_kernel(w_held, centres, gamma),
                )
                for ridge in LAMBDAS:
                    errors[spacing, float(gamma), float(ridge)] = np.square(
                        K @ alpha(ridge) - y_held
                    ).mean()
        return min(errors, key=errors.__getitem__)


@dataclass(frozen=True)
class Window:
    """A lattice of `across` points along each axis, `spacing` apart, around a point."""

    across: int
    spacing: int

    def of(
        self, v: Float[np.ndarray, "n c *grid"], places: Int[np.ndarray, " k"]
    ) -> Float[np.ndarray, "k d"]:
        """What v is around places, which number the points of all functions."""
        n, _, *grid = v.shape
        steps = self.spacing * (np.arange(self.across) - self.across // 2)
        number, *at = np.unravel_index(places, (n, *grid))
        around = (
            np.stack(at, -1)[:, None] + list(product(steps, repeat=len(grid)))
        ) % grid  # (k, offsets, axes)
        return v[number[:, None], :, *np.moveaxis(around, -1, 0)].reshape(len(places), -1)


@dataclass(frozen=True, eq=False)
class LocalRidgeOperator:
    """v -> v + sum_j K(w_j, w(v, x)) alpha_j, with what was chosen."""

    window: Window
    gamma: float
    centres: Float[np.ndarray, "m d"]
    alpha: Float[np.ndarray, "m c"]
    shape: tuple[int, ...]

    def __call__(self, v: Any) -> Any:
        expect_grid(v, self.shape)
        fields = _fields(v, "v")
        u_hat = fields + np.concatenate([self._added(field[None]) for field in fields])
        return like(torch.from_numpy(u_hat).reshape(-1, *self.shape), v)

    def _added(self, field: Float[np.ndarray, "1 c *grid"]) -> Float[np.ndarray, "1 c *grid"]:
        w = self.window.of(field, np.arange(field[0, 0].size))
        return (gaussian_kernel(w, self.centres, self.gamma) @ self.alpha).T.reshape(field.shape)


def _solved(
    w: Float[np.ndarray, "k d"],
    centres: Float[np.ndarray, "m d"],
    y: Float[np.ndarray, "k c"],
    gamma: float,
) -> Callable[[float], Float[np.ndarray, "m c"]]:
    """alpha as a function of lambda, by two eigendecompositions: of the kernel at the centres, and
    of what it spans at the points w."""
    variance, axes = np.linalg.eigh(gaussian_kernel(centres, centres, gamma))
    kept = variance > 1e-13 * variance[-1]
    root = axes[:, kept] / np.sqrt(variance[kept])
    features = gaussian_kernel(w, centres, gamma) @ root
    spread, turned = np.linalg.eigh(features.T @ features / len(w))
    directions, target = root @ turned, turned.T @ (features.T @ y) / len(w)
    return lambda ridge: directions @ (target / (spread.clip(min=0) + ridge)[:, None])


def _values(
    y: Float[np.ndarray, "n c *grid"], places: Int[np.ndarray, " k"]
) -> Float[np.ndarray, "k c"]:
    """What y is at places, which number the points of all functions."""
    return np.moveaxis(y, 1, -1).reshape(-1, y.shape[1])[places]


def _fields(f: Any, name: str) -> Float[np.ndarray, "n c *grid"]:
    return with_channels(f, name).detach().cpu().double().numpy()
