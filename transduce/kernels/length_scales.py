"""Kernels with a length scale for each column, and the likelihood that chooses the scales.

    product     k(v, w) = m(sum_j d_j / l_j^2) + b <v, w> / p
    additive    k(v, w) = prod_j (1 + a_j m(d_j / l_j^2)) / (1 + a_j) + b <v, w> / p
    m(s)      = (1 + r + r^2 / 3) exp(-r),      r^2 = 5 s

d_j is the squared distance of v and w in column j, or in block j of columns, and p the number of
these; each is in units of its own variance. m is the Matern kernel with two derivatives. The
additive kernel is a sum over all subsets of columns, in which a_j is how much column j interacts.

The scales l, a, b and the ridge lambda minimise the negative logarithm of the restricted likelihood
of a Gaussian process with these covariances, an unknown mean and an unknown amplitude,

    (n - 1) / 2 log tr(u^T P u) + log |A| / 2 + log(1^T A^-1 1) / 2,
    A = K + lambda I,      P = A^-1 - A^-1 1 1^T A^-1 / 1^T A^-1 1

plus weak penalties of scales that differ from those of a smooth function. Its derivative with
respect to K is P / 2 - (n - 1) / 2 P u u^T P / tr(u^T P u).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .comparison import squared_distances
from .systems import identity_like

PROFILES = ("product", "additive")
LEAST_RIDGE, FIRST_RIDGE = 1e-10, 1e-4
RANGE = {"lengths": (-4.0, 5.0), "ridge": (-12.0, 6.0), "slope": (-5.0, 8.0), "shares": (-5.0, 5.0)}
PENALTIES = {"lengths": 0.05, "ridge": 0.0, "slope": 0.015, "shares": 0.015}
STEPS = 30  # of the optimiser, from the first guess
FURTHER_STEPS = 12  # from scales that are known


class ColumnUnits(NamedTuple):
    """The mean of the examples, and the factor of each column."""

    mean: Float[Tensor, " d"]
    factor: Float[Tensor, " d"]

    def apply(self, v: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """v in these units."""
        return (v - self.mean) * self.factor


class Blocks:
    """Columns in blocks.

    Args:
        sizes: number of columns of each block.
    """

    def __init__(self, sizes: Sequence[int]):
        self.sizes = list(sizes)

    def units(self, v: Float[Tensor, "n d"]) -> ColumnUnits:
        """ColumnUnits in which each block has variance 1, and constant columns are 0."""
        mean = v.mean(0)
        squares = (v - mean).square().mean(0).split(self.sizes)
        spread = torch.cat([s.sum().sqrt().expand(len(s)) for s in squares])
        constant = spread <= 1e-12 * mean.abs()
        return ColumnUnits(mean, torch.where(constant, 0.0, 1 / spread.clamp(min=1e-300)))

    def distances(self, a: Float[Tensor, "m d"], b: Float[Tensor, "n d"]) -> Float[Tensor, "k m n"]:
        """Squared distances in each block."""
        parts = zip(a.split(self.sizes, 1), b.split(self.sizes, 1), strict=True)
        return torch.stack([_squared_distances(p, q) for p, q in parts])


def _squared_distances(p: Float[Tensor, "m s"], q: Float[Tensor, "n s"]) -> Float[Tensor, "m n"]:
    return (p - q.T).square() if p.shape[1] == 1 else squared_distances(p, q)


def names_of(profile: str) -> tuple[str, ...]:
    """The names of the numbers that a kernel has, in order."""
    return ("lengths", "ridge", "slope", "shares")[: 4 if profile == "additive" else 3]


def split_scales(theta: Float[Tensor, " t"], profile: str, blocks: int) -> dict[str, Tensor]:
    """Lengths, ridge, slope and shares from the vector that is optimised, which is 0 for those of
    a smooth function."""
    counts = {"lengths": blocks, "ridge": 1, "slope": 1, "shares": blocks}
    names = names_of(profile)
    parts = dict(zip(names, theta.split([counts[name] for name in names]), strict=True))
    first = math.log(2.0) if profile == "additive" else math.log(2.0 * blocks) / 2
    found = {name: part.exp() for name, part in parts.items()}
    found["lengths"] = found["lengths"] * math.exp(first)
    found["ridge"] = FIRST_RIDGE * found["ridge"] + LEAST_RIDGE
    return found


def covariances(
    scales: dict[str, Tensor], D: Float[Tensor, "k m n"], products: Float[Tensor, "m n"]
) -> Float[Tensor, "m n"]:
    """k of all pairs of points.

    Args:
        scales: as `split_scales` returns them.
        D: squared distances in each block.
        products: inner products.
    """
    weights = scales["lengths"] ** -2
    linear = scales["slope"] * products / len(D)
    if "shares" not in scales:
        return _matern((weights @ D.flatten(1)).view(D.shape[1:])) + linear
    a = scales["shares"][:, None, None]
    each = (1 + a * _matern(weights[:, None, None] * D)) / (1 + a)
    return each.prod(0) + linear


def _matern(s: Tensor) -> Tensor:
    r = (5 * s + 1e-20).sqrt()
    return (1 + r + r * r / 3) * torch.exp(-r)


@torch.inference_mode(False)
def likeliest(
    profile: str,
    D: Float[Tensor, "k n n"],
    products: Float[Tensor, "n n"],
    u: Float[Tensor, "n r"],
    start: Float[Tensor, " t"] | None = None,
) -> Float[Tensor, " t"]:
    """The scales of the largest likelihood, as the vector that `split_scales` takes.

    Args:
        profile: one of `PROFILES`.
        D: squared distances of the examples in each block.
        products: inner products of the examples.
        u: what varies, in coordinates of its own span.
        start: scales to start from; None for those of a smooth function.
    """
    from scipy.optimize import minimize

    D, products, u = (part.detach().cpu().clone() for part in (D, products, u))
    names, blocks = names_of(profile), len(D)
    counts = [blocks if name in ("lengths", "shares") else 1 for name in names]
    bounds = [RANGE[name] for name, count in zip(names, counts, strict=True) for _ in range(count)]
    weights = np.repeat([PENALTIES[name] for name in names], counts)
    u = u / u.square().sum().sqrt().clamp(min=1e-300)

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        with torch.enable_grad():
            theta = torch.from_numpy(x.copy()).requires_grad_()
            scales = split_scales(theta, profile, blocks)
            A = covariances(scales, D, products)
            A = A + scales["ridge"] * identity_like(A)
        found = _likelihood(A.detach(), u)
        if found is None:
            return 1e10, np.zeros_like(x)
        A.backward(found[1])
        assert theta.grad is not None
        penalty, slope = float(weights @ x**2), 2 * weights * x
        return found[0] + penalty, theta.grad.numpy() + slope

    steps = STEPS if start is None else FURTHER_STEPS
    options = {"maxiter": steps, "maxfun": steps + steps // 3}
    first = np.zeros(len(bounds)) if start is None else start.cpu().numpy()
    found = minimize(cost, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return torch.from_numpy(found.x)


def _likelihood(A: Float[Tensor, "n n"], u: Float[Tensor, "n r"]) -> tuple[float, Tensor] | None:
    """The negative logarithm of the likelihood and its derivative with respect to A; None where
    rounding has made A indefinite."""
    L, failed = torch.linalg.cholesky_ex(A)
    if failed:
        return None
    inverse, n = torch.cholesky_inverse(L), len(A)
    sums = inverse.sum(1, keepdim=True)
    P = inverse - sums @ sums.T / sums.sum()
    alpha = P @ u
    q = (u * alpha).sum().clamp(min=1e-300)
    value = (n - 1) / 2 * q.log() + L.diagonal().log().sum() + sums.sum().log() / 2
    if not torch.isfinite(value):
        return None
    return float(value), (P - (n - 1) / q * (alpha @ alpha.T)) / 2
