"""Kernel ridge regression whose width and ridge are chosen by leave-one-out error.

    u_hat(v) = k(v) alpha + c,      alpha = P u,        r_i = alpha_i / P_ii
    P = B (B^T K B + lambda I)^-1 B^T

c is an intercept without a ridge, and B an orthonormal basis of what sums to zero over examples: an
example that is left out is left out of the intercept too. One eigendecomposition of B^T K B gives P
for every lambda. Of many examples a part chooses width and ridge; then all are solved for at once.
Beyond `MOST` examples, evenly chosen ones span the answer, and the others only measure its error.

With `by_direction`, principal direction r of u has the ridge lambda s_1 / s_r, s_r being its
standard deviation: directions that vary little carry more noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .comparison import Compared, Comparison, centred_spectrum, evenly
from .per_task import PerTask, TaskFit
from .systems import identity_like

RIDGES = tuple(10.0**k for k in range(-10, 3))
MOST = 1000  # examples that span an answer
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
        directions: of u, orthonormal; None if all have the same ridge.
        factors: of the ridge of each direction.
    """

    metric: tuple[Tensor, ...]
    unit: Float[Tensor, ""]
    width: float
    ridge: float
    directions: Float[Tensor, "r q"] | None
    factors: Float[Tensor, " r"]


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
        by_direction: whether each principal direction of u has a ridge of its own.
    """

    def __init__(self, comparison: Comparison, by_direction: bool = False):
        super().__init__()
        self.comparison, self.by_direction = comparison, by_direction

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> TunedFit:
        compared = self.comparison.of(v)
        few = compared.choosers
        with torch.no_grad():
            centred = u - u.mean(0)
            directions, factors = self._directions(centred)
            numbers = rotated(centred[few]) if directions is None else centred[few] @ directions.T
            width, ridge = self._choose(compared, numbers, factors)
        choice = Choice(compared.metric, compared.unit, width, ridge, directions, factors)
        return self._solve(compared.points, u, choice, self._known(compared, width))

    def refit_task(
        self, fit: TunedFit, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]
    ) -> TunedFit:
        """Metric, unit, width, ridge and directions stay."""
        return self._solve(self.comparison.metric(fit.choice.metric, v), u, fit.choice)

    def answer_task(self, fit: TunedFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        points = self.comparison.metric(fit.choice.metric, v)
        return self._kernel(points, fit.points, fit.choice) @ fit.alpha + fit.intercept

    def _kernel(self, a: Tensor, b: Tensor, choice: Choice) -> Float[Tensor, "m n"]:
        return self.comparison.kernel(a, b, choice.unit, choice.width)

    def _known(self, compared: Compared, width: float) -> Spectrum | None:
        """The spectrum of the kernel matrix, if all examples have chosen and need no gradients."""
        if len(compared.choosers) < len(compared.v) or compared.v.requires_grad:
            return None
        which = self.comparison.widths.index(width)
        values, vectors = compared.spectra
        return values[which], vectors[which]

    def _directions(self, u: Float[Tensor, "n q"]) -> tuple[Tensor | None, Float[Tensor, " r"]]:
        """The directions of u, if these have ridges of their own, and the factors of the ridges."""
        if not self.by_direction:
            return None, u.new_ones(1)
        _, size, directions = torch.linalg.svd(u, full_matrices=False)
        least = 1e-9 * size[0] + 1e-300
        return directions, (size[0] / size.clamp(min=least)).clamp(1, 1e9)

    def _choose(self, compared: Compared, numbers: Tensor, factors: Tensor) -> tuple[float, float]:
        """The width and the ridge of least leave-one-out error."""
        values, vectors = compared.spectra
        if values.shape[-1] == 0:
            return self.comparison.widths[0], 1.0
        lambdas = torch.tensor(RIDGES, dtype=values.dtype, device=values.device)
        ridges = lambdas[:, None] * factors
        inverse = 1 / (values[:, None, :, None] + ridges[:, None])  # (w, ridges, k, r)
        alpha = vectors[:, None] @ (inverse * (vectors.mT @ numbers)[:, None])
        diagonal = vectors.square()[:, None] @ inverse
        errors = (alpha / diagonal).square().sum((2, 3))  # (w, ridges)
        best = int(errors.argmin())
        return self.comparison.widths[best // len(RIDGES)], RIDGES[best % len(RIDGES)]

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
        centred, ridges, D = u[kept] - mean, choice.ridge * choice.factors, choice.directions
        if D is None:
            alpha, residual = ridge_solutions(K, ridges, centred, known)
        else:
            found = ridge_solutions(K, ridges, centred @ D.T, known)
            alpha, residual = (part @ D for part in found)
        intercept = mean - (K @ alpha).mean(0)
        if len(kept) < n:
            answers = self._kernel(points, points[kept], choice) @ alpha + intercept
            residual = (u - answers).index_copy(0, kept, residual)
        return TunedFit(
            residual=residual if n > 1 else u,
            choice=choice,
            points=points[kept],
            alpha=alpha,
            intercept=intercept,
        )


def ridge_solutions(
    K: Float[Tensor, "n n"],
    ridges: Float[Tensor, " k"],
    numbers: Float[Tensor, "n r"],
    known: Spectrum | None = None,
) -> tuple[Float[Tensor, "n r"], Float[Tensor, "n r"]]:
    """Coefficients and leave-one-out residuals, each column with its own ridge or all with one.
    Eigenvectors of equal eigenvalues have no derivative: with gradients, systems are inverted.
    known: the centred spectrum of K, if it is."""
    n = len(K)
    if n == 1:
        return torch.zeros_like(numbers), numbers
    if K.requires_grad or (len(ridges) == 1 and n > DIRECT):
        P = torch.linalg.inv(K + ridges[:, None, None] * identity_like(K))
        sums = P.sum(2, keepdim=True)
        P = P - sums @ sums.mT / sums.sum(1, keepdim=True)  # (k, n, n)
        alpha = P @ numbers if len(P) == 1 else P @ numbers.T[..., None]
        alpha = alpha[0] if len(P) == 1 else alpha[..., 0].T
        return alpha, alpha / P.diagonal(dim1=1, dim2=2).T
    values, vectors = centred_spectrum(K) if known is None else known
    inverse = 1 / (values[:, None] + ridges)  # (k, r)
    alpha = vectors @ (inverse * (vectors.T @ numbers))
    return alpha, alpha / (vectors.square() @ inverse)


def rotated(u: Float[Tensor, "n q"]) -> Float[Tensor, "n r"]:
    """u in coordinates of its own span: shorter rows with the same inner products."""
    return u if u.shape[1] <= len(u) else torch.linalg.qr(u.T, mode="r").R.T
