"""Spaces of functions by their values on a grid, and linear maps from one grid to another."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..types import TransduceError
from .base import Space
from .splines import Positions, resampling


class Resample(nn.Module):
    """Functions on one grid as functions on another: f -> (M_1 x M_2 x ...) f.

    Args:
        matrices: one for each of the last axes, from values on the old axis to those on the new.
    """

    def __init__(self, *matrices: Float[Tensor, "_ _"]):
        super().__init__()
        self.count = len(matrices)
        for k, matrix in enumerate(matrices):
            same = matrix.shape[0] == matrix.shape[1] and bool((matrix == _identity(matrix)).all())
            self.register_buffer(f"matrix_{k}", None if same else matrix, persistent=False)

    def forward(self, f: Float[Tensor, "*grid"]) -> Float[Tensor, "*other"]:
        """f on the new grid, in its own precision."""
        for k in range(self.count):
            matrix = getattr(self, f"matrix_{k}")
            if matrix is not None:
                axis = k - self.count
                f = (f.movedim(axis, -1) @ matrix.to(f).T).movedim(-1, axis)
        return f


def _identity(matrix: Tensor) -> Tensor:
    return torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)


class Gridded(Space):
    """A space of functions by their values on a grid of its own.

    Attributes:
        axes: positions along each axis, ascending in [0, 1].
        grid: number of points along each axis.
        points: number of points.
    """

    axes: tuple[Positions, ...]
    grid: tuple[int, ...]
    points: int

    def _set_grid(self, axes: tuple[Positions, ...], channels: int) -> None:
        """Set what follows from the axes and the number of channels."""
        if channels < 1:
            raise TransduceError(
                f"a space of {channels} channels; expected at least 1. Give channels=1."
            )
        self.axes, self.channels = axes, channels
        self.grid = tuple(map(len, axes))
        self.points = math.prod(self.grid)
        self.size = channels * self.points

    def unflattened(self, values: Tensor) -> Tensor:
        f = self.shaped(values)
        return f[:, 0] if self.channels == 1 else f

    def shaped(self, c: Tensor) -> Float[Tensor, "*b channels *grid"]:
        """Vectors as functions, with an axis of channels."""
        return c.unflatten(-1, (self.channels, *self.grid))

    def onto(self, other: Gridded) -> Resample:
        """The map from functions on this grid to functions on another of as many variables:
        interpolation, or a smooth fit along axes where the other grid is much coarser."""
        return Resample(*map(resampling, self.axes, other.axes))
