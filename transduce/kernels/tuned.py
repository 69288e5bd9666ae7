"""Kernel ridge regression whose width and ridge are chosen by leave-one-out error.

    u_hat(v) = c + k(v) alpha,      alpha = (K + 1000 + lambda I)^-1 (u - c)
    r_i = alpha_i / [(K + 1000 + lambda I)^-1]_ii

c is the mean of the examples. The constant 1000 in the kernel keeps the mean inside the fit, so
that an example that is left out is left out of the mean too. One eigendecomposition gives r for
every lambda. Of many examples a part chooses width and ridge, and all are then solved for at once;
beyond `MOST` examples, evenly chosen ones span the answer, and the others only measure its error.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..types import TransduceError
from .metrics import Metric
from .per_task import PerTask, TaskFit

RIDGES = tuple(10.0**k for k in range(-10, 3))
CONSTANT = 1e3
CHOOSERS = 256  # examples that choose width and ridge where there are more
MOST = 2000  # examples that span an answer
WIDTHS = {
    "linear": (1.0,),
    "quadratic": (0.3, 3.0),
    "gaussian": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0),
    "matern": (1.0, 8.0, 64.0, 512.0),
}


@dataclass(frozen=True, kw_only=True)
class TunedFit(TaskFit):
    """What queries need.

    Attributes:
        points: the examples that span the answer, in the metric.
        metric: the metric's own fit.
        unit: the typical square, or squared distance, of these.
        width: in units of `unit`.
        ridge: lambda; one for each direction of u, or the same for all.
        alpha: coefficients.
        mean: c.
    """

    points: Float[Tensor, "k e"]
    metric: tuple[Tensor, ...]
    unit: Float[Tensor, ""]
    width: float
    ridge: Float[Tensor, " r"]
    directions: Float[Tensor, "r q"]
    alpha: Float[Tensor, "k q"]
    mean: Float[Tensor, " q"]


class TunedRidge(PerTask[TunedFit]):
    """Kernel ridge regression tuned by leave-one-out error.

    Args:
        metric: in which functions are compared.
        profile: "linear", "quadratic", "gaussian" or "matern" (smoothness 3/2).
        by_direction: whether each principal direction of u has a ridge of its own.
    """

    def __init__(self, metric: Metric, profile: str, by_direction: bool = False):
        super().__init__()
        if profile not in WIDTHS:
            raise TransduceError(
                f"profile={profile!r}; expected one of {', '.join(WIDTHS)}. Name one of these."
            )
        self.metric, self.profile, self.by_direction = metric, profile, by_direction

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> TunedFit:
        chosen = self.metric.fit(v)
        points = self.metric(chosen, v)
        mean = u.mean(0)
        numbers, directions = in_span(u - mean)
        unit = self._unit(points)
        with torch.no_grad():
            few = evenly(len(v), CHOOSERS)
            width, ridge = self._choose(points[few], numbers[few], unit)
        return self._solve(points, chosen, unit, width, ridge, numbers, directions, mean, u)

    def refit_task(
        self, fit: TunedFit, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]
    ) -> TunedFit:
        """Metric, unit, width and ridge stay."""
        points, mean = self.metric(fit.metric, v), u.mean(0)
        centred = u - mean
        if not self.by_direction:
            numbers, directions = in_span(centred)
            ridge = fit.ridge[:1]
        else:
            directions, ridge = fit.directions, fit.ridge
            numbers = centred @ directions.T
        return self._solve(
            points, fit.metric, fit.unit, fit.width, ridge, numbers, directions, mean, u
        )

    def answer_task(self, fit: TunedFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        K = self._kernel(self.metric(fit.metric, v), fit.points, fit.unit, fit.width)
        return (K + CONSTANT) @ fit.alpha + fit.mean

    def _unit(self, points: Tensor) -> Float[Tensor, ""]:
        """The mean square, or the median squared distance, of the examples."""
        if self.profile in ("linear", "quadratic"):
            return points.square().sum(1).mean().clamp(min=1e-300)
        few = points[evenly(len(points), CHOOSERS)]
        D = squared_distances(few, few)
        off = ~torch.eye(len(D), dtype=torch.bool, device=D.device)
        return D[off].median().clamp(min=1e-300) if len(D) > 1 else D.new_tensor(1.0)

    def _kernel(self, a: Tensor, b: Tensor, unit: Tensor, width: float) -> Float[Tensor, "m n"]:
        if self.profile == "linear":
            return a @ b.T / unit
        if self.profile == "quadratic":
            return (1 + width * (a @ b.T) / unit).square()
        D = squared_distances(a, b) / (width * unit)
        if self.profile == "gaussian":
            return torch.exp(-D)
        r = (3 * D + 1e-30).sqrt()
        return (1 + r) * torch.exp(-r)

    def _choose(self, points: Tensor, numbers: Tensor, unit: Tensor) -> tuple[float, Tensor]:
        """The width and the ridges of least leave-one-out error."""
        found: list[tuple[Tensor, float, Tensor]] = []
        lambdas = torch.tensor(RIDGES, dtype=points.dtype, device=points.device)
        for width in WIDTHS[self.profile]:
            K = self._kernel(points, points, unit, width) + CONSTANT
            w, Q = torch.linalg.eigh(K)
            inverse = 1 / (w.clamp(min=0) + lambdas[:, None])  # (ridges, n)
            alpha = Q @ (inverse[..., None] * (Q.T @ numbers))
            errors = (alpha / (inverse @ Q.T.square())[..., None]).square().sum(1)  # (ridges, r)
            if not self.by_direction:
                errors = errors.sum(1, keepdim=True)
            least, where = errors.min(0)
            found.append((least.sum(), width, lambdas[where]))
        _, width, ridge = min(found, key=lambda one: float(one[0]))
        return width, ridge

    def _solve(
        self,
        points: Tensor,
        chosen: tuple[Tensor, ...],
        unit: Tensor,
        width: float,
        ridge: Tensor,
        numbers: Tensor,
        directions: Tensor,
        mean: Tensor,
        u: Tensor,
    ) -> TunedFit:
        """Solve for the coefficients, with the residuals of all examples."""
        n = len(points)
        kept = evenly(n, MOST)
        K = self._kernel(points[kept], points[kept], unit, width) + CONSTANT
        alpha, residual = ridge_solutions(K, ridge, numbers[kept])
        alpha = alpha @ directions
        if len(kept) < n:
            answers = (self._kernel(points, points[kept], unit, width) + CONSTANT) @ alpha + mean
            residuals = u - answers
            residuals[kept] = residual @ directions
        else:
            residuals = residual @ directions
        if n == 1:
            residuals = u
        return TunedFit(
            residual=residuals,
            points=points[kept],
            metric=chosen,
            unit=unit,
            width=width,
            ridge=ridge,
            directions=directions,
            alpha=alpha,
            mean=mean,
        )


def ridge_solutions(
    K: Float[Tensor, "n n"], ridge: Float[Tensor, " r"], numbers: Float[Tensor, "n r"]
) -> tuple[Float[Tensor, "n r"], Float[Tensor, "n r"]]:
    """Coefficients and leave-one-out residuals, each column with its own ridge or all with one."""
    if len(ridge) == 1:
        A = K + ridge * torch.eye(len(K), dtype=K.dtype, device=K.device)
        P = torch.linalg.inv(A)
        alpha = P @ numbers
        return alpha, alpha / P.diagonal()[:, None]
    w, Q = torch.linalg.eigh(K)
    inverse = 1 / (w.clamp(min=0)[:, None] + ridge)  # (n, r)
    alpha = Q @ (inverse * (Q.T @ numbers))
    return alpha, alpha / (Q.square() @ inverse)


def in_span(u: Float[Tensor, "n q"]) -> tuple[Float[Tensor, "n r"], Float[Tensor, "r q"]]:
    """u = numbers directions, with orthonormal directions by decreasing variance."""
    left, size, directions = torch.linalg.svd(u, full_matrices=False)
    return left * size, directions


def squared_distances(a: Float[Tensor, "m e"], b: Float[Tensor, "n e"]) -> Float[Tensor, "m n"]:
    squares = a.square().sum(1)[:, None] + b.square().sum(1)
    return (squares - 2 * a @ b.T).clamp(min=0)


def evenly(n: int, most: int) -> Tensor:
    """The numbers of at most `most` of n examples, evenly chosen."""
    if n <= most:
        return torch.arange(n)
    return torch.linspace(0, n - 1, most).round().long()
