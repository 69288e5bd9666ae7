"""Kernels with a length scale for each column, and the likelihood that chooses the scales.

    matern      k(v, w) = m(sum_j d_j / l_j^2) + b <v, w> / p,      m(s) = (1 + r + r^2 / 3) exp(-r)
    gaussian    k(v, w) = exp(-sum_j d_j / l_j^2 / 2) + b <v, w> / p
    additive    k(v, w) = prod_j (1 + a_j m(d_j / l_j^2)) / (1 + a_j) + b <v, w> / p

d_j is the squared distance of v and w in column j, or in block j of columns, and p the number of
these; each is in units of its own variance. m is the Matern kernel with two derivatives, r^2 = 5 s.
The additive kernel is a sum over all subsets of columns, in which a_j is how much column j
interacts.

The scales l, a, b and the ridge lambda minimise the negative logarithm of the restricted likelihood
of a Gaussian process with these covariances, an unknown mean and an unknown amplitude,

    (n - 1) / 2 log tr(u^T P u) + log |A| / 2 + log(1^T A^-1 1) / 2,
    A = K + lambda I,      P = A^-1 - A^-1 1 1^T A^-1 / 1^T A^-1 1

plus weak penalties of scales that differ from those of a smooth function. Its derivative with
respect to K is P / 2 - (n - 1) / 2 P u u^T P / tr(u^T P u). The profile has the least of these
plus log(n) / 2 for each of its numbers.
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

PROFILES = ("matern", "gaussian", "additive")
LEAST_RIDGE, FIRST_RIDGE = 1e-10, 1e-4
RANGE = {"lengths": (-4.0, 5.0), "ridge": (-12.0, 6.0), "slope": (-5.0, 8.0), "shares": (-5.0, 5.0)}
PENALTIES = {"lengths": 0.05, "ridge": 0.0, "slope": 0.015, "shares": 0.015}
STEPS = 30  # of the optimiser, from the first guess
FURTHER_STEPS = 12  # from scales that are known


class LengthScales(NamedTuple):
    """A kernel.

    Attributes:
        profile: one of `PROFILES`.
        theta: the logarithms of its numbers, less those of a smooth function.
    """

    profile: str
    theta: Float[Tensor, " t"]

    def kernel(
        self, D: Float[Tensor, "k m n"], products: Float[Tensor, "m n"]
    ) -> Float[Tensor, "m n"]:
        """k of all pairs of points.

        Args:
            D: squared distances in each block.
            products: inner products.
        """
        return covariances(self.profile, self.numbers(len(D)), D, products)

    def ridge(self, blocks: int) -> float:
        """lambda."""
        return float(self.numbers(blocks)["ridge"])

    def numbers(self, blocks: int) -> dict[str, Tensor]:
        """Lengths, ridge, slope and, of the additive kernel, shares."""
        return split_scales(self.theta, self.profile, blocks)


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


def _counts(profile: str, blocks: int) -> dict[str, int]:
    """How many numbers of each kind a kernel has, in order."""
    counts = {"lengths": blocks, "ridge": 1, "slope": 1}
    return counts | {"shares": blocks} if profile == "additive" else counts


def split_scales(theta: Float[Tensor, " t"], profile: str, blocks: int) -> dict[str, Tensor]:
    """Lengths, ridge, slope and shares from theta of `LengthScales`."""
    counts = _counts(profile, blocks)
    parts = dict(zip(counts, theta.split(list(counts.values())), strict=True))
    first = math.log(2.0) if profile == "additive" else math.log(2.0 * blocks) / 2
    found = {name: part.exp() for name, part in parts.items()}
    found["lengths"] = found["lengths"] * math.exp(first)
    found["ridge"] = FIRST_RIDGE * found["ridge"] + LEAST_RIDGE
    return found


def covariances(
    profile: str,
    numbers: dict[str, Tensor],
    D: Float[Tensor, "k m n"],
    products: Float[Tensor, "m n"],
) -> Float[Tensor, "m n"]:
    """k of all pairs of points, from numbers as `split_scales` returns them."""
    weights = numbers["lengths"] ** -2
    linear = numbers["slope"] * products / len(D)
    if profile != "additive":
        s = (weights @ D.flatten(1)).view(D.shape[1:])
        return (_matern(s) if profile == "matern" else torch.exp(-s / 2)) + linear
    a = numbers["shares"][:, None, None]
    each = (1 + a * _matern(weights[:, None, None] * D)) / (1 + a)
    return each.prod(0) + linear


def _matern(s: Tensor) -> Tensor:
    r = (5 * s + 1e-20).sqrt()
    return (1 + r + r * r / 3) * torch.exp(-r)


def likeliest(
    D: Float[Tensor, "k n n"], products: Float[Tensor, "n n"], u: Float[Tensor, "n r"]
) -> LengthScales:
    """The kernel of the largest likelihood, less a penalty of its numbers.

    Args:
        D: squared distances of the examples in each block.
        products: inner products of the examples.
        u: what varies, in coordinates of its own span.
    """
    costs, found = [], dict[str, LengthScales]()
    for profile in PROFILES:
        start = found["matern"] if profile == "gaussian" else None
        first = LengthScales(profile, start.theta if start else _smooth(profile, len(D)))
        steps = FURTHER_STEPS if start else STEPS
        found[profile], cost = _optimised(first, D, products, u, steps)
        costs.append(cost + len(first.theta) * math.log(len(u)) / 2)
    return found[PROFILES[int(np.argmin(costs))]]


def adapted(
    start: LengthScales,
    D: Float[Tensor, "k n n"],
    products: Float[Tensor, "n n"],
    u: Float[Tensor, "n r"],
) -> LengthScales:
    """The kernel of the largest likelihood near another one, of the same profile."""
    return _optimised(start, D, products, u, FURTHER_STEPS)[0]


def _smooth(profile: str, blocks: int) -> Float[Tensor, " t"]:
    """theta of a smooth function."""
    return torch.zeros(sum(_counts(profile, blocks).values()), dtype=torch.float64)


@torch.inference_mode(False)
def _optimised(
    start: LengthScales, D: Tensor, products: Tensor, u: Tensor, steps: int
) -> tuple[LengthScales, float]:
    """A few steps towards the largest likelihood, and its negative logarithm with penalties."""
    from scipy.optimize import minimize

    D, products, u = (part.detach().cpu().clone() for part in (D, products, u))
    profile, blocks = start.profile, len(D)
    counts = _counts(profile, blocks)
    bounds = [RANGE[name] for name, count in counts.items() for _ in range(count)]
    weights = np.repeat([PENALTIES[name] for name in counts], list(counts.values()))
    u = u / u.square().sum().sqrt().clamp(min=1e-300)

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        numbers = split_scales(torch.from_numpy(x), profile, blocks)
        K = covariances(profile, numbers, D, products)
        found = _likelihood(K + numbers["ridge"] * identity_like(K), u)
        if found is None:
            return 1e10, np.zeros_like(x)
        penalty, slope = float(weights @ x**2), 2 * weights * x
        return found[0] + penalty, slopes_of(profile, numbers, D, products, K, found[1]) + slope

    options = {"maxiter": steps, "maxfun": steps + steps // 3}
    first = start.theta.cpu().numpy()
    found = minimize(cost, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return LengthScales(profile, torch.from_numpy(found.x)), float(found.fun)


def slopes_of(
    profile: str,
    numbers: dict[str, Tensor],
    D: Float[Tensor, "k n n"],
    products: Float[Tensor, "n n"],
    K: Float[Tensor, "n n"],
    G: Float[Tensor, "n n"],
) -> Float[np.ndarray, " t"]:
    """The derivative of a number with respect to theta.

    Args:
        profile: of the kernel.
        numbers: of the kernel, from `split_scales`.
        D: squared distances in each block.
        products: inner products.
        K: the kernel, from `covariances`.
        G: derivative of the number with respect to K and to the matrix of the ridge.
    """
    weights = numbers["lengths"] ** -2
    linear = numbers["slope"] * products / len(D)
    k = K - linear
    of_shares = weights[:0]
    if profile == "additive":
        a, s = numbers["shares"], weights[:, None, None] * D
        m = _matern(s)
        part = G * k / (1 + a[:, None, None] * m)
        of_lengths = -2 * a * (part * m * _relative_slope(s) * s).sum((1, 2))
        of_shares = a * ((part * m).sum((1, 2)) - (G * k).sum() / (1 + a))
    else:
        s = (weights @ D.flatten(1)).view_as(K)
        slope = -k / 2 if profile == "gaussian" else k * _relative_slope(s)
        of_lengths = -2 * weights * (D.flatten(1) @ (G * slope).flatten())
    of_ridge = (numbers["ridge"] - LEAST_RIDGE) * G.trace()
    of_slope = (G * linear).sum()
    parts = [of_lengths, of_ridge.view(1), of_slope.view(1), of_shares]
    found: np.ndarray = torch.cat(parts).numpy()
    return found


def _relative_slope(s: Tensor) -> Tensor:
    """The derivative of `_matern` in units of its value."""
    r = (5 * s + 1e-20).sqrt()
    return -5 / 6 * (1 + r) / (1 + r + r * r / 3)


def _likelihood(A: Float[Tensor, "n n"], u: Float[Tensor, "n r"]) -> tuple[float, Tensor] | None:
    """The negative logarithm of the likelihood and its derivative with respect to A; None where
    rounding has made A indefinite."""
    from scipy.linalg.lapack import dpotrf, dpotri

    L, failed = dpotrf(A.numpy(), lower=1)
    if failed:
        return None
    half = torch.from_numpy(dpotri(L, lower=1)[0]).tril()
    inverse, n = half + half.tril(-1).mT, len(A)
    sums = inverse.sum(1, keepdim=True)
    P = inverse - sums @ sums.mT / sums.sum()
    alpha = P @ u
    q = (u * alpha).sum().clamp(min=1e-300)
    value = (n - 1) / 2 * q.log() + np.log(L.diagonal()).sum() + sums.sum().log() / 2
    if not torch.isfinite(value):
        return None
    return float(value), (P - (n - 1) / q * (alpha @ alpha.mT)) / 2
