"""Kernel ridge regression whose width and ridge are chosen by leave-one-out error.

    u_hat(v) = c + (k(v) + 1000) alpha,      alpha = (K + 1000 + lambda I)^-1 (u - c)
    r_i = alpha_i / [(K + 1000 + lambda I)^-1]_ii

c is the mean of the examples. The constant 1000 keeps the mean inside the fit, so that an example
that is left out is left out of the mean too. One eigendecomposition gives r for every lambda. Of
many examples a part chooses width and ridge; then all are solved for at once. Beyond `MOST`
examples, evenly chosen ones span the answer, and the others only measure its error.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .comparison import CONSTANT, Compared, Comparison, evenly
from .per_task import PerTask, TaskFit

RIDGES = tuple(10.0**k for k in range(-10, 3))
MOST = 1000  # examples that span an answer


@dataclass(frozen=True)
class Choice:
    """What a fit chooses.

    Attributes:
        metric: the metric's own fit.
        unit: the unit of squares or squared distances.
        width: of the kernel in this unit.
        directions: of u, orthonormal.
        ridge: lambda of each direction, or one for all.
    """

    metric: tuple[Tensor, ...]
    unit: Float[Tensor, ""]
    width: float
    directions: Float[Tensor, "r q"]
    ridge: Float[Tensor, " k"]


@dataclass(frozen=True, kw_only=True)
class TunedFit(TaskFit):
    """What queries need.

    Attributes:
        choice: of metric, width and ridge.
        points: the examples that span the answer, in the metric.
        alpha: their coefficients.
        mean: c.
    """

    choice: Choice
    points: Float[Tensor, "k e"]
    alpha: Float[Tensor, "k q"]
    mean: Float[Tensor, " q"]


class TunedRidge(PerTask[TunedFit]):
    """Kernel ridge regression tuned by leave-one-out error.

    Args:
        comparison: the kernel.
        by_direction: whether each principal direction of u has a ridge of its own.
    """

    def __init__(self, comparison: Comparison, by_direction: bool = False):
        super().__init__()
        self.comparison, self.by_direction = comparison, by_direction

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> TunedFit:
        compared = self.comparison.of(v)
        numbers, directions = in_span(u - u.mean(0))
        with torch.no_grad():
            width, ridge = self._choose(compared, numbers[compared.choosers])
        choice = Choice(compared.metric, compared.unit, width, directions, ridge)
        return self._solve(compared.points, u, choice)

    def refit_task(
        self, fit: TunedFit, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]
    ) -> TunedFit:
        """Metric, unit, width and ridge stay."""
        choice = fit.choice
        if not self.by_direction:
            directions = in_span(u - u.mean(0))[1]
            choice = Choice(choice.metric, choice.unit, choice.width, directions, choice.ridge)
        return self._solve(self.comparison.metric(choice.metric, v), u, choice)

    def answer_task(self, fit: TunedFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        points = self.comparison.metric(fit.choice.metric, v)
        return self._kernel(points, fit.points, fit.choice) @ fit.alpha + fit.mean

    def _kernel(self, a: Tensor, b: Tensor, choice: Choice) -> Float[Tensor, "m n"]:
        return self.comparison.kernel(a, b, choice.unit, choice.width) + CONSTANT

    def _choose(self, compared: Compared, numbers: Tensor) -> tuple[float, Tensor]:
        """The width and the ridges of least leave-one-out error."""
        values, vectors = compared.spectra
        lambdas = torch.tensor(RIDGES, dtype=values.dtype, device=values.device)
        inverse = 1 / (values[:, None] + lambdas[:, None])  # (w, ridges, n)
        alpha = vectors[:, None] @ (inverse[..., None] * (vectors.mT @ numbers)[:, None])
        diagonal = inverse @ vectors.mT.square()
        errors = (alpha / diagonal[..., None]).square().sum(2)  # (w, ridges, r)
        if not self.by_direction:
            errors = errors.sum(-1, keepdim=True)
        least, where = errors.min(1)
        best = int(least.sum(-1).argmin())
        return self.comparison.widths[best], lambdas[where[best]]

    def _solve(self, points: Float[Tensor, "n e"], u: Tensor, choice: Choice) -> TunedFit:
        """Solve for the coefficients, with the residuals of all examples."""
        n, mean, D = len(points), u.mean(0), choice.directions
        kept = evenly(n, MOST)
        K = self._kernel(points[kept], points[kept], choice)
        alpha, residual = ridge_solutions(K, choice.ridge, (u[kept] - mean) @ D.T)
        alpha, residual = alpha @ D, residual @ D
        if len(kept) < n:
            answers = self._kernel(points, points[kept], choice) @ alpha + mean
            residual = (u - answers).index_copy(0, kept, residual)
        return TunedFit(
            residual=residual if n > 1 else u,
            choice=choice,
            points=points[kept],
            alpha=alpha,
            mean=mean,
        )


def ridge_solutions(
    K: Float[Tensor, "n n"], ridge: Float[Tensor, " k"], numbers: Float[Tensor, "n r"]
) -> tuple[Float[Tensor, "n r"], Float[Tensor, "n r"]]:
    """Coefficients and leave-one-out residuals, each column with its own ridge or all with one."""
    if len(ridge) == 1:
        identity = torch.eye(len(K), dtype=K.dtype, device=K.device)
        P = torch.linalg.inv(K + ridge * identity)
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
