"""Piecewise direct standardisation of spectra (Wang, Veltkamp and Kowalski 1991).

    u_hat_j(v) = mean of u_j + (v_{j-h}, ..., v_{j+h} - their mean) b_j

For each channel j of u, b_j is a principal component regression on the channels of v around it: the
least squares in the span of the k directions of greatest variance. h and k are shared by all
channels and have the least cross-validated error; k = 0 is the mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from ..types import Array, ExampleSet, TransduceError, like
from .classical import expect_grid, rows_of
from .window import windows

HALF_WIDTHS = (0, 1, 2, 5, 10)
MOST = 8  # components
FOLDS = 5


@dataclass(frozen=True)
class PiecewiseDirectStandardisation:
    """Spectra of one instrument from those of another, channel by channel.

    v and u are spectra of one number of channels, (n, points), on the same axis.

    Args:
        half_widths: candidates for h, in channels.
        most: the largest number of components to choose from.
        folds: of the cross-validation, which takes examples in their order; at most one for each.

    >>> O = PiecewiseDirectStandardisation().regress(ExampleSet(v, u))      # (30, 700)
    """

    half_widths: tuple[int, ...] = HALF_WIDTHS
    most: int = MOST
    folds: int = FOLDS

    def regress(self, examples: ExampleSet) -> StandardisationOperator:
        shape, asked = (tuple(f.shape[1:]) for f in (examples.v, examples.u))
        if shape != asked or len(shape) != 1:
            raise TransduceError(
                f"examples.v has functions of shape {shape} and examples.u of shape {asked}; "
                "expected the same number of points and one channel. Interpolate one of them to "
                "the other's grid, or leave this baseline out."
            )
        v, u = rows_of(examples.v, "examples.v"), rows_of(examples.u, "examples.u")
        h, components = self._choice(v, u) if len(v) > 2 else (0, 0)
        weights = component_weights(windows(v, h), u, components)[components]
        return StandardisationOperator(h, components, weights, v.mean(0), u.mean(0))

    def _choice(self, v: Float[np.ndarray, "n p"], u: Float[np.ndarray, "n p"]) -> tuple[int, int]:
        """h and k of least cross-validated error; the smallest of equals."""
        parts = np.array_split(np.arange(len(v)), min(len(v), self.folds))
        errors = {}
        for h in self.half_widths:
            total = np.zeros(self.most + 1)
            for test in parts:
                train = np.setdiff1d(np.arange(len(v)), test)
                near = windows(v[train], h)
                weights = component_weights(near, u[train], self.most)
                centred = windows(v[test], h) - near.mean(0)
                u_hat = u[train].mean(0) + np.einsum("mpw,kpw->kmp", centred, weights)
                total += np.square(u[test] - u_hat).sum((1, 2))
            errors[h] = total
        return min(
            ((h, k) for k in range(self.most + 1) for h in self.half_widths),
            key=lambda choice: errors[choice[0]][choice[1]],
        )


def component_weights(
    near: Float[np.ndarray, "n p w"], u: Float[np.ndarray, "n p"], most: int
) -> Float[np.ndarray, "k p w"]:
    """Regressions of each channel of u on 0, ..., `most` principal components of its window.

    Directions in which the window does not vary have no weight."""
    x, y = np.moveaxis(near - near.mean(0), 1, 0), (u - u.mean(0)).T  # (p, n, w), (p, n)
    left, sizes, directions = np.linalg.svd(x, full_matrices=False)
    varying = sizes > 1e-10 * sizes[:, :1].clip(min=1e-300)
    inverse = np.divide(1.0, sizes, where=varying, out=np.zeros_like(sizes))
    slopes = inverse * np.einsum("pnk,pn->pk", left, y)
    parts = np.moveaxis(slopes[:, :, None] * directions, 1, 0)[:most]  # (k, p, w)
    weights = np.zeros((most + 1, *parts.shape[1:]))
    weights[1 : len(parts) + 1] = np.cumsum(parts, 0)
    weights[len(parts) + 1 :] = weights[len(parts)]
    return weights


@dataclass(frozen=True, eq=False)
class StandardisationOperator:
    """v -> each channel from those around it, with the half width and components chosen."""

    half_width: int
    components: int
    weights: Float[np.ndarray, "p w"]
    v_mean: Float[np.ndarray, " p"]
    u_mean: Float[np.ndarray, " p"]

    def __call__(self, v: Array) -> Array:
        expect_grid(v, self.v_mean.shape)
        near = windows(rows_of(v, "v") - self.v_mean, self.half_width)
        u_hat = self.u_mean + np.einsum("mpw,pw->mp", near, self.weights)
        return like(torch.from_numpy(u_hat), v)
