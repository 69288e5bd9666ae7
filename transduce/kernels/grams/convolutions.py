"""Gaussian kernels between images, as each layer of a convolutional network represents them.

    p_lr(v, v') = exp(-g_lr |phi_l(v) - phi_l(v')|^2 / s_l)
    phi_0 = v,      phi_l = N(gelu(C_l phi_(l-1))),      phi_(L+1) = A phi_L

s_l is the mean squared distance between the examples, so that widths are relative to it. N divides
by the channels' root mean square at each point, plus a little of that over the image, so that faint
strokes count like strong ones and noise does not. Layers are compared after pooling to a quarter of
the image's side. A constant part lets answers have a mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, gelu

from ...types import TransduceError
from .base import Gram, Points

SMALLEST_SCALE = 1e-6  # of distances, if all examples are equal
BACKGROUND = 0.1  # share of an image's root mean square that N adds to that at each point


class Network(nn.Module):
    """phi_0, ..., phi_(L+1) of square images.

    Args:
        side: of the images, in pixels.
        channels: of each convolution.
        out: size of the last layer.
    """

    def __init__(self, side: int, channels: Sequence[int], out: int):
        super().__init__()
        self.side = side
        wide = (1, *channels)
        convolutions = [
            nn.Conv2d(a, b, 3 if i else 5, stride=1 if i else 2, padding=1 if i else 2)
            for i, (a, b) in enumerate(zip(wide, channels, strict=False))
        ]
        for convolution in convolutions:  # this memory format takes two thirds of the time
            convolution.weight.data = convolution.weight.data.contiguous(
                memory_format=torch.channels_last
            )
        self.convolutions = nn.ModuleList(convolutions)
        self.out = nn.Linear(channels[-1] * (side // 4) ** 2, out)

    def forward(self, v: Float[Tensor, "b n d"]) -> list[Float[Tensor, "b n _"]]:
        h = v.reshape(-1, 1, self.side, self.side)
        found = [v]
        for i, convolution in enumerate(self.convolutions):
            h = gelu(convolution(h))
            h = normalised(avg_pool2d(h, 2) if i == 1 else h)
            found.append((h if i else avg_pool2d(h, 2)).flatten(1).unflatten(0, v.shape[:2]))
        return [*found, self.out(found[-1])]


def normalised(h: Float[Tensor, "k c p p"]) -> Float[Tensor, "k c p p"]:
    """N."""
    at_point, of_image = (h.square().mean(over, keepdim=True).sqrt() for over in (1, (1, 2, 3)))
    return h / (at_point + BACKGROUND * of_image + 1e-3)


class ConvolutionGram(Gram):
    """Gaussian kernels in every layer of a convolutional network, and a constant.

    log_unit: logarithms of widths and ridges are learned in units of this.

    Args:
        d_v: number of pixels: a square whose side is a multiple of 4.
        channels: of each convolution; at least two.
        width: size of the last layer.
        widths: number of Gaussian kernels in each layer.
    """

    log_unit = 3.0

    def __init__(
        self, d_v: int, channels: Sequence[int] = (32, 64, 96), width: int = 256, widths: int = 2
    ):
        super().__init__()
        side = math.isqrt(d_v)
        if side**2 != d_v or side % 4 or len(channels) < 2 or min(*channels, width, widths) < 1:
            raise TransduceError(
                f"V of size {d_v}, convolutions={tuple(channels)}, width={width} and "
                f"ridges={widths}; expected square images whose side is a multiple of 4, like "
                "784, two convolutions or more, and positive sizes."
            )
        self.d_v, self.channels, self.width, self.widths = d_v, tuple(channels), width, widths
        self.layers = len(channels) + 2
        self.groups = (1, self.layers * widths)
        self.features = Network(side, self.channels, width)
        self.log_width = nn.Parameter(torch.zeros(self.layers, widths))

    def points(self, v: Float[Tensor, "b n d"]) -> Points:
        return tuple(self.features(v))

    def among(
        self, points: Points, there: Float[Tensor, "b n"]
    ) -> tuple[Float[Tensor, "b s n n"], Float[Tensor, "b l"]]:
        """As the default, but takes the scale from the distances of all pairs."""
        pairs = self.pairs(points, points)
        counts = (there[:, None, :, None] * there[:, None, None, :]).to(pairs)
        total = (pairs * counts).sum((2, 3)) / counts.sum((2, 3))
        scale = total.clamp(min=SMALLEST_SCALE).detach()
        return self.parts(pairs, scale), scale

    @torch.no_grad()
    def scale(self, points: Points, there: Float[Tensor, "b n"]) -> Float[Tensor, "b l"]:
        """The mean squared distance is twice the mean square minus the square of the mean, of
        points about any centre."""
        share = there.to(points[0]) / there.sum(1, keepdim=True).to(points[0])
        scales = []
        for x in points:
            x = x - x.mean(1, keepdim=True)
            squares, mean = (share * x.square().sum(-1)).sum(1), (share[:, None] @ x)[:, 0]
            scales.append(2 * (squares - mean.square().sum(-1)))
        return torch.stack(scales, 1).clamp(min=SMALLEST_SCALE)

    def pairs(self, a: Points, b: Points) -> Float[Tensor, "b l m n"]:
        """Squared distances in each layer, about the mean of b to limit rounding errors."""
        centred = (
            (x - y.mean(1, keepdim=True), y - y.mean(1, keepdim=True))
            for x, y in zip(a, b, strict=True)
        )
        squared = (
            x.square().sum(-1)[..., :, None] + y.square().sum(-1)[..., None, :] - 2 * x @ y.mT
            for x, y in centred
        )
        return torch.stack([d.clamp(min=0) for d in squared], 1)

    def parts(
        self, pairs: Float[Tensor, "a l m n"], scale: Float[Tensor, "b l"]
    ) -> Float[Tensor, "b s m n"]:
        relative = (pairs / scale[..., None, None])[:, :, None]
        width = (self.log_unit * self.log_width).exp()[:, :, None, None]
        gaussian = torch.exp(-width * relative).flatten(1, 2).double()
        return torch.cat([torch.ones_like(gaussian[:, :1]), gaussian], 1)

    def diagonal(self, points: Points, scale: Float[Tensor, "b l"]) -> Float[Tensor, "b s n"]:
        b, n = points[0].shape[:2]
        return torch.ones(b, sum(self.groups), n, dtype=torch.float64, device=points[0].device)
