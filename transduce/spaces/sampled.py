"""Functions of one variable by their values at given positions, uniform or not.

    c = (f(x_1), ..., f(x_p)),      x_1 < ... < x_p in [0, 1]

Between positions functions are cubic splines. A space belongs to one grid; `between` gives the map
from one grid to another.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..types import Array, Json
from .base import Space, grid_or_positions
from .gridded import Gridded
from .splines import ascending, evenly_spaced, spline_matrix


class Sampled(Gridded):
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
        self.x = ascending(x)
        self.uniform = isinstance(x, int)
        self._set_grid((self.x,), channels)

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
            return evenly_spaced(self.x, points)
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
