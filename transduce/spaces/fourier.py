"""Periodic functions in one or two variables, by their Fourier coefficients."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from ..types import Json, TransduceError
from .modes import Modes


class FourierModes(Modes):
    """The first complex modes of the discrete Fourier transform: all real parts, then all imaginary
    parts.

    Args:
        modes: in 1-D a number: k = 0..modes-1, so 2 modes reals. In 2-D a pair (a, b): the two
            corner blocks k_1 in 0..a-1 and -a..-1, k_2 in 0..b-1, so 4 a b reals for each channel.
        channels: number of components of a function.
        closed: whether grids include both ends instead of leaving out the last point.
        unit: size of a coefficient; coefficients are divided by it.

    >>> FourierModes((10, 10), channels=2).encode(torch.zeros(50, 2, 64, 64)).shape
    torch.Size([50, 800])
    """

    constant = 1

    def __init__(
        self,
        modes: int | tuple[int, int] | list[int],
        channels: int = 1,
        closed: bool = False,
        unit: float = 1.0,
    ):
        super().__init__()
        self.modes = (modes,) if isinstance(modes, int) else tuple(modes)
        if len(self.modes) not in (1, 2) or min(self.modes) < 1:
            raise TransduceError(f"modes={modes}; expected one number or two, each at least 1.")
        if not unit > 0:
            raise TransduceError(
                f"unit={unit}; expected a positive number, about the size of a coefficient."
            )
        self.dims, self.channels, self.closed, self.unit = len(self.modes), channels, closed, unit
        first, last = (torch.arange(self.modes[i], dtype=torch.float64) for i in (0, -1))
        self._axes = [last] if self.dims == 1 else [torch.cat([first, first - self.modes[0]]), last]
        self._k = torch.cartesian_prod(*self._axes).reshape(-1, self.dims)
        # Whether the conjugate of a mode is among the modes too.
        mirrored = (self._k[:, None] == -self._k[None, :]).all(-1).any(1)
        self._amplitude = torch.where(mirrored, 1.0, math.sqrt(2)).to(torch.float64)
        self.size = 2 * len(self._k) * channels

    def config(self) -> dict[str, Json]:
        return {
            "space": "FourierModes",
            "modes": list(self.modes),
            "channels": self.channels,
            "closed": self.closed,
            "unit": self.unit,
        }

    def frequencies(self) -> Float[Tensor, "k dims"]:
        return self._k.abs().repeat(2, 1)

    def basis(self, x: Float[Tensor, "p dims"]) -> Float[Tensor, "k p"]:
        phase = 2 * math.pi * self._k @ x.T
        return torch.cat([torch.cos(phase), -torch.sin(phase)]) * self._amplitude.repeat(2)[:, None]

    def carried(self, points: int) -> int:
        return (points - self.closed) // 2

    def points_for(self, modes: int) -> int:
        return 2 * modes + self.closed

    def isometry(self, grid: tuple[int, ...]) -> float | None:
        resolved = all(points > 2 * modes for points, modes in zip(grid, self.modes, strict=True))
        return self.unit**2 * math.prod(grid) if resolved and not self.closed else None

    def _encode_grid(self, f: Tensor) -> Tensor:
        """The discrete Fourier transform, one axis at a time."""
        if self.closed:  # both ends are one point
            for axis in range(-self.dims, 0):
                first, inside, last = f.tensor_split([1, f.shape[axis] - 1], axis)
                f = torch.cat([(first + last) / 2, inside], axis)
        shape = tuple(f.shape[f.ndim - self.dims :])
        waves = self._waves(f, -1, shape[-1], shape[-1])
        c = torch.view_as_complex((f @ waves.flatten(1)).unflatten(-1, (-1, 2)))
        if self.dims == 2:
            c = torch.view_as_complex(self._waves(f, 0, shape[0], shape[0])).T @ c
        weights = self._kept(("weights", shape), f, lambda: self._weights(shape))
        return torch.view_as_real(c.flatten(-self.dims)).movedim(-1, -2).mul(weights).flatten(-2)

    def _decode_grid(self, c: Tensor, shape: tuple[int, ...]) -> Tensor:
        period = [max(points - self.closed, 1) for points in shape]
        parts = c.unflatten(-1, (2, -1)) * self._kept("amplitude", c, lambda: self._amplitude)
        f = torch.view_as_complex(parts.movedim(-2, -1).contiguous()).unflatten(
            -1, [len(k) for k in self._axes]
        )
        if self.dims == 2:
            f = torch.view_as_complex(self._waves(c, 0, shape[0], period[0])).conj() @ f
        return (
            torch.view_as_real(f).flatten(-2)
            @ self._waves(c, -1, shape[-1], period[-1]).flatten(1).T
        )

    def _waves(self, f: Tensor, axis: int, points: int, period: int) -> Float[Tensor, "p k 2"]:
        """Real and imaginary parts of exp(-2 pi i k x), x = 0, 1 / period, ...: what both
        transforms are made of."""

        def waves() -> Tensor:
            x = torch.arange(points, dtype=torch.float64)[:, None] / period
            phase = 2 * math.pi * x * self._axes[axis]
            return torch.stack([torch.cos(phase), -torch.sin(phase)], -1)

        return self._kept(("waves", axis, points, period), f, waves)

    def _weights(self, shape: tuple[int, ...]) -> Float[Tensor, " k"]:
        """What a coefficient is of the mean of f exp(-2 pi i k x), over the number of points.

        Modes k that are the same up to sign on this grid share it, in proportion to their
        amplitudes; those that the grid does not carry are taken to be zero."""
        sides = torch.tensor(shape)
        carried = (self._k.abs() <= sides // 2).all(1)
        k, minus = self._k.remainder(sides), (-self._k).remainder(sides)
        alike = (k[:, None] == k).all(-1) | (k[:, None] == minus).all(-1)
        shared = alike.double() @ (carried * self._amplitude**2)
        terms = torch.where((k == minus).all(1), 1.0, 2.0)  # a mode and its conjugate
        return terms * self._amplitude * carried / shared.clamp(min=1) / math.prod(shape)
