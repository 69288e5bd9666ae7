"""Kernel ridge regression with a length scale for each parameter.

    u_hat(v) = k(v) alpha + c

as in `tuned`, with a kernel of `length_scales`. With `own` > 0, each of so many leading principal
components of u has scales of its own, and what they leave has others. Of many examples a part
chooses the scales. Of few, the leave-one-out residuals of a fold are those of scales that were
chosen without it: scales fitted to all examples make their residuals too small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

from ..configs import Part
from ..spaces import Gridded, Space, WithParameters
from .comparison import evenly
from .length_scales import Blocks, ColumnUnits, LengthScales, adapted, likeliest
from .per_task import BatchFit, PerTask, TaskFit
from .posterior import Posterior
from .tuned import MOST, PART, condensed, ridge_solutions

CHOOSERS = 256  # examples that choose the scales where there are more
FEW, FOLDS = 64, 6  # examples up to which scales are also chosen without each of so many folds
MOST_BLOCKS = 32  # columns that have length scales
ROUNDING = 1e-20  # share of the variation of u
LEAST_SHARE = 1e-5  # of the variation of u in a component that has scales of its own


class Fold(NamedTuple):
    """Places of a fold's examples among those that have chosen, and scales chosen without them."""

    rows: Tensor
    scales: LengthScales


@dataclass(frozen=True)
class Chosen:
    """Scales for all of u, and what they were chosen from.

    Attributes:
        v, u: the examples.
        units: of the columns of v.
        few: the numbers of the examples that have chosen.
        D: their squared distances in each block.
        products: their inner products.
        scales: of the largest likelihood.
        folds: scales chosen without each fold; none of many examples.
    """

    v: Float[Tensor, "n d"]
    u: Float[Tensor, "n q"]
    units: ColumnUnits
    few: Tensor
    D: Float[Tensor, "k s s"]
    products: Float[Tensor, "s s"]
    scales: LengthScales
    folds: tuple[Fold, ...] = ()

    def without(self, fold: Fold) -> Chosen:
        """The examples that have chosen without a fold, and their choice."""
        kept = torch.ones(len(self.few), dtype=torch.bool, device=self.few.device)
        kept[fold.rows] = False
        D, products = self.D[:, kept][:, :, kept], self.products[kept][:, kept]
        return replace(self, few=self.few[kept], D=D, products=products, scales=fold.scales)


class Scales(Part):
    """A kernel with a length scale for each block of columns. Two ridges share one object, which
    keeps the scales for the examples that it saw last.

    Args:
        V: space of the inputs.
    """

    def __init__(self, V: Space):
        super().__init__()
        self.V = V
        self.blocks = Blocks(block_sizes(V))
        self._last: Chosen | None = None

    @torch.no_grad()
    def of(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> Chosen:
        """The scales of the largest likelihood for all of u."""
        last, v, u = self._last, v.detach().contiguous(), u.detach().contiguous()
        if last is not None and torch.equal(last.v, v) and torch.equal(last.u, u):
            return last
        units = self.blocks.units(v)
        few = _ordered(units.apply(v))[evenly(len(v), CHOOSERS)]
        points = units.apply(v[few])
        D, products = self.blocks.distances(points, points), points @ points.T
        scales = likeliest(D, products, condensed(u[few] - u[few].mean(0)))
        found = Chosen(v, u, units, few, D, products, scales)
        found = replace(found, folds=self._folds(found))
        self._last = found
        return found

    def _folds(self, chosen: Chosen) -> tuple[Fold, ...]:
        """Folds of few examples, evenly by their size, with scales chosen without each."""
        n = len(chosen.few)
        if not FOLDS + 1 < n <= FEW:
            return ()
        order = chosen.products.diagonal().argsort(stable=True)
        folds = [Fold(order[k::FOLDS], chosen.scales) for k in range(FOLDS)]
        return tuple(
            fold._replace(scales=self.along(chosen.without(fold), chosen.u)) for fold in folds
        )

    @torch.no_grad()
    def along(self, chosen: Chosen, part: Float[Tensor, "n q"]) -> LengthScales:
        """The scales of the largest likelihood for a part of u; those of all of u if that part is
        only rounding.

        Args:
            chosen: for all of u.
            part: in coordinates of any span.
        """
        few, whole = part[chosen.few], chosen.u[chosen.few]
        numbers = condensed(few - few.mean(0))
        if numbers.square().sum() <= ROUNDING * (whole - whole.mean(0)).square().sum():
            return chosen.scales
        return adapted(chosen.scales, chosen.D, chosen.products, numbers)

    def kernel(
        self, scales: LengthScales, a: Float[Tensor, "m d"], b: Float[Tensor, "n d"]
    ) -> Float[Tensor, "m n"]:
        """k of all pairs of points in units."""
        scales = scales._replace(theta=scales.theta.to(a))
        return scales.kernel(self.blocks.distances(a, b), a @ b.T)


@dataclass(frozen=True)
class Share:
    """The part of u in some direction, and the kernel that answers it.

    Attributes:
        scales: of the kernel.
        direction: a row of length 1; None for all of u that the other shares leave.
        alpha: coefficients of the examples.
    """

    scales: LengthScales
    direction: Float[Tensor, "1 q"] | None
    alpha: Float[Tensor, "k r"]


@dataclass(frozen=True, kw_only=True)
class ScaledFit(TaskFit):
    """What queries need.

    Attributes:
        units: of the columns of v.
        points: the examples that span the answer, in these units.
        shares: of u.
        intercept: c.
    """

    units: ColumnUnits
    points: Float[Tensor, "k d"]
    shares: tuple[Share, ...]
    intercept: Float[Tensor, " q"]


ScaleChoice = tuple[LengthScales, Tensor | None]
"""Scales, and the direction of u that they are for."""


class ScaledRidge(PerTask[ScaledFit]):
    """Kernel ridge regression with length scales of the largest likelihood.

    Args:
        scales: the kernel.
        own: number of principal components of u with scales of their own.
    """

    has_exact_gradients = False  # scales are optimised

    def __init__(self, scales: Scales, own: int = 0):
        super().__init__()
        self.scales, self.own = scales, own

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> ScaledFit:
        chosen = self.scales.of(v, u)
        directions = self._directions(chosen.u)
        fit = self._solve(v, u, chosen.units, self._choices(chosen, directions))
        if not chosen.folds:
            return fit
        residual = fit.residual.clone()
        for fold in chosen.folds:
            others = self._choices(chosen.without(fold), directions)
            rows = chosen.few[fold.rows]
            residual[rows] = self._solve(v, u, chosen.units, others).residual[rows]
        return replace(fit, residual=residual)

    def _choices(self, chosen: Chosen, directions: list[Float[Tensor, "1 q"]]) -> list[ScaleChoice]:
        """The scales of each direction of u, and of what they leave."""
        if not directions:
            return [(chosen.scales, None)]
        centred = chosen.u - chosen.u.mean(0)
        own = [centred @ along.mT for along in directions]
        parts = [*own, _parts(centred, directions)[-1]]
        each = zip(parts, [*directions, None], strict=True)
        return [(self.scales.along(chosen, part), along) for part, along in each]

    def refit_task(
        self, fit: ScaledFit, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]
    ) -> ScaledFit:
        """ColumnUnits, scales and directions stay."""
        return self._solve(v, u, fit.units, [(s.scales, s.direction) for s in fit.shares])

    def answer_task(self, fit: ScaledFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        points, answer = fit.units.apply(v), fit.intercept
        for share in fit.shares:
            part = self.scales.kernel(share.scales, points, fit.points) @ share.alpha
            answer = answer + _along(part, share.direction)
        return answer

    def posteriors(self, fit: BatchFit) -> list[tuple[float, Posterior]]:
        task = cast(ScaledFit, fit.tasks[0])
        return [
            (
                1.0,
                Posterior.of(
                    task.units.apply,
                    partial(self.scales.kernel, share.scales),
                    task.points,
                    share.scales.ridge(len(self.scales.blocks.sizes)),
                    share.alpha,
                ),
            )
            for share in task.shares
        ]

    def _directions(self, u: Float[Tensor, "n q"]) -> list[Float[Tensor, "1 q"]]:
        """The leading principal components of u."""
        if self.own < 1 or len(u) < 3:
            return []
        _, sizes, rows = torch.linalg.svd(u - u.mean(0), full_matrices=False)
        squares = sizes.square()
        count = min(self.own, int((squares > LEAST_SHARE * squares.sum()).sum()))
        return list(rows[:count, None])

    def _solve(
        self, v: Tensor, u: Tensor, units: ColumnUnits, choices: list[ScaleChoice]
    ) -> ScaledFit:
        """Solve for the coefficients of each share, with the residuals of all examples."""
        n, kept = len(v), evenly(len(v), MOST).to(v.device)
        points, mean = units.apply(v[kept]), u[kept].mean(0)
        parts = _parts(u[kept] - mean, [along for _, along in choices if along is not None])
        shares, residual, intercept = [], torch.zeros_like(u[kept]), mean
        for (scales, along), part in zip(choices, parts, strict=True):
            K = self.scales.kernel(scales, points, points)
            numbers = part if along is None else part @ along.T
            alpha, left = ridge_solutions(K, scales.ridge(len(self.scales.blocks.sizes)), numbers)
            residual = residual + _along(left, along)
            intercept = intercept - _along((K @ alpha).mean(0), along)
            shares.append(Share(scales, along, alpha))
        fit = ScaledFit(
            residual=residual if n > 1 else u,
            units=units,
            points=points,
            shares=tuple(shares),
            intercept=intercept,
        )
        if len(kept) == n:
            return fit
        others = torch.cat([self.answer_task(fit, part) for part in v.split(PART)])
        return replace(fit, residual=(u - others).index_copy(0, kept, fit.residual))


def _ordered(points: Float[Tensor, "n d"]) -> Tensor:
    """The numbers of points in an order that does not depend on how they are given, so that
    rounding in the optimiser does not either."""
    direction = torch.cos(torch.arange(points.shape[1], dtype=points.dtype, device=points.device))
    return (points @ direction).argsort()


def block_sizes(V: Space) -> list[int]:
    """Numbers of columns that share a length scale: curves are one block, and each number one."""
    functions = V.functions if isinstance(V, WithParameters) else V
    first = [functions.size] if isinstance(functions, Gridded) else [1] * functions.size
    return first + [1] * (V.size - functions.size)


def _parts(u: Float[Tensor, "n q"], directions: list[Tensor]) -> list[Float[Tensor, "n q"]]:
    """The parts of u along each of the directions, and what they leave."""
    parts = [(u @ along.T) @ along for along in directions]
    return [*parts, u - sum(parts)] if parts else [u]


def _along(part: Tensor, direction: Tensor | None) -> Tensor:
    """A share of u as functions."""
    return part if direction is None else part @ direction
