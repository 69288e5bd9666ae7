"""A Gaussian process: Matern's kernel of smoothness 5/2, and lines.

    k(v, v') = s (1 + r + r^2 / 3) exp(-r) + l g^2 <v, v'> / d,      r = sqrt(5 / d) g |v - v'|

in units of the noise, so that T(D)(v) = k(v, D) (K + I)^-1 u. Three numbers are learned, over many
tasks: s, l and g."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..types import TransduceError
from .kappa import Kappa, Known
from .systems import PACE, SMALLEST_RIDGE, Solve, identity_like

LINES, GAIN = 0.28, 0.73  # l / s and g at first


class Solution(NamedTuple):
    """What a query needs of the examples, and what bands need."""

    points: Float[Tensor, "b n d"]
    coefficients: Float[Tensor, "b n q"]
    W: Float[Tensor, "b n n"]
    residual: Float[Tensor, "b n q"]
    deviation: Float[Tensor, "b n"]
    mask: Bool[Tensor, "b n"] | None


class Metric(Kappa):
    """signal: s at first. `heads` and `width` are of other kernels."""

    options: ClassVar[tuple[str, ...]] = ("signal",)
    transforms: ClassVar[bool] = False
    leaves_out: ClassVar[bool] = True

    def __init__(self, d_v: int, d_u: int, heads: int = 1, width: int = 1, signal: float = 60.0):
        super().__init__()
        if not signal > 0:
            raise TransduceError(
                f"signal={signal}; expected a number above 0, the variance of the operator in "
                "units of the noise."
            )
        self.log_signal = nn.Parameter(torch.tensor(math.log(signal) / PACE))
        self.log_lines = nn.Parameter(torch.tensor(math.log(LINES * signal) / PACE))
        self.log_gain = nn.Parameter(torch.tensor(math.log(GAIN) / PACE))

    def points(self, v: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        """g v / sqrt(d)."""
        return (PACE * self.log_gain).exp() * v / math.sqrt(v.shape[-1])

    def between(
        self, a: Float[Tensor, "... n d"], b: Float[Tensor, "... m d"]
    ) -> Float[Tensor, "... n m"]:
        """k, of points, in double precision."""
        a, b = a.double(), b.double()
        return self.of_products(
            a.square().sum(-1)[..., :, None], b.square().sum(-1)[..., None, :], a @ b.mT
        )

    def of_products(
        self, aa: Tensor, bb: Tensor, ab: Float[Tensor, "... n m"]
    ) -> Float[Tensor, "... n m"]:
        """k, of the inner products of points with themselves and with each other."""
        r = (5 * (aa + bb - 2 * ab)).clamp(min=SMALLEST_RIDGE).sqrt()
        return (
            self._strength(self.log_signal) * (1 + r + r.square() / 3) * (-r).exp()
            + self._strength(self.log_lines) * ab
        )

    def _strength(self, logarithm: Float[Tensor, ""]) -> Float[Tensor, ""]:
        return (PACE * logarithm.double()).exp()

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
        known: Known | None = None,
    ) -> Solution:
        """All is computed anew: there is little to gain from what is known."""
        points = self.points(v)
        return self._solved(points, self.between(points, points), u, mask)

    def _solved(
        self, points: Tensor, K: Float[Tensor, "b n n"], u: Tensor, mask: Bool[Tensor, "b n"] | None
    ) -> Solution:
        if mask is not None:
            K, u = K * (mask[:, None] & mask[..., None]), u * mask[..., None]
        alpha, diagonal, W = Solve.apply((K + identity_like(K))[:, None], u.double())
        left = alpha[:, 0] / diagonal[:, 0, :, None]
        return Solution(points, alpha[:, 0], W[:, 0], left.to(u), diagonal[:, 0].rsqrt(), mask)

    def forward(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        return (self._across(sources, v) @ sources.coefficients).to(v)

    def _across(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m n"]:
        """k between queries and examples, none where there is no example."""
        k = self.between(self.points(v), sources.points)
        return k if sources.mask is None else k * sources.mask[:, None]

    def coefficients(
        self, v: Float[Tensor, "n d_v"], u: Float[Tensor, "n d_u"]
    ) -> Float[Tensor, "n d_u"]:
        """(K + I)^-1 u"""
        return self.condition(v[None], u[None]).coefficients[0].to(u)

    def told(
        self,
        points: Float[Tensor, "n d_v"],
        coefficients: Float[Tensor, "n d_u"],
        v: Float[Tensor, "b m d_v"],
    ) -> Float[Tensor, "b m d_u"]:
        """The sum of k(v_i, v) times the coefficients of v_i."""
        return (self.between(self.points(v), self.points(points)) @ coefficients.double()).to(v)

    def carry(
        self, sources: Solution, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
    ) -> Float[Tensor, "b n d_u"]:
        """What is left of each example when it is left out: the next layer's task."""
        return sources.residual

    def read(
        self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"]
    ) -> Float[Tensor, "1 n n"]:
        """The kernel of all pairs."""
        points = self.points(v)
        return self.between(points, points)

    def split(
        self,
        read: Float[Tensor, "1 n n"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n d_u"]:
        solution = self._solved(u, read.expand(len(mask), -1, -1), u, mask)
        return torch.where(
            mask[..., None], solution.residual, u + (read @ solution.coefficients).to(u)
        )

    def weights(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b 1 m n"]:
        """The factor of u_i in the answer: k(v) (K + I)^-1. Of either sign, and their sum is
        free."""
        return (self._across(sources, v) @ sources.W.mT @ sources.W)[:, None]

    def deviations(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """The standard deviation of each query under the Gaussian process, in units of the
        noise."""
        alone = self._strength(self.log_signal) + self._strength(self.log_lines) * self.points(
            v
        ).double().square().sum(-1)
        known = (self._across(sources, v) @ sources.W.mT).square().sum(-1)
        return (1 + alone - known).clamp(min=SMALLEST_RIDGE).sqrt()
