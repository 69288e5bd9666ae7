"""Gaussian kernels between images as the layers of a convolutional network see them, each solved
for its coefficients.

    u_hat(v) = sum_j w_j sum_i k_j(v_i, v) alpha_ij,        alpha_j = (K_j + lambda_j I)^-1 u
    k_j(v, v') = 1 + exp(-g_j |phi_l(v) - phi_l(v')|^2 / s_l)
    phi_0 = v,      phi_l = N(gelu(C_l phi_(l-1))),      phi_(L+1) = A phi_L

Every layer l has candidates j of its own width g and ridge lambda; s_l is the mean square distance
between the examples, so that widths are relative to it. N divides by the channels' root mean square
at each point, and by a little of that over the image, so that faint strokes count as strong ones
do, but noise does not. Layers are compared after pooling to a quarter of the image's side. What
candidates leave of the examples when they are left out, r_ij = alpha_ij / [(K_j + lambda_j
I)^-1]_ii, mixes them (mixing.py): pixels where classes are a matter of where, later layers where
they are one of which strokes. No part of it knows one coefficient of u from another, so renaming
classes renames the answers."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, gelu

from ..types import TransduceError
from .kappa import Known
from .mixing import Mixing
from .systems import SMALLEST_RIDGE, Solve

MOST = 4096  # examples: their systems are solved exactly
PACE = 3.0  # logarithms are learned in units of this
TRUST = (
    0.0,
    2.5,
    # that candidates are mixed with at first: layers differ, and the examples can tell which is of
    # use
)
SMALLEST_SCALE = 1e-6  # of distances, where all examples are alike or there is one
BACKGROUND = 0.1  # of an image's root mean square, added to that at each point


class Network(nn.Module):
    """phi_0, ..., phi_(L+1) of square images; channels: of each convolution; out: the size of the
    last."""

    def __init__(self, side: int, channels: tuple[int, ...], out: int):
        super().__init__()
        self.side = side
        wide = (1, *channels)
        convolutions = [
            nn.Conv2d(a, b, 3 if i else 5, stride=1 if i else 2, padding=1 if i else 2)
            for i, (a, b) in enumerate(zip(wide, channels, strict=False))
        ]
        for convolution in convolutions:
            convolution.weight.data = convolution.weight.data.contiguous(
                memory_format=torch.channels_last
            )  # two thirds of the time
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


class Solution(NamedTuple):
    """What a query needs: the examples in each layer, and the mixed coefficients of each candidate;
    and what bands need."""

    points: list[Float[Tensor, "b n _"]]
    scale: Float[Tensor, "b h 1 1"]
    coefficients: Float[Tensor, "b j n q"]
    W: Float[Tensor, "b j n n"]
    mix: Float[Tensor, "b j q"]
    residual: Float[Tensor, "b n q"]
    deviation: Float[Tensor, "b n"]
    mask: Bool[Tensor, "b n"] | None


class Convolutional(Mixing):
    """convolutions: the channels of each layer. width: the size of the last layer. ridges:
    candidates of each layer. `heads` are the layers, whatever number is given."""

    options: ClassVar[tuple[str, ...]] = ("convolutions", "ridges")

    def __init__(
        self,
        d_v: int,
        d_u: int,
        heads: int,
        width: int,
        convolutions: tuple[int, ...] = (32, 64, 96),
        ridges: int = 2,
    ):
        super().__init__()
        side = math.isqrt(d_v)
        if (
            side**2 != d_v
            or side % 4
            or len(convolutions) < 2
            or min(*convolutions, width, ridges) < 1
        ):
            raise TransduceError(
                f"V of size {d_v}, convolutions={tuple(convolutions)}, width={width} and "
                f"ridges={ridges}; expected square images whose "
                "side is a multiple of 4, like 784, two convolutions or more, and positive sizes."
            )
        self.features = Network(side, tuple(convolutions), width)
        self.heads, self.ridges = len(convolutions) + 2, ridges
        self.log_width = nn.Parameter(torch.zeros(self.heads, ridges))
        self.log_ridge = nn.Parameter(
            torch.linspace(0.1, 0.01, ridges).log().div(PACE).repeat(self.heads, 1)
        )
        self.start_mixing(self.heads * ridges, 1)
        self.log_trust.data.copy_(torch.tensor(TRUST))

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
        known: Known | None = None,
    ) -> Solution:
        """All is computed anew: there is little to gain from what is known."""
        _check_count(v.shape[1])
        there = torch.ones_like(u[..., 0], dtype=torch.bool) if mask is None else mask
        points = self.features(v)
        distances = self._distances(points, points)
        return self._solved(points, distances, u, there)._replace(mask=mask)

    def forward(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        return (self._across(sources, v) @ sources.coefficients).sum(1).to(v.dtype)

    def carry(
        self, sources: Solution, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
    ) -> Float[Tensor, "b n d_u"]:
        """What is left of each example when it is left out: the next layer's task."""
        return sources.residual

    def read(
        self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"]
    ) -> Float[Tensor, "1 h n n"]:
        """The distances of all pairs."""
        _check_count(v.shape[1])
        points = self.features(v)
        return self._distances(points, points)

    def split(
        self,
        read: Float[Tensor, "1 h n n"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n d_u"]:
        solution = self._solved([], read, u, mask)
        answers = (self._kernels(read, solution.scale) @ solution.coefficients).sum(1)
        return torch.where(mask[..., None], solution.residual, u + answers.to(u))

    def weights(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b j m n"]:
        """The factor of u_i in each candidate's answer: k_j(v) (K_j + lambda_j I)^-1. Of either
        sign, and their sum is free."""
        return self._across(sources, v) @ sources.W.mT @ sources.W

    def deviations(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """The standard deviation of each query under the Gaussian processes that the kernels and
        their ridges are."""
        variances = 2 + self._ridge - (self._across(sources, v) @ sources.W.mT).square().sum(-1)
        return (
            (
                self.blame(sources.mix, sources.residual)[..., None]
                * variances.clamp(min=SMALLEST_RIDGE)
            )
            .sum(1)
            .sqrt()
        )

    def _solved(
        self,
        points: list[Tensor],
        distances: Float[Tensor, "a h n n"],
        u: Float[Tensor, "b n q"],
        there: Bool[Tensor, "b n"],
    ) -> Solution:
        """The systems of the examples that are there; others get a row and a column of the
        identity, and count for nothing."""
        count, pairs = there.sum(1), there[:, None, :, None] & there[:, None, None, :]
        scale = (
            ((distances * pairs).sum((2, 3), keepdim=True) / count[:, None, None, None] ** 2)
            .clamp(min=SMALLEST_SCALE)
            .detach()
        )
        K = self._kernels(distances, scale) * pairs
        K.diagonal(dim1=-2, dim2=-1).add_(self._ridge + ~there[:, None])
        target = u.double() * there[..., None]
        alpha, diagonal, W = Solve.apply(K, target)
        mix, residual = self.mixed(alpha / diagonal[..., None], target, count.double())
        deviation = (self.blame(mix, residual)[..., None] / diagonal).sum(1).sqrt()
        return Solution(
            points, scale, mix[:, :, None] * alpha, W, mix, residual.to(u.dtype), deviation, None
        )

    def _across(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b j m n"]:
        """k_j between queries and examples, none where there is no example."""
        k = self._kernels(self._distances(self.features(v), sources.points), sources.scale)
        return k if sources.mask is None else k * sources.mask[:, None, None, :]

    def _kernels(
        self, distances: Float[Tensor, "a h m n"], scale: Float[Tensor, "b h 1 1"]
    ) -> Float[Tensor, "b j m n"]:
        relative = (distances / scale)[:, :, None]
        return (
            (1 + torch.exp(-(PACE * self.log_width).exp()[:, :, None, None] * relative))
            .flatten(1, 2)
            .double()
        )

    @staticmethod
    def _distances(
        a: list[Float[Tensor, "b m _"]], b: list[Float[Tensor, "b n _"]]
    ) -> Float[Tensor, "b h m n"]:
        """Squared, in each layer; from the middle of b, so that little is lost to rounding where
        all are alike."""
        centred = (
            (x - y.mean(1, keepdim=True), y - y.mean(1, keepdim=True))
            for x, y in zip(a, b, strict=True)
        )
        squared = (
            x.square().sum(-1)[..., :, None] + y.square().sum(-1)[..., None, :] - 2 * x @ y.mT
            for x, y in centred
        )
        return torch.stack([d.clamp(min=0) for d in squared], 1)

    @property
    def _ridge(self) -> Float[Tensor, "j 1"]:
        return (PACE * self.log_ridge.double()).exp().clamp(min=SMALLEST_RIDGE).flatten()[:, None]


def _check_count(n: int) -> None:
    if n > MOST:
        raise TransduceError(
            f"{n} examples; this kernel expects at most {MOST}, all pairs of which it compares. "
            "Give a sample of them."
        )
