"""The covariance of what examples leave unknown, by the kernel of a ridge regression.

    c(v, w) = s^2 (k(v, w) - k(v)^T A^-1 k(w) + d(v) d(w) / 1^T A^-1 1)
    d(v) = 1 - k(v)^T A^-1 1,       A = K + lambda I,       s^2 = alpha^T A alpha / (n - 1)

It is the covariance of a Gaussian process with this kernel, amplitude s and an unknown mean, given
the examples; s^2 is summed over the points of u. Given the kernel and its ridge, it depends
on u only through s.

    a(v) = (1 + sum_i g_i(v) z_i) / (1 + sum_i g_i(v)),     g_i(v) = exp(-d(v, v_i)^2 / 2 h^2)

says where u varies more than that: z_i is the squared leave-one-out residual of an example divided
by its variance, in units of the mean of all, d the distance of the kernel, and h^2 the mean of
d^2 between nearest examples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .systems import identity_like, inverse_factor

PART = 64  # points whose kernel is computed at once for its diagonal
CrossKernel = Callable[[Tensor, Tensor], Tensor]
"""k of all pairs of points: (m, e), (n, e) -> (m, n)."""


@dataclass(frozen=True)
class Posterior:
    """What examples leave unknown.

    Attributes:
        embed: queries as the points that the kernel takes.
        kernel: k.
        points: the examples.
        factor: W with W^T W = A^-1.
        noise: s^2 lambda.
        amplitude: s^2.
        surprise: z.
    """

    embed: Callable[[Tensor], Tensor]
    kernel: CrossKernel
    points: Float[Tensor, "n e"]
    factor: Float[Tensor, "n n"]
    noise: float
    amplitude: float
    surprise: Float[Tensor, " n"]

    @classmethod
    def of(
        cls,
        embed: Callable[[Tensor], Tensor],
        kernel: CrossKernel,
        points: Float[Tensor, "n e"],
        ridge: float,
        alpha: Float[Tensor, "n q"],
    ) -> Posterior:
        """The posterior of a ridge regression with these coefficients."""
        K = kernel(points, points)
        A = K + ridge * identity_like(K)
        amplitude = float((alpha * (A @ alpha)).sum()) / max(1, len(points) - 1)
        factor = inverse_factor(A)
        ones = factor.sum(1)
        precision = factor.square().sum(0) - (ones @ factor).square() / ones.square().sum()
        squares = alpha.square().sum(1) / precision.clamp(min=1e-300)
        surprise = squares / squares.mean().clamp(min=1e-300)
        return cls(embed, kernel, points, factor, amplitude * ridge, amplitude, surprise)

    def covariances(self, v: Float[Tensor, "m d"], w: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        """c of all pairs."""
        a, b = self.embed(v), self.embed(w)
        left, right = (self.kernel(points, self.points) @ self.factor.T for points in (a, b))
        ones = self.factor.sum(1)
        rest = (1 - left @ ones)[:, None] * (1 - right @ ones) / ones.square().sum()
        return self.amplitude * (self.kernel(a, b) - left @ right.T + rest)

    def local_amplitudes(self, v: Float[Tensor, "m d"]) -> Float[Tensor, " m"]:
        """a."""
        if len(self.points) < 2:
            return v.new_ones(len(v))
        among = self._squared_distances(self.points, self.points)
        nearest = among.fill_diagonal_(torch.inf).min(1).values.mean().clamp(min=1e-300)
        g = torch.exp(-self._squared_distances(self.embed(v), self.points) / (2 * nearest))
        return (1 + g @ self.surprise) / (1 + g.sum(1))

    def _squared_distances(
        self, a: Float[Tensor, "m e"], b: Float[Tensor, "n e"]
    ) -> Float[Tensor, "m n"]:
        """k(a, a) + k(b, b) - 2 k(a, b)."""
        own = [torch.cat([self.kernel(p, p).diagonal() for p in x.split(PART)]) for x in (a, b)]
        return (own[0][:, None] + own[1] - 2 * self.kernel(a, b)).clamp(min=0)
