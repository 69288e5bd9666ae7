"""Cubic splines as matrices, from values at some positions to values at others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..types import TransduceError

CLOSE = 1e-9  # positions that differ by less are the same
KEPT = 2**18  # entries of a matrix that is kept for the next time

Positions = tuple[float, ...]


def kept_if_small(
    make: Callable[[Positions, Positions], Tensor],
) -> Callable[[Positions, Positions], Tensor]:
    """The same function, whose last 64 matrices are kept, unless they are large."""
    kept = lru_cache(maxsize=64)(make)

    @wraps(make)
    def matrix(x: Positions, at: Positions) -> Tensor:
        return (kept if len(x) * len(at) <= KEPT else make)(x, at)

    return matrix


@kept_if_small
@torch.inference_mode(False)  # kept matrices may be differentiated through later
def spline_matrix(x: Positions, at: Positions) -> Float[Tensor, "q p"]:
    """The matrix from values at x to the values of the interpolating spline at other positions.
    Positions outside x get the value at its nearer end."""
    if x == at:
        return torch.eye(len(x), dtype=torch.float64)
    places = np.clip(at, x[0], x[-1])
    if len(x) == 1:
        return torch.ones(len(at), 1, dtype=torch.float64)
    from scipy.interpolate import make_interp_spline

    spline = make_interp_spline(np.array(x), np.eye(len(x)), k=min(3, len(x) - 1))
    return torch.from_numpy(np.ascontiguousarray(spline(places)))


@kept_if_small
@torch.inference_mode(False)  # kept matrices may be differentiated through later
def resampling(x: Positions, at: Positions) -> Float[Tensor, "q p"]:
    """The matrix from values at x to values at other positions: interpolation, or, where x has many
    more positions, the spline through the new positions that fits the values best."""
    if len(x) < 1.5 * len(at):
        return spline_matrix(x, at)
    B = spline_matrix(at, x)
    gram = B.T @ B
    gram.diagonal().add_(1e-9 * gram.diagonal().mean())
    return torch.linalg.solve(gram, B.T)


def ascending(x: int | Sequence[float]) -> Positions:
    """Positions in [0, 1], checked; a number stands for so many points of a uniform grid."""
    places = np.linspace(0, 1, x) if isinstance(x, int) else np.asarray(x, dtype=np.float64)
    rising = len(places) > 0 and bool((np.diff(places) > 0).all())
    if not rising or places[0] < -CLOSE or places[-1] > 1 + CLOSE:
        raise TransduceError(
            f"a space of functions at {len(places)} positions; expected positions that rise from 0 "
            "to 1. Sort and scale them."
        )
    return tuple(places.tolist())


def evenly_spaced(axis: Positions, points: int) -> Positions:
    """So many positions at equal steps from the first of an axis to its last."""
    return axis if points == len(axis) else tuple(np.linspace(axis[0], axis[-1], points).tolist())
