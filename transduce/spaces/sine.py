"""Functions on [0, 1] that vanish at both ends, by their sine coefficients."""

from __future__ import annotations

import math
import warnings

import torch
from jaxtyping import Float
from torch import Tensor

from ..types import Json
from .modes import Modes

AT_ENDS = 0.1  # share of the root mean square that rounding and noise may leave at the ends


class SineModes(Modes):
    """phi_k(x) = sqrt(2) sin(k pi x), k = 1..modes: functions that vanish at both ends of [0, 1].

    >>> SineModes(64).encode(torch.zeros(50, 101)).shape
    torch.Size([50, 64])
    """

    closed = True
    free = True

    def __init__(self, modes: int, channels: int = 1):
        super().__init__()
        self.modes, self.channels, self.size = modes, channels, modes * channels

    def config(self) -> dict[str, Json]:
        return {"space": "SineModes", "modes": self.modes, "channels": self.channels}

    def check(self, f: Tensor, x: Tensor | None, name: str) -> tuple[int, ...]:
        shape = super().check(f, x, name)
        at_ends = f.detach()[..., [0, -1]].abs().max()
        if x is None and at_ends > AT_ENDS * f.detach().square().mean().sqrt():
            warnings.warn(
                f"{name} is up to {at_ends:.3g} at the ends of [0, 1]; this model knows functions "
                "that are zero there, and answers so. Subtract a line through the ends, or use "
                "model='general', which takes any functions.",
                stacklevel=5,
            )
        return shape

    def frequencies(self) -> Float[Tensor, "k dims"]:
        return torch.arange(1, self.modes + 1, dtype=torch.float64)[:, None]

    def basis(self, x: Float[Tensor, "p dims"]) -> Float[Tensor, "k p"]:
        return math.sqrt(2) * torch.sin(math.pi * self.frequencies() @ x.T)

    def carried(self, points: int) -> int:
        return points - 2

    def points_for(self, modes: int) -> int:
        return modes + 2

    def isometry(self, grid: tuple[int, ...]) -> float | None:
        return float(grid[0] - 1) if grid[0] >= self.points_for(self.modes) else None

    def _encode_grid(self, f: Tensor) -> Tensor:
        return f @ self._kept(("encode", f.shape[-1]), f, lambda: self._encoder(f.shape[-1]))

    def _decode_grid(self, c: Tensor, shape: tuple[int, ...]) -> Tensor:
        return c @ self._kept(("decode", shape), c, lambda: self.basis(self.grid(shape)))

    def _encoder(self, points: int) -> Float[Tensor, "p k"]:
        """The trapezoidal rule: the modes vanish at both ends. Those that the grid does not carry
        are taken to be zero."""
        carried = self.frequencies().flatten() <= self.carried(points)
        return self.basis(self.grid((points,))).T * carried / max(points - 1, 1)
