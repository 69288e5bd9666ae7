"""A layer that mixes channels mode by mode, on the lowest frequencies of a periodic grid.

    S h = sum_k exp(2 pi i k x) R(k) h_k,      h_k = mean_x exp(-2 pi i k x) h(x)

Transforms are products with small real matrices: of so few frequencies they take about as long as
FFTs, and complex FFTs do not export to ONNX."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn


class SpectralLayer(nn.Module):
    """h <- h + C(a tanh(b)),      (a, b) = (1 + scale(z)) (S h + D h) + shift(z)

    S mixes channels mode by mode, on the lowest frequencies of a periodic grid, D point by point.
    """

    def __init__(self, dims: int, channels: int, modes: int, summary: int):
        super().__init__()
        self.dims, self.modes = dims, modes
        # Of the lowest frequencies, from zero up and below it.
        self.rows = [
            *range(modes),
            *(range(1 - modes, 0) if dims == 2 else []),
        ]
        frequencies = modes ** (dims - 1) * len(self.rows)
        self.spectral = nn.Parameter(
            torch.randn(frequencies, channels, 2 * channels, 2) / math.sqrt(2 * channels)
        )
        self.pointwise = nn.Linear(channels, 2 * channels)
        self.out = nn.Linear(channels, channels)
        self.modulate = nn.Linear(summary, 4 * channels) if summary else None
        if self.modulate is not None:
            nn.init.zeros_(self.modulate.weight)
            nn.init.zeros_(self.modulate.bias)

    def forward(
        self, h: Float[Tensor, "f c *grid"], z: Float[Tensor, "f s"] | None
    ) -> Float[Tensor, "f c *grid"]:
        grid = h.shape[2:]
        a = self._convolved(h).flatten(2) + pointwise(self.pointwise, h.flatten(2))
        if self.modulate is not None:
            scale, shift = self.modulate(z)[..., None].chunk(2, 1)
            a = (1 + scale) * a + shift
        a, b = a.chunk(2, 1)
        return h + pointwise(self.out, a * b.tanh()).unflatten(2, grid)

    def _convolved(self, h: Float[Tensor, "f c *grid"]) -> Float[Tensor, "f d *grid"]:
        """The inverse transform of R(k) times the transform of h, for the lowest frequencies k. r:
        real and imaginary parts."""
        forth, back = (matrix.to(h) for matrix in along_last_axis(h.shape[-1], self.modes))
        spectrum = h @ forth
        if self.dims == 2:
            rows, rows_back = (
                matrix.to(h) for matrix in along_first_axis(h.shape[2], tuple(self.rows))
            )
            spectrum = rearrange(spectrum, "f c x (r l) -> f c l (r x)", r=2) @ rows
            spectrum = rearrange(spectrum, "f c l (r k) -> f c (r k l)", r=2)
        products = rearrange(spectrum, "f c (r k) -> k (r f) c", r=2) @ self.spectral.flatten(2)
        real, imaginary = products.unflatten(2, (-1, 2)).unflatten(1, (2, -1)).unbind(1)
        mixed = torch.stack([real[..., 0] - imaginary[..., 1], real[..., 1] + imaginary[..., 0]])
        if self.dims == 2:
            mixed = (
                rearrange(mixed, "r (k l) f d -> f d l (r k)", l=self.modes).contiguous()
                @ rows_back
            )
            return rearrange(mixed, "f d l (r x) -> f d x (r l)", r=2) @ back
        return rearrange(mixed, "r l f d -> f d (r l)") @ back


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # a tensor that is kept must serve gradients later
def along_last_axis(
    points: int, modes: int
) -> tuple[Float[Tensor, "p r_l"], Float[Tensor, "r_l p"]]:
    """The transform of real values to their lowest frequencies, real parts before imaginary ones,
    and the way back."""
    cosine, sine = waves(points, range(modes))
    # For a frequency and its conjugate.
    twice = torch.where(torch.arange(modes) > 0, 2.0, 1.0)[:, None]
    return torch.cat([cosine, -sine]).T / points, torch.cat([twice * cosine, -twice * sine])


@lru_cache(maxsize=16)
@torch.inference_mode(False)
def along_first_axis(
    points: int, frequencies: tuple[int, ...]
) -> tuple[Float[Tensor, "r_p r_k"], Float[Tensor, "r_k r_p"]]:
    """The transform of complex values, and the way back, in blocks of real and imaginary parts."""
    cosine, sine = waves(points, frequencies)
    back = torch.cat([torch.cat([cosine, sine], 1), torch.cat([-sine, cosine], 1)])
    return back.T / points, back


def waves(
    points: int, frequencies: Iterable[int]
) -> tuple[Float[Tensor, "k p"], Float[Tensor, "k p"]]:
    """cos(2 pi k x) and sin(2 pi k x) on a periodic grid, in double precision."""
    phase = (
        2
        * math.pi
        * torch.tensor([*frequencies], dtype=torch.float64)[:, None]
        * torch.arange(points)
        / points
    )
    return phase.cos(), phase.sin()


def pointwise(linear: nn.Linear, h: Float[Tensor, "f c p"]) -> Float[Tensor, "f d p"]:
    """A linear map of the channels at every point."""
    return torch.baddbmm(linear.bias[:, None], linear.weight.expand(h.shape[0], -1, -1), h)
