"""Inner products of learned features, and Gaussian kernels in two metrics.

    p_h(v, v') = <phi_h(v), phi_h(v')> / s_h,       s_h = mean of |phi_h|^2 over the examples
    p_g(v, v') = exp(-g |M v - M v'|^2)

s_h is rounded to a power of four, so that one example more or less seldom changes it. The Gaussian
parts are universal: with them the error keeps falling as n grows, beyond what features can express.
Some of them use a learned metric and width. The others, in the metric of the functions themselves
and with fixed widths, are plain kernel ridge regression.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from ..systems import LOG_UNIT, SMALLEST_RIDGE, identity_like, inverse_factor
from .base import Gram, Landmarks, Points

BLOCK = 128  # queries at once in Gaussian kernels, so that memory stays in the cache


def power_of_four(f: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
    """The power of four nearest to f."""
    return 4 ** f.clamp(min=1e-30).log2().div(2).round()


class Features(nn.Module):
    """phi(v) = A v + B h_L,  h_1 = gelu(C_1 v),  h_l = h_{l-1} + gelu(C_l h_{l-1}).
    Without hidden layers, phi(v) = A v."""

    def __init__(self, d: int, hidden: int, layers: int, out: int):
        super().__init__()
        self.linear = nn.Linear(d, out)
        self.layers = nn.ModuleList(nn.Linear(hidden if i else d, hidden) for i in range(layers))
        self.out = nn.Linear(hidden, out, bias=False) if layers else None

    def forward(self, v: Float[Tensor, "b n d"]) -> Float[Tensor, "b n e"]:
        phi, h = self.linear(v), v
        for i, layer in enumerate(self.layers):
            step = nn.functional.gelu(layer(h))
            h = h + step if i else step
        return phi if self.out is None else phi + self.out(h)


class FeatureGram(Gram):
    """Heads of learned features, and Gaussian kernels.

    Args:
        d_v: size of V.
        heads: number of feature maps phi_h.
        width: number of features of each head.
        hidden: width of the network that computes them.
        layers: number of its hidden layers.
        learned: number of Gaussian kernels with learned width and metric.
        fixed: widths of the Gaussian kernels that learn nothing, in units of the inputs' size.
    """

    widths: Tensor

    def __init__(
        self,
        d_v: int,
        heads: int,
        width: int,
        hidden: int = 256,
        layers: int = 5,
        learned: int = 0,
        fixed: Sequence[float] = (),
    ):
        super().__init__()
        self.d_v, self.heads, self.width, self.hidden, self.layers = (
            d_v, heads, width, hidden, layers,
        )  # fmt: skip
        self.learned, self.fixed = learned, tuple(fixed)
        self.groups = (heads, learned + len(self.fixed)) if learned or self.fixed else (heads,)
        self.features = Features(d_v, hidden, layers, heads * width)
        self.log_width = self.metric = self.plain = None
        if len(self.groups) > 1:
            place = torch.linspace(0, 1, learned) if learned > 1 else torch.full((learned,), 0.5)
            self.log_width = nn.Parameter((-4.0 + 2.0 * place) / LOG_UNIT)
            self.metric = nn.Parameter(torch.full((d_v,), d_v**-0.5))
            self.plain = nn.Parameter(torch.full((d_v,), d_v**-0.5), requires_grad=False)
            widths = torch.tensor(self.fixed, dtype=torch.float64)
            self.register_buffer("widths", widths, persistent=False)

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        """Both metrics start from distances between the functions themselves."""
        for metric in (self.metric, self.plain):
            if metric is not None:
                metric.data.copy_(spread / size)

    def points(self, v: Float[Tensor, "b n d"]) -> Points:
        """The features (b, heads, n, width); and v in both metrics (b, 2, n, d)."""
        phi = rearrange(self.features(v), "b n (h p) -> b h n p", h=self.heads).double()
        if self.metric is None or self.plain is None:
            return (phi,)
        return phi, v.double()[:, None] * torch.stack([self.metric, self.plain])[:, None].double()

    @torch.no_grad()
    def scale(self, points: Points, there: Float[Tensor, "b n"]) -> Float[Tensor, "b h"]:
        sizes = points[0].square().sum(-1) * there[:, None]
        return power_of_four(sizes.sum(-1) / there.sum(-1, keepdim=True))

    def pairs(self, a: Points, b: Points) -> Float[Tensor, "b s m n"]:
        linear = a[0] @ b[0].mT
        return linear if len(a) == 1 else torch.cat([linear, self._radial(a[1], b[1])], 1)

    def parts(
        self, pairs: Float[Tensor, "a s m n"], scale: Float[Tensor, "b h"]
    ) -> Float[Tensor, "b s m n"]:
        linear, radial = pairs.tensor_split([self.heads], 1)
        return torch.cat([linear / scale[..., None, None], radial], 1)

    def between(
        self, a: Points, b: Points, scale: Float[Tensor, "b h"]
    ) -> Float[Tensor, "b s m n"]:
        """As the default, but scales features instead of their inner products."""
        return self.pairs((a[0] / scale[..., None, None], *a[1:]), b)

    def diagonal(self, points: Points, scale: Float[Tensor, "b h"]) -> Float[Tensor, "b s n"]:
        sizes = points[0].square().sum(-1) / scale[..., None]
        radial = sizes.new_ones(len(sizes), sum(self.groups[1:]), sizes.shape[-1])
        return torch.cat([sizes, radial], 1)

    def fold(
        self, points: Points, scale: Float[Tensor, "b h"], c: Float[Tensor, "b s n q"]
    ) -> Points:
        """Features are summed over the examples, so that their number does not slow queries."""
        linear, radial = c.tensor_split([self.heads], 1)
        folded = points[0].mT @ linear / scale[..., None, None]
        return (folded, radial, *points[1:])

    def answer(
        self, folded: Points, query: Points, scale: Float[Tensor, "b h"]
    ) -> Float[Tensor, "b m q"]:
        u = (query[0] @ folded[0]).sum(1)
        if len(query) == 1:
            return u
        # An exported graph is for any number of queries, which are then in one block.
        blocks = (query[1],) if torch.compiler.is_compiling() else query[1].split(BLOCK, 2)
        radial = [(self._radial(block, folded[2]) @ folded[1]).sum(1) for block in blocks]
        return u + torch.cat(radial, 1)

    def landmarks(self, points: Points, count: int) -> Landmarks:
        if len(points) == 1:
            return Landmarks(points[0][:, :, :0], points[0][:, :0])
        n, device = points[1].shape[2], points[1].device
        centres = points[1][:, :, torch.linspace(0, n - 1, count, device=device).long()]
        R = self._radial(centres, centres)
        return Landmarks(centres, inverse_factor(R + SMALLEST_RIDGE * identity_like(R)))

    def design(
        self, points: Points, scale: Float[Tensor, "b h"], landmarks: Landmarks
    ) -> tuple[Float[Tensor, "b _ n _"], ...]:
        linear = points[0] / scale[..., None, None].sqrt()
        if len(points) == 1:
            return (linear,)
        return linear, self._radial(points[1], landmarks.centres) @ landmarks.root.mT

    def fold_design(
        self,
        theta: tuple[Float[Tensor, "b _ _ q"], ...],
        scale: Float[Tensor, "b h"],
        landmarks: Landmarks,
    ) -> Points:
        linear = theta[0] / scale[..., None, None].sqrt()
        radial = tuple(landmarks.root.mT @ part for part in theta[1:])
        return (linear, *radial, landmarks.centres)

    def _radial(
        self, a: Float[Tensor, "b 2 n d"], b: Float[Tensor, "b 2 l d"]
    ) -> Float[Tensor, "b g n l"]:
        """exp(-g |a - b|^2) for each learned width, and then for each fixed one."""
        assert self.log_width is not None
        squared = a.square().sum(-1)[..., :, None] + b.square().sum(-1)[..., None, :]
        squared = (squared - 2 * a @ b.mT).clamp(min=0)
        learned = (LOG_UNIT * self.log_width.double()).exp()
        widths = torch.cat([learned, self.widths.double()])[:, None, None]
        counts = (self.learned, len(self.fixed))
        each = zip(squared.split(1, 1), counts, strict=True)
        repeated = torch.cat([one.expand(-1, count, -1, -1) for one, count in each], 1)
        return repeated.mul_(-widths).exp_()  # in place: new memory costs more than the exponential
