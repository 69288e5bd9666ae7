"""How functions are compared: a metric and a profile, and their kernel matrices on the examples.

    linear      k(v, w) = <v, w> / s
    gaussian    k(v, w) = exp(-|v - w|^2 / (a s))
    matern      k(v, w) = (1 + r) exp(-r),      r^2 = 3 |v - w|^2 / (a s)
    powers      k(v, w) = sum_p a^(2p - 2) mean_j (v_j w_j d / s)^p,            p = 1..6
    products of powers      (1 + c k)^2 / c     of that k

s is the mean square, or the median squared distance, of the examples, and a one of a few widths.
Functions have d coordinates v_j. Ridge regression with powers is linear in v, v^2, ..., v^6 at each
point: the first terms of an operator whose nonlinearity is local, such as a reaction or advection.
Several kernels of a model compare functions alike and share one object, which keeps the
eigendecompositions for the examples that it saw last.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..configs import Part
from ..types import TransduceError
from .metrics import Metric

CHOOSERS = 48  # examples that choose width and ridge where there are more
WIDTHS = {
    "linear": (1.0,),
    "gaussian": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0),
    "matern": (1.0, 8.0, 64.0, 512.0),
    "powers": (0.1, 0.3, 1.0),
    "products of powers": (0.1, 0.3, 1.0),
}
LEAST_RIDGES = {"powers": 1e-8, "products of powers": 1e-8}  # leave-one-out misleads below
DEGREE = 6  # highest power of a value
BEYOND = 1.3  # the largest value whose powers are taken, in units of the examples' largest
PRODUCT = 0.01  # share of the products of powers


@dataclass(frozen=True)
class Compared:
    """Examples in a metric.

    Attributes:
        v: the examples.
        metric: the metric's own fit to them.
        points: the examples in coordinates of the metric.
        unit: s.
        choosers: the numbers of the examples that choose.
        spectra: for each width, eigenvalues and eigenvectors of the choosers' kernel matrix that
            are orthogonal to constants.
    """

    v: Float[Tensor, "n d"]
    metric: tuple[Tensor, ...]
    points: Float[Tensor, "n e"]
    unit: Float[Tensor, ""]
    choosers: Tensor
    spectra: tuple[Float[Tensor, "w k"], Float[Tensor, "w s k"]]


class Comparison(Part):
    """A metric with a profile.

    Args:
        metric: in which functions are compared.
        profile: one of `WIDTHS`.
    """

    def __init__(self, metric: Metric, profile: str):
        super().__init__()
        if profile not in WIDTHS:
            raise TransduceError(
                f"profile={profile!r}; expected one of {', '.join(WIDTHS)}. Name one of these."
            )
        self.metric, self.profile = metric, profile
        self._last: Compared | None = None

    @property
    def widths(self) -> tuple[float, ...]:
        return WIDTHS[self.profile]

    @property
    def least_ridge(self) -> float:
        """The smallest ridge to choose from."""
        return LEAST_RIDGES.get(self.profile, 0.0)

    def of(self, v: Float[Tensor, "n d"]) -> Compared:
        """The examples in the metric, with the spectra of their kernel matrices."""
        last = self._last
        if last is not None and not v.requires_grad and torch.equal(last.v, v):
            return last
        chosen = self.metric.fit(v)
        points = self.metric(chosen, v)
        few = evenly(len(v), CHOOSERS)
        unit = self._unit(points[evenly(len(v), 4 * CHOOSERS)])
        with torch.no_grad():
            chooser = points[few]
            kernels = [self.kernel(chooser, chooser, unit, width) for width in self.widths]
            spectra = centred_spectrum(torch.stack(kernels))
        found = Compared(v, chosen, points, unit, few, spectra)
        if not v.requires_grad:
            self._last = found
        return found

    def kernel(
        self,
        a: Float[Tensor, "m e"],
        b: Float[Tensor, "n e"],
        unit: Float[Tensor, ""],
        width: float,
    ) -> Float[Tensor, "m n"]:
        """k of all pairs."""
        if self.profile == "linear":
            return a @ b.T / unit
        if self.profile == "powers":
            return _powers(a, b, unit, width)
        if self.profile == "products of powers":
            return (1 + PRODUCT * _powers(a, b, unit, width)).square() / PRODUCT
        D = squared_distances(a, b) / (width * unit)
        if self.profile == "gaussian":
            return torch.exp(-D)
        r = (3 * D + 1e-30).sqrt()
        return (1 + r) * torch.exp(-r)

    def _unit(self, points: Float[Tensor, "n e"]) -> Float[Tensor, ""]:
        """The mean square, or the median squared distance."""
        if self.profile not in ("gaussian", "matern"):
            return points.square().sum(1).mean().clamp(min=1e-300)
        D = squared_distances(points, points)
        off = ~torch.eye(len(D), dtype=torch.bool, device=D.device)
        return D[off].median().clamp(min=1e-300) if len(D) > 1 else D.new_tensor(1.0)


def _powers(
    a: Float[Tensor, "m e"], b: Float[Tensor, "n e"], unit: Float[Tensor, ""], width: float
) -> Float[Tensor, "m n"]:
    """The sum over degrees of inner products of powers. Beyond the largest b, powers of a do not
    grow: answers then extrapolate linearly."""
    scale = width * (a.shape[1] / unit).sqrt()
    K, largest = a @ b.T * scale**2, BEYOND * b.abs().max(0).values
    a, b = torch.minimum(torch.maximum(a, -largest), largest) * scale, b * scale
    p, q = a, b
    for _ in range(DEGREE - 1):
        p, q = p * a, q * b
        K = K + p @ q.T
    return K / (width**2 * a.shape[1])


def squared_distances(a: Float[Tensor, "m e"], b: Float[Tensor, "n e"]) -> Float[Tensor, "m n"]:
    squares = a.square().sum(1)[:, None] + b.square().sum(1)
    return (squares - 2 * a @ b.T).clamp(min=0)


def centred_spectrum(
    K: Float[Tensor, "*w n n"],
) -> tuple[Float[Tensor, "*w k"], Float[Tensor, "*w n k"]]:
    """The n - 1 eigenvalues and eigenvectors of kernel matrices that are orthogonal to constants:
    those of B^T K B, with B an orthonormal basis of what sums to zero."""
    B = contrasts(K.shape[-1]).to(K)
    values, vectors = torch.linalg.eigh(B.T @ K @ B)
    return values.clamp(min=0), B @ vectors


def contrasts(n: int) -> Float[Tensor, "n k"]:
    """An orthonormal basis of the vectors that sum to zero (Helmert's)."""
    k = torch.arange(1, n, dtype=torch.float64)
    rows = torch.arange(n, dtype=torch.float64)[:, None]
    B = torch.where(rows < k, 1.0, torch.where(rows == k, -k, 0.0))
    return B / (k * (k + 1)).sqrt()


def without_each(errors: Float[Tensor, "*c n"]) -> Float[Tensor, "*c n"]:
    """The sum of all but one along the last axis, for each: without subtraction, so that one large
    value does not take the digits of the others."""
    zero = torch.zeros_like(errors[..., :1])
    before = torch.cat([zero, errors[..., :-1].cumsum(-1)], -1)
    after = torch.cat([errors[..., 1:].flip(-1).cumsum(-1).flip(-1), zero], -1)
    return before + after


def evenly(n: int, most: int) -> Tensor:
    """The numbers of at most `most` of n examples, evenly chosen."""
    if n <= most:
        return torch.arange(n)
    return torch.linspace(0, n - 1, most).round().long()
