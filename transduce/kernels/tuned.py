"""Kernel ridge regression whose width and ridge are chosen by leave-one-out error.

    u_hat(v) = k(v) alpha + c,      alpha = P u,        r_i = alpha_i / P_ii
    P = B (B^T K B + lambda I)^-1 B^T

c is an intercept without a ridge, and B an orthonormal basis of what sums to zero over examples: an
example that is left out is left out of the intercept too. One eigendecomposition of B^T K B gives P
for every lambda. An example that is left out takes no part in the choice of its width and ridge:
its residual is that of the choice by the errors of the others. Of many examples a part chooses,
once for all; a part that is at least three times as large compares that choice with its neighbours;
then all are solved for at once. Beyond `MOST` examples, evenly chosen ones span the answer, and the
others only measure its error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from .comparison import Compared, Comparison, centred_spectrum, evenly, without_each
from .per_task import BatchFit, PerTask, TaskFit
from .posterior import Posterior
from .systems import identity_like

RIDGES = tuple(10.0**k for k in range(-10, 3))
MOST = 1000  # examples that span an answer
REFINERS, REFINEMENTS = 256, 3  # examples that compare a choice with its neighbours, and steps
NEIGHBOURS = tuple((w, r) for w in (-1, 0, 1) for r in (-1, 0, 1))  # in width and ridge
PART = 512  # examples beyond these that are answered at once
REFINED = 1e-5  # ridges below which a solution is refined once
NEGLIGIBLE = 1e-16  # share of the variation in a direction that no likelihood depends on
DIRECT = 48  # examples up to which the eigendecomposition is solved with


Spectrum = tuple[Tensor, Tensor]
"""Eigenvalues and eigenvectors."""


@dataclass(frozen=True)
class Choice:
    """What a fit chooses.

    Attributes:
        metric: the metric's own fit.
        unit: the unit of squares or squared distances.
        width: of the kernel in this unit.
        ridge: lambda.
    """

    metric: tuple[Tensor, ...]
    unit: Float[Tensor, ""]
    width: float
    ridge: float


@dataclass(frozen=True, kw_only=True)
class TunedFit(TaskFit):
    """What queries need.

    Attributes:
        choice: of metric, width and ridge.
        points: the examples that span the answer, in the metric.
        alpha: their coefficients.
        intercept: c.
    """

    choice: Choice
    points: Float[Tensor, "k e"]
    alpha: Float[Tensor, "k q"]
    intercept: Float[Tensor, " q"]


class TunedRidge(PerTask[TunedFit]):
    """Kernel ridge regression tuned by leave-one-out error.

    Args:
        comparison: the kernel.
    """

    def __init__(self, comparison: Comparison):
        super().__init__()
        self.comparison = comparison
        self.ridges = tuple(ridge for ridge in RIDGES if ridge >= comparison.least_ridge)

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> TunedFit:
        compared = self.comparison.of(v)
        few = compared.choosers
        with torch.no_grad():
            errors = self._errors(compared, rotated(u[few] - u.mean(0)))
        best, others = chosen(errors)
        if len(few) < len(u):
            best, others = self._refined(compared, u, best), []
        fits = {k: self._solve_chosen(compared, u, k) for k in {best, *others}}
        if len(fits) == 1:
            return fits[best]
        rows = [fits[k].residual[i] for i, k in enumerate(others)]
        return replace(fits[best], residual=torch.stack(rows))

    def refit_task(
        self, fit: TunedFit, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]
    ) -> TunedFit:
        """Metric, unit, width and ridge stay."""
        return self._solve(self.comparison.metric(fit.choice.metric, v), u, fit.choice)

    def answer_task(self, fit: TunedFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        points = self.comparison.metric(fit.choice.metric, v)
        return self._kernel(points, fit.points, fit.choice) @ fit.alpha + fit.intercept

    def posteriors(self, fit: BatchFit) -> list[tuple[float, Posterior]]:
        task = cast(TunedFit, fit.tasks[0])
        kernel = partial(self._kernel, choice=task.choice)
        embed = partial(self.comparison.metric, task.choice.metric)
        return [(1.0, Posterior.of(embed, kernel, task.points, task.choice.ridge, task.alpha))]

    def _kernel(self, a: Tensor, b: Tensor, choice: Choice) -> Float[Tensor, "m n"]:
        return self.comparison.kernel(a, b, choice.unit, choice.width)

    def _refined(self, compared: Compared, u: Tensor, number: int) -> int:
        """The choice to which steps of less leave-one-out error lead, from the one with this
        number; more examples than have chosen that one compare them."""
        rows = evenly(len(u), REFINERS)
        if len(rows) < 3 * len(compared.choosers):
            return number
        points = compared.points[rows].detach()
        numbers = rotated(u[rows].detach() - u[rows].detach().mean(0))

        @cache
        def error(width: int, ridge: int) -> float:
            if not (0 <= width < len(self.comparison.widths) and 0 <= ridge < len(self.ridges)):
                return math.inf
            K = self.comparison.kernel(
                points, points, compared.unit.detach(), self.comparison.widths[width]
            )
            return float(ridge_solutions(K, self.ridges[ridge], numbers)[1].square().sum())

        here = divmod(number, len(self.ridges))
        for _ in range(REFINEMENTS):
            near = [(here[0] + w, here[1] + r) for w, r in NEIGHBOURS]
            best = min((here, *near), key=lambda choice: error(*choice))
            if best == here:
                break
            here = best
        return here[0] * len(self.ridges) + here[1]

    def _solve_chosen(self, compared: Compared, u: Tensor, number: int) -> TunedFit:
        """The fit with the width and ridge of a number among those of `_errors`."""
        which, place = divmod(number, len(self.ridges))
        width = self.comparison.widths[which]
        choice = Choice(compared.metric, compared.unit, width, self.ridges[place])
        return self._solve(compared.points, u, choice, self._known(compared, width))

    def _known(self, compared: Compared, width: float) -> Spectrum | None:
        """The spectrum of the kernel matrix, if all examples have chosen and need no gradients."""
        if len(compared.choosers) < len(compared.v) or compared.v.requires_grad:
            return None
        which = self.comparison.widths.index(width)
        values, vectors = compared.spectra
        return values[which], vectors[which]

    def _errors(self, compared: Compared, numbers: Float[Tensor, "s r"]) -> Float[Tensor, "c s"]:
        """The squared leave-one-out error of each chooser for each width and ridge."""
        values, vectors = compared.spectra
        if values.shape[-1] == 0:
            return values.new_zeros(1, 1)
        ridges = torch.tensor(self.ridges, dtype=values.dtype, device=values.device)
        inverse = 1 / (values[:, None] + ridges[:, None])[..., None]  # (w, ridges, k, 1)
        alpha = vectors[:, None] @ (inverse * (vectors.mT @ numbers)[:, None])
        diagonal = vectors.square()[:, None] @ inverse
        return (alpha / diagonal).square().sum(3).flatten(0, 1)

    def _solve(
        self,
        points: Float[Tensor, "n e"],
        u: Tensor,
        choice: Choice,
        known: Spectrum | None = None,
    ) -> TunedFit:
        """Solve for the coefficients, with the residuals of all examples."""
        n = len(points)
        kept = evenly(n, MOST)
        mean = u[kept].mean(0)
        K = self._kernel(points[kept], points[kept], choice)
        alpha, residual = ridge_solutions(K, choice.ridge, u[kept] - mean, known)
        intercept = mean - (K @ alpha).mean(0)
        if len(kept) < n:
            parts = [self._kernel(p, points[kept], choice) @ alpha for p in points.split(PART)]
            residual = (u - torch.cat(parts) - intercept).index_copy(0, kept.to(u.device), residual)
        return TunedFit(
            residual=residual if n > 1 else u,
            choice=choice,
            points=points[kept],
            alpha=alpha,
            intercept=intercept,
        )


def ridge_solutions(
    K: Float[Tensor, "n n"],
    ridge: float,
    numbers: Float[Tensor, "n r"],
    known: Spectrum | None = None,
) -> tuple[Float[Tensor, "n r"], Float[Tensor, "n r"]]:
    """Coefficients and leave-one-out residuals. Eigenvectors of equal eigenvalues have no
    derivative: with gradients, systems are inverted.

    Args:
        K: the kernel of all pairs of examples.
        ridge: lambda.
        numbers: what is regressed.
        known: the centred spectrum of K; None to compute it.
    """
    n = len(K)
    if n == 1:
        return torch.zeros_like(numbers), numbers
    if K.requires_grad or n > DIRECT:
        P = inverse_of(K + ridge * identity_like(K))
        sums = P.sum(1, keepdim=True)
        P = P - sums @ sums.mT / sums.sum()
        alpha = P @ numbers
        if ridge < REFINED:  # an explicit inverse has lost digits
            alpha = alpha + P @ (numbers - K @ alpha - ridge * alpha)
        return alpha, alpha / P.diagonal()[:, None]
    values, vectors = centred_spectrum(K) if known is None else known
    inverse = 1 / (values + ridge)[:, None]
    alpha = vectors @ (inverse * (vectors.T @ numbers))
    return alpha, alpha / (vectors.square() @ inverse)


def inverse_of(A: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """The inverse by Cholesky, or by elimination where rounding has made A indefinite."""
    L, failed = torch.linalg.cholesky_ex(A)
    return torch.linalg.inv(A) if failed else torch.cholesky_inverse(L)


def rotated(u: Float[Tensor, "n q"]) -> Float[Tensor, "n r"]:
    """u in coordinates of its own span: shorter rows with the same inner products."""
    return u if u.shape[1] <= len(u) else torch.linalg.qr(u.T, mode="r").R.T


def condensed(f: Float[Tensor, "n q"]) -> Float[Tensor, "n r"]:
    """Functions in coordinates of their own span, without directions that are only rounding."""
    if f.shape[1] == 1:
        return f
    left, sizes, _ = torch.linalg.svd(rotated(f), full_matrices=False)
    squares = sizes.square()
    count = max(1, int((squares > NEGLIGIBLE * squares.sum()).sum()))
    return left[:, :count] * sizes[:count]


def chosen(errors: Float[Tensor, "c s"]) -> tuple[int, list[int]]:
    """The number of the choice of least error, and of that by all examples but one, for each."""
    return int(errors.sum(1).argmin()), without_each(errors).argmin(0).tolist()
