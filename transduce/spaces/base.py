"""What every space of functions can do, and where functions are asked for: grids and positions."""

from __future__ import annotations

from numbers import Integral

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..types import Array, Json, TransduceError, check_coordinates, to_tensor


class Space(nn.Module):
    """A space of functions on [0, 1]^dims with `channels` components, held as vectors of length
    `size`.

    Attributes:
        dims: number of variables.
        channels: number of components.
        size: number of coefficients.
        measured: whether `measure` or a weight file has set the units of coefficients.
        traceable: whether `encode` exports to ONNX; if not, its matrix is exported.
        vectors: whether functions are vectors, without positions.
        free: whether any vector of length `size` holds the coefficients of a function.
        precision: of coefficients in a model; None for torch's default.
        adapts: whether `fitted_to` returns a space of any grid.
    """

    dims: int = 1
    channels: int = 1
    size: int
    measured: bool = False
    traceable: bool = True
    vectors: bool = False
    free: bool = False
    precision: torch.dtype | None = None
    adapts: bool = False

    def config(self) -> dict[str, Json]:
        """What `space_from_config` needs to build this space again."""
        raise NotImplementedError

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        """Coefficients (..., size) of functions on a uniform grid, or at the scattered points x."""
        raise NotImplementedError

    def decode(self, c: Tensor, at: object) -> Tensor:
        """Functions on a uniform grid of `at` points (a tuple in 2-D), or at the scattered points
        `at`."""
        raise NotImplementedError

    def unflattened(self, values: Tensor) -> Tensor:
        """Values (n, channels * points) in the shape that `encode` takes."""
        return values if self.channels == 1 else values.unflatten(1, (self.channels, -1))

    def measure(self, f: Tensor) -> bool:
        """Hook called once before training with functions of the family.
        Returns whether coefficients are in units of these from now on."""
        return False

    def fitted_to(self, f: Array, x: Tensor | None) -> Space:
        """The space for functions like f: itself, unless the space adapts to grids.

        Args:
            f: functions, shape (n, *grid) or (n, channels, *grid).
            x: positions of their sensors, if scattered.
        """
        return self

    def only_encoding(self) -> Space:
        """Itself, with gradients only for the parameters that `encode` uses."""
        return self.requires_grad_(False)

    def isometry(self, grid: tuple[int, ...]) -> float | None:
        """p if the sum of f(x)^2 over a uniform grid is p |c|^2 for all c = encode(f), and what
        `encode` drops of f is orthogonal to these; None if there is no such p."""
        return None

    def order(self) -> Tensor:
        """The coefficients' numbers, from the lowest frequency to the highest."""
        return torch.arange(self.size)

    def check_coordinates(self, f: object, name: str) -> None:
        """Raise if f, a DataArray, says itself that it is on another kind of grid."""
        check_coordinates(f, self.dims, name)

    def check(self, f: Tensor, x: Tensor | None, name: str) -> tuple[int, ...]:
        """The grid's shape, of n functions with one leading axis; raises a TransduceError if they
        do not fit."""
        if f.ndim and not len(f):
            raise TransduceError(
                f"{name} has shape {tuple(f.shape)}, no functions; expected one or more."
            )
        scattered = x is not None
        grid_dims = 1 if scattered else self.dims
        expected = (
            ("n",)
            + (() if self.channels == 1 else (str(self.channels),))
            + (("points",) if grid_dims == 1 else ("x", "y"))
        )
        if f.ndim != len(expected) or (self.channels > 1 and f.shape[1] != self.channels):
            raise TransduceError(
                f"{name} has shape {tuple(f.shape)}; this model expects ({', '.join(expected)}). "
                + (
                    "Add the missing axis."
                    if f.ndim < len(expected)
                    else "Reshape it, or use model='general', which takes any channels."
                    if self.dims == 1
                    else "Reshape it, or use a model made for it."
                )
            )
        shape = tuple(f.shape[-grid_dims:])
        if x is not None and (len(x) != shape[0] or x.numel() != len(x) * self.dims):
            raise TransduceError(
                f"{name} has {shape[0]} values a function, and x holds positions of shape "
                f"{tuple(x.shape)}; expected "
                f"({shape[0]}{'' if self.dims == 1 else f', {self.dims}'}). Give one position for "
                "each value."
            )
        return shape


def grid_or_positions(at: object, dims: int) -> tuple[int, ...] | Tensor:
    """`at` as the shape of a uniform grid, if it is a whole number or `dims` of them, else as
    positions in the unit cube."""
    shape = (at,) * dims if isinstance(at, Integral) else at
    if isinstance(shape, tuple) and shape and all(isinstance(points, Integral) for points in shape):
        if len(shape) != dims or min(shape) < 1:
            raise TransduceError(
                f"at={at}; expected {dims} number(s) of points, each at least 1, or positions in "
                "[0, 1]."
            )
        return tuple(int(points) for points in shape)
    x = to_tensor(at, "at").detach().to("cpu", torch.float64)
    return unit_positions(x, dims, "at")


def unit_positions(x: Tensor, dims: int, name: str) -> Float[Tensor, "p dims"]:
    """Positions as (points, dims), or an error if they are not in the unit cube."""
    x = x.detach().to("cpu", torch.float64)
    if x.ndim not in (1, 2) or not len(x) or x.numel() != len(x) * dims:
        raise TransduceError(
            f"{name} has shape {tuple(x.shape)}; expected positions "
            f"(points{', ' + str(dims) if dims > 1 else ''})."
        )
    if x.min() < 0 or x.max() > 1:
        raise TransduceError(
            f"{name} runs from {x.min():g} to {x.max():g}; expected within [0, 1]. Scale the "
            + ("domain to that." if dims > 1 else "domain to that, or use model='general'.")
        )
    return x.reshape(-1, dims)
