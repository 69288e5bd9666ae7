"""Functions of one variable by their values at given positions, uniform or not.

    c = (f(x_1), ..., f(x_p)),      x_1 < ... < x_p in [0, 1]

Between positions functions are cubic splines. A space belongs to one grid; `between` gives the map
from one grid to another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..types import Array, Json, TransduceError
from .base import Space, grid_or_positions

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
def spline_matrix(x: tuple[float, ...], at: tuple[float, ...]) -> Float[Tensor, "q p"]:
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
def resampling(x: tuple[float, ...], at: tuple[float, ...]) -> Float[Tensor, "q p"]:
    """The matrix from values at x to values at other positions: interpolation, or, where x has many
    more positions, the spline through the new positions that fits the values best."""
    if len(x) < 1.5 * len(at):
        return spline_matrix(x, at)
    B = spline_matrix(at, x)
    gram = B.T @ B
    gram.diagonal().add_(1e-9 * gram.diagonal().mean())
    return torch.linalg.solve(gram, B.T)


class Sampled(Space):
    """Functions by their values at positions in [0, 1].

    Args:
        x: positions in ascending order, or a number of points of a uniform grid.
        channels: number of components; the values of one follow those of the other.
    """

    traceable = False
    precision = torch.float64
    adapts = True

    def __init__(self, x: int | Sequence[float], channels: int = 1):
        super().__init__()
        places = np.linspace(0, 1, x) if isinstance(x, int) else np.asarray(x, dtype=np.float64)
        rising = len(places) > 0 and bool((np.diff(places) > 0).all())
        if not rising or places[0] < -CLOSE or places[-1] > 1 + CLOSE or channels < 1:
            raise TransduceError(
                f"a space of functions at {len(places)} positions and {channels} channels; "
                "expected positions that rise from 0 to 1, and at least one channel. Sort and "
                "scale them."
            )
        self.x, self.channels = tuple(places.tolist()), channels
        self.uniform = isinstance(x, int)
        self.points = len(self.x)
        self.size = channels * self.points

    def config(self) -> dict[str, Json]:
        x: Json = self.points if self.uniform else list(self.x)
        return {"space": "Sampled", "x": x, "channels": self.channels}

    def fitted_to(self, f: Array, x: Tensor | None) -> Sampled:
        """The space of the grid and channels of f."""
        shape = tuple(f.shape[1:])
        channels = 1 if len(shape) < 2 else shape[0]
        if x is not None:
            return Sampled(x.detach().double().flatten().tolist(), channels)
        if len(shape) > 2 or (channels, shape[-1]) == (self.channels, self.points):
            return self
        return Sampled(shape[-1], channels)

    def isometry(self, grid: tuple[int, ...]) -> float | None:
        return 1.0 if grid == (self.points,) else None

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        """Values at the positions of the space."""
        if x is None and f.shape[-1] == self.points:
            values = f
        else:
            values = f @ spline_matrix(self._places(x, f.shape[-1]), self.x).to(f).T
        return values if self.channels == 1 else values.flatten(-2)

    def decode(self, c: Tensor, at: object) -> Tensor:
        f = c if self.channels == 1 else c.unflatten(-1, (self.channels, self.points))
        where = grid_or_positions(at, 1)
        if isinstance(where, tuple) and where == (self.points,):
            return f
        if isinstance(where, tuple):
            places = self._places(None, where[0])
        else:
            places = tuple(where[:, 0].tolist())
        return f @ spline_matrix(self.x, places).to(f).T

    def _places(self, x: Tensor | None, points: int) -> tuple[float, ...]:
        """Positions as numbers; by default a uniform grid from the first of ours to the last."""
        if x is None:
            return tuple(np.linspace(self.x[0], self.x[-1], points).tolist())
        return tuple(x.detach().double().flatten().tolist())


class Values(Space):
    """Vectors of numbers without positions, in double precision. Fields are flattened.

    Args:
        size: how many numbers.
    """

    vectors = True
    traceable = False
    precision = torch.float64

    def __init__(self, size: int):
        super().__init__()
        self.size = size

    def config(self) -> dict[str, Json]:
        return {"space": "Values", "size": self.size}

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        return f

    def decode(self, c: Tensor, at: object) -> Tensor:
        return c


class WithParameters(Space):
    """Functions that come with parameters, which follow their coefficients.

    Args:
        functions: the space of the functions.
        count: how many parameters.
    """

    vectors = True
    traceable = False
    precision = torch.float64

    def __init__(self, functions: Space, count: int):
        super().__init__()
        self.functions, self.count = functions, count
        self.size = functions.size + count

    def config(self) -> dict[str, Json]:
        return {
            "space": "WithParameters",
            "functions": self.functions.config(),
            "count": self.count,
        }

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        return f

    def decode(self, c: Tensor, at: object) -> Tensor:
        return c
