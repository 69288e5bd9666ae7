"""The network of the general model of fields: channels h(v)(x, y), modulated by a summary z of
pairs.

    h_0 = C (v / a, (v - m) / c, x, y, 1)
    h_l = h_{l-1} + D(a_l tanh(b_l)),
    (a_l, b_l) = (1 + scale(z)) (S h + W h) + shift(z)
    z = f(mean_i e(v_i, u_i), log n)

m is the mean of the examples' v; a and c are the root mean squares of v and v - m. S mixes the
lowest frequencies of a square of twice the side, so that nothing is assumed periodic. W is a
convolution with the nearest points, constant beyond the edges. Fields are on a uniform grid, and
have two channels; one of zeros does not exist.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..configs import Part
from .curve_network import over_pairs

LONGER = 2  # side of the square of S in units of the fields' own
CHANNELS = 2  # of v and of u
EDGE = 3  # points at each edge that the summary sees apart


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def waves(points: int, low: int, high: int) -> tuple[Float[Tensor, "k p"], Float[Tensor, "k p"]]:
    """Real and imaginary parts of exp(-2 pi i k x / LONGER) for k = low, ..., high - 1 at uniform
    points of [0, 1]. Complex numbers cannot be exported to ONNX."""
    x = torch.linspace(0, 1, points, dtype=torch.float64) / LONGER
    phase = 2 * math.pi * torch.arange(low, high, dtype=torch.float64)[:, None] * x
    return phase.cos(), -phase.sin()


class FieldLayer(nn.Module):
    """One layer on fields h of shape (f, c, x, y).

    Args:
        channels: number of channels c.
        modes: number of frequencies that are mixed along each axis.
        summary: length of z; 0 for none.
    """

    def __init__(self, channels: int, modes: int, summary: int):
        super().__init__()
        self.channels, self.modes = channels, modes
        count = modes * (2 * modes - 1)
        self.spectral = nn.Parameter(
            torch.randn(count * channels, 4 * channels) / (8 * channels) ** 0.5
        )
        self.local = nn.Conv2d(channels, 2 * channels, 3, padding=1, padding_mode="replicate")
        self.out = nn.Conv2d(channels, channels, 1)
        self.modulate = nn.Linear(summary, 4 * channels) if summary else None
        if self.modulate is not None:
            nn.init.zeros_(self.modulate.weight)
            nn.init.zeros_(self.modulate.bias)

    def forward(
        self, h: Float[Tensor, "f c x y"], z: Float[Tensor, "f s"] | None
    ) -> Float[Tensor, "f c x y"]:
        y = self._spectral(h) + self.local(h)
        if self.modulate is not None:
            scale, shift = self.modulate(z)[..., None, None].chunk(2, 1)
            y = (1 + scale) * y + shift
        a, b = y.chunk(2, 1)
        return h + self.out(a * b.tanh())

    def _spectral(self, h: Float[Tensor, "f c x y"]) -> Float[Tensor, "f d x y"]:
        """sum_k exp(i k x) R_k h_k over the lowest frequencies; R_k are complex matrices."""
        m, (p, q) = self.modes, h.shape[-2:]
        A, B = (w.to(h) for w in waves(p, 1 - m, m))  # real and imaginary parts along x
        C, D = (w.to(h) for w in waves(q, 0, m))  # and along y
        a, b = h @ C.T / (p * q), h @ D.T / (p * q)
        real, imaginary = (
            part.flatten(2).permute(2, 0, 1) for part in (A @ a - B @ b, A @ b + B @ a)
        )  # (modes, f, c)
        R, S = self.spectral.unflatten(0, (-1, self.channels)).chunk(2, -1)
        a, b = (
            part.permute(1, 2, 0).unflatten(2, (2 * m - 1, m))
            for part in (real @ R - imaginary @ S, real @ S + imaginary @ R)
        )
        return 2 * ((A.T @ a + B.T @ b) @ C + (A.T @ b - B.T @ a) @ D)


class FieldSummary(nn.Module):
    """z of b sets of pairs: means over x, y and over pairs of the channels of two layers, on every
    second point."""

    def __init__(self, channels: int, modes: int, size: int):
        super().__init__()
        self.lift = nn.Conv2d(OF_PAIR, channels, 3, padding=1, padding_mode="replicate")
        self.layers = nn.ModuleList(FieldLayer(channels, modes, 0) for _ in range(2))
        self.each = nn.Sequential(
            nn.Linear(6 * channels, 2 * channels), nn.Tanh(), nn.Linear(2 * channels, 2 * channels)
        )
        self.norm = nn.LayerNorm(4 * channels + 1)
        self.hidden = nn.Linear(4 * channels + 1, 2 * channels)
        self.out = nn.Linear(2 * channels, size)

    def forward(
        self, pairs: Float[Tensor, "b n k x y"], there: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b s"]:
        h = nn.functional.avg_pool2d(self.lift(pairs.flatten(0, 1)), 2)
        for layer in self.layers:
            h = layer(h, None)
        edges = [h[..., :EDGE, :], h[..., -EDGE:, :], h[..., :EDGE], h[..., -EDGE:]]
        pooled = [f.mean((2, 3)) for f in (h, h.square(), *edges)]
        each = self.each(torch.cat(pooled, -1)).unflatten(0, pairs.shape[:2])
        z = self.norm(over_pairs(each, there))
        return self.out(torch.tanh(self.hidden(z)))


OF_PAIR = 5 * CHANNELS + 3  # what the summary sees of a pair
OF_INPUT = 2 * CHANNELS + 3  # what the network sees of a field


class FieldNetwork(Part):
    """Channels of fields on a uniform grid of [0, 1]^2.

    Args:
        channels: number of learned channels.
        layers: number of layers.
        modes: number of frequencies that a layer mixes along each axis.
        points: largest number of points of the grid along each axis.
        summary: length of z.
    """

    def __init__(
        self,
        channels: int = 32,
        layers: int = 4,
        modes: int = 8,
        points: int = 32,
        summary: int = 48,
    ):
        super().__init__()
        self.channels, self.layers, self.modes = channels, layers, modes
        self.points, self.summary = points, summary
        self.lift = nn.Conv2d(OF_INPUT, channels, 3, padding=1, padding_mode="replicate")
        self.steps = nn.ModuleList(FieldLayer(channels, modes, summary) for _ in range(layers))
        self.summarise = FieldSummary(channels // 2, max(2, modes // 2), summary)
        self.size = channels + 2 * CHANNELS + 1

    def z(
        self,
        raw: Float[Tensor, "b n c p q"],
        centred: Float[Tensor, "b n c p q"],
        u: Float[Tensor, "b n c p q"],
        there: Float[Tensor, "b n"],
    ) -> Float[Tensor, "b s"]:
        """The summary of pairs.

        Args:
            raw: v in units of its root mean square.
            centred: v less its mean, in units of the root mean square of that.
            u: outputs, centred likewise.
            there: 1 for pairs that count, 0 for others.
        """
        pairs = [raw, centred, u, u - centred, centred * u, self._places(raw)]
        return self.summarise(torch.cat(pairs, 2), there)

    def forward(
        self,
        raw: Float[Tensor, "b n c p q"],
        centred: Float[Tensor, "b n c p q"],
        z: Float[Tensor, "b s"],
    ) -> Float[Tensor, "b n k p q"]:
        """The channels; the last ones are v less its mean, v and 1."""
        each = z[:, None].expand(-1, raw.shape[1], -1).flatten(0, 1)
        h = self.lift(torch.cat([raw, centred, self._places(raw)], 2).flatten(0, 1))
        for step in self.steps:
            h = step(h, each)
        one = torch.ones_like(raw[:, :, :1])
        return torch.cat([h.unflatten(0, raw.shape[:2]), centred, raw, one], 2)

    def _places(self, f: Float[Tensor, "b n c p q"]) -> Float[Tensor, "b n 3 p q"]:
        """x, y and 1 at each point."""
        x, y = (torch.linspace(-1, 1, points).to(f) for points in f.shape[-2:])
        places = torch.stack([*torch.meshgrid(x, y, indexing="ij"), f.new_ones(f.shape[-2:])])
        return places.expand(*f.shape[:2], -1, -1, -1)
