"""The covariance of what examples leave unknown, by the kernel of a ridge regression.

    c(v, w) = s^2 (k(v, w) - k(v)^T A^-1 k(w) + d(v) d(w) / 1^T A^-1 1)
    d(v) = 1 - k(v)^T A^-1 1,       A = K + lambda I,       s^2 = alpha^T A alpha / (n - 1)

It is the covariance of a Gaussian process with this kernel, amplitude s and an unknown mean, given
the examples; s^2 is summed over the points of u. Given the kernel and its ridge, it depends
on u only through s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from .systems import identity_like, inverse_factor

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
    """

    embed: Callable[[Tensor], Tensor]
    kernel: CrossKernel
    points: Float[Tensor, "n e"]
    factor: Float[Tensor, "n n"]
    noise: float
    amplitude: float

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
        return cls(embed, kernel, points, inverse_factor(A), amplitude * ridge, amplitude)

    def covariances(self, v: Float[Tensor, "m d"], w: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        """c of all pairs."""
        a, b = self.embed(v), self.embed(w)
        left, right = (self.kernel(points, self.points) @ self.factor.T for points in (a, b))
        ones = self.factor.sum(1)
        rest = (1 - left @ ones)[:, None] * (1 - right @ ones) / ones.square().sum()
        return self.amplitude * (self.kernel(a, b) - left @ right.T + rest)
