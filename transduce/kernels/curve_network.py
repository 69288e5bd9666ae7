"""The network of the general model: channels h(v)(x) of curves, modulated by a summary z of pairs.

    h_0 = C (v / a, (v - m) / c, integrals of both, x, 1)
    h_l = h_{l-1} + D(a_l tanh(b_l)),
    (a_l, b_l) = (1 + scale(z)) (S h + W h) + shift(z)
    z = f(mean_i e(v_i, u_i), log n)

m is the mean of the examples' v; a and c are the root mean squares of v and v - m. S mixes the
lowest frequencies of a domain twice as long, so that nothing is assumed periodic. W mixes a window
of values and their running integral. Curves are on a uniform grid of the network's own.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..configs import Part

LONGER = 2  # length of the domain of S in units of the curves' own
ENDS = 6  # points at each end that the summary sees apart


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def transforms(points: int, modes: int) -> tuple[Float[Tensor, "f p"], Float[Tensor, "p f"]]:
    """Values to the lowest frequencies of the longer domain, real before imaginary parts, and the
    way back."""
    x = torch.linspace(0, 1, points, dtype=torch.float64) / LONGER
    phase = 2 * math.pi * torch.arange(modes, dtype=torch.float64)[:, None] * x
    waves = torch.cat([phase.cos(), -phase.sin()])
    return waves / points, waves.T.contiguous()


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def running_integral(points: int) -> Float[Tensor, "p p"]:
    """The matrix of the integral from 0 to x, by the trapezoidal rule."""
    A = torch.tril(torch.ones(points, points, dtype=torch.float64))
    A -= torch.eye(points, dtype=torch.float64) / 2
    A[:, 0] -= 0.5
    A[0] = 0
    return A / (points - 1)


class CurveLayer(nn.Module):
    """One layer on curves h of shape (f, p, c).

    Args:
        channels: number of channels c.
        modes: number of frequencies that are mixed.
        window: number of neighbouring points that are mixed; odd.
        summary: length of z; 0 for none.
    """

    def __init__(self, channels: int, modes: int, window: int, summary: int):
        super().__init__()
        self.channels, self.modes, self.window = channels, modes, window
        self.spectral = nn.Parameter(
            torch.randn(modes * channels, 4 * channels) / (2 * channels) ** 0.5
        )
        self.local = nn.Linear((window + 1) * channels, 2 * channels)
        self.out = nn.Linear(channels, channels)
        self.modulate = nn.Linear(summary, 4 * channels) if summary else None
        if self.modulate is not None:
            nn.init.zeros_(self.modulate.weight)
            nn.init.zeros_(self.modulate.bias)

    def forward(
        self, h: Float[Tensor, "f p c"], z: Float[Tensor, "f s"] | None
    ) -> Float[Tensor, "f p c"]:
        y = self._spectral(h) + self._local(h)
        if self.modulate is not None:
            scale, shift = self.modulate(z)[:, None].chunk(2, -1)
            y = (1 + scale) * y + shift
        a, b = y.chunk(2, -1)
        return h + self.out(a * b.tanh())

    def _local(self, h: Float[Tensor, "f p c"]) -> Float[Tensor, "f p d"]:
        """W: the values around each point, constant beyond the ends, and the running integral."""
        reach, points = self.window // 2, h.shape[1]
        index = torch.arange(points, device=h.device)[:, None]
        offsets = torch.arange(-reach, reach + 1, device=h.device)
        around = h[:, (index + offsets).clamp(0, points - 1)].flatten(2)
        near, integral = self.local.weight.split([around.shape[2], self.channels], 1)
        integrals = running_integral(points).to(h) @ h
        return nn.functional.linear(around, near, self.local.bias) + integrals @ integral.T

    def _spectral(self, h: Float[Tensor, "f p c"]) -> Float[Tensor, "f p d"]:
        """sum_k exp(i k x) R_k h_k over the lowest frequencies; R_k are complex matrices."""
        forth, back = (matrix.to(h) for matrix in transforms(h.shape[1], self.modes))
        real, imaginary = (forth @ h).unflatten(1, (2, -1)).movedim(2, 0).unbind(2)  # (m, f, c)
        R = self.spectral.unflatten(0, (self.modes, -1))
        (a, b), (c, d) = ((part @ R).chunk(2, -1) for part in (real, imaginary))
        mixed = torch.cat([a - d, b + c]).movedim(0, 1)  # (f, 2 m, d)
        return back @ mixed


def over_pairs(each: Float[Tensor, "b n c"], there: Float[Tensor, "b n"]) -> Float[Tensor, "b d"]:
    """Mean and standard deviation over the pairs that are there, and how many there are."""
    count = there.sum(1, keepdim=True).clamp(min=1)
    share = (there / count)[..., None]
    mean = (each * share).sum(1)
    spread = ((each - mean[:, None]).square() * share).sum(1).add(1e-6).sqrt()
    return torch.cat([mean, spread, count.log() / 2 - 1], -1)


class CurveSummary(nn.Module):
    """z of b sets of pairs: means over x and over pairs of the channels of two layers."""

    def __init__(self, channels: int, modes: int, window: int, size: int):
        super().__init__()
        self.lift = nn.Linear(9, channels)
        self.layers = nn.ModuleList(CurveLayer(channels, modes, window, 0) for _ in range(2))
        self.each = nn.Sequential(
            nn.Linear(4 * channels, 2 * channels), nn.Tanh(), nn.Linear(2 * channels, 2 * channels)
        )
        self.norm = nn.LayerNorm(4 * channels + 1)
        self.hidden = nn.Linear(4 * channels + 1, 2 * channels)
        self.out = nn.Linear(2 * channels, size)

    def forward(
        self, pairs: Float[Tensor, "b n p 9"], there: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b s"]:
        h = self.lift(pairs.flatten(0, 1))
        for layer in self.layers:
            h = layer(h, None)
        pooled = [h.mean(1), h.square().mean(1), h[:, :ENDS].mean(1), h[:, -ENDS:].mean(1)]
        each = self.each(torch.cat(pooled, -1)).unflatten(0, pairs.shape[:2])
        z = self.norm(over_pairs(each, there))
        return self.out(torch.tanh(self.hidden(z)))


class CurveNetwork(Part):
    """Channels of curves on a uniform grid of [0, 1].

    Args:
        channels: number of learned channels.
        layers: number of layers.
        modes: number of frequencies that a layer mixes.
        window: number of neighbouring points that a layer mixes; odd.
        points: number of points of the grid.
        summary: length of z.
    """

    def __init__(
        self,
        channels: int = 40,
        layers: int = 4,
        modes: int = 20,
        window: int = 5,
        points: int = 80,
        summary: int = 48,
    ):
        super().__init__()
        self.channels, self.layers, self.modes = channels, layers, modes
        self.window, self.points, self.summary = window, points, summary
        self.lift = nn.Linear(6, channels)
        self.steps = nn.ModuleList(
            CurveLayer(channels, modes, window, summary) for _ in range(layers)
        )
        self.summarise = CurveSummary(channels, modes, window, summary)
        self.size = channels + 4

    def z(
        self,
        raw: Float[Tensor, "b n p"],
        centred: Float[Tensor, "b n p"],
        u: Float[Tensor, "b n p"],
        there: Float[Tensor, "b n"],
    ) -> Float[Tensor, "b s"]:
        """The summary of pairs.

        Args:
            raw: v in units of its root mean square.
            centred: v less its mean, in units of the root mean square of that.
            u: outputs, centred likewise.
            there: 1 for pairs that count, 0 for others.
        """
        I = running_integral(self.points).to(raw).T
        x = torch.linspace(-1, 1, self.points).to(raw).expand_as(raw)
        parts = [
            raw,
            centred,
            u,
            u - centred,
            centred @ I,
            u @ I,
            centred * u,
            x,
            torch.ones_like(x),
        ]
        return self.summarise(torch.stack(parts, -1), there)

    def forward(
        self,
        raw: Float[Tensor, "b n p"],
        centred: Float[Tensor, "b n p"],
        z: Float[Tensor, "b s"],
    ) -> Float[Tensor, "b n p c"]:
        """The channels; the last four are v less its mean, its integral, v and 1."""
        I = running_integral(self.points).to(raw).T
        x = torch.linspace(-1, 1, self.points).to(raw).expand_as(raw)
        one = torch.ones_like(x)
        inputs = torch.stack([raw, centred, raw @ I, centred @ I, x, one], -1).flatten(0, 1)
        each = z[:, None].expand(-1, raw.shape[1], -1).flatten(0, 1)
        h = self.lift(inputs)
        for step in self.steps:
            h = step(h, each)
        plain = inputs[..., [1, 3, 0, 5]]
        return torch.cat([h, plain], -1).unflatten(0, raw.shape[:2])
