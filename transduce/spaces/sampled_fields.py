"""Functions of two variables by their values on a rectangular grid, uniform or not.

    c = (f_1(x_1, y_1), f_1(x_1, y_2), ..., f_k(x_p, y_q))

Between positions functions are products of cubic splines in x and in y.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..types import Array, Json, TransduceError
from .base import grid_or_positions
from .gridded import Gridded, Resample
from .splines import ascending, evenly_spaced, spline_matrix


class SampledFields(Gridded):
    """Fields by their values at the points of a grid of [0, 1]^2.

    Args:
        x: positions along the first axis in ascending order, or a number of points of a uniform
            grid that includes both ends.
        y: the same along the second axis.
        channels: number of components; the values of one follow those of the other.
    """

    dims = 2
    traceable = False
    precision = torch.float64
    adapts = True

    def __init__(self, x: int | Sequence[float], y: int | Sequence[float], channels: int = 1):
        super().__init__()
        self.x, self.y = ascending(x), ascending(y)
        self.uniform = isinstance(x, int) and isinstance(y, int)
        self._set_grid((self.x, self.y), channels)

    def config(self) -> dict[str, Json]:
        axes: dict[str, Json] = {"x": self.grid[0], "y": self.grid[1]}
        if not self.uniform:
            axes = {"x": list(self.x), "y": list(self.y)}
        return {"space": "SampledFields", **axes, "channels": self.channels}

    def fitted_to(self, f: Array, x: Tensor | None) -> SampledFields:
        """The space of the uniform grid and the channels of f."""
        shape = tuple(f.shape[1:])
        if x is not None or len(shape) not in (2, 3):
            return self
        channels = 1 if len(shape) == 2 else shape[0]
        if (channels, shape[-2:]) == (self.channels, self.grid):
            return self
        return SampledFields(shape[-2], shape[-1], channels)

    def isometry(self, grid: tuple[int, ...]) -> float | None:
        return 1.0 if grid == self.grid else None

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        """Values at the points of the space. x: not supported; fields are on grids."""
        if x is not None:
            raise TransduceError(
                "fields at scattered points; expected values on a rectangular grid. Interpolate "
                "them to one."
            )
        if tuple(f.shape[-2:]) != self.grid:
            f = Resample(
                *(
                    spline_matrix(evenly_spaced(axis, n), axis)
                    for axis, n in zip(self.axes, f.shape[-2:], strict=True)
                )
            )(f)
        return f.flatten(-2) if self.channels == 1 else f.flatten(-3)

    def decode(self, c: Tensor, at: object) -> Tensor:
        f = self.shaped(c)
        f = f[..., 0, :, :] if self.channels == 1 else f
        where = grid_or_positions(at, 2)
        if not isinstance(where, tuple):
            rows, columns = (
                spline_matrix(axis, tuple(where[:, k].tolist())).to(f)
                for k, axis in enumerate(self.axes)
            )
            return torch.einsum("...xy,px,py->...p", f, rows, columns)
        if where == self.grid:
            return f
        return Resample(
            *(
                spline_matrix(axis, evenly_spaced(axis, n))
                for axis, n in zip(self.axes, where, strict=True)
            )
        )(f)
