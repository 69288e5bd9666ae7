"""The coefficients of an implicit law.

Ridge regression of the equations at all points comes first. Gauss-Newton steps then reduce the
error of the answers, which solve all equations at once. Coefficients without an example, for its
residual, follow from these by one linear step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .comparison import evenly
from .stencil import Place, Stencil
from .systems import identity_like

RIDGES = (1e-2, 1e-4, 1e-6, 1e-10)  # shares of the mean square of a column
FOLDS = 20  # examples that choose, each left out by itself
LARGE_FOLDS = 8  # groups in which examples are left out on grids of many points
ROWS, CHOOSING_ROWS = 60_000, 15_000  # equations, about, and those that choose
TRIED = 8 * 1024  # values of u in the examples that choose a ridge, about, and at most `FOLDS`
STEPS = 2  # Gauss-Newton steps, on grids of few points
STEP_POINTS, STEP_VALUES = 33 * 33, 16 * 1024  # most points of it; values that take part
DAMPING, MORE, LESS, TRIALS = 1e-2, 10.0, 0.2, 4  # of these steps


@dataclass(frozen=True)
class LawExamples:
    """The examples of one channel of u, as equations at all points.

    Attributes:
        stencil: of the grid.
        f: features of v at all points.
        u: centred, in units of its size.
        largest: value of an answer.
    """

    stencil: Stencil
    f: Float[Tensor, "n p k"]
    u: Float[Tensor, "n p"]
    largest: Float[Tensor, ""]

    def some(self, rows: Tensor) -> LawExamples:
        return replace(self, f=self.f[rows], u=self.u[rows])

    def residual(self, w: Float[Tensor, " t"]) -> Float[Tensor, "n p"]:
        """u minus the answers."""
        return self.u - self.stencil.solve(self.f, w, self.largest)


class PlaceSums(NamedTuple):
    """Products of the columns of the equations at one place.

    Attributes:
        place: of the stencil.
        gram, moment: of the columns with themselves and with u, over all examples.
        groups: the same of each group of examples that is left out.
    """

    place: Place
    gram: Float[Tensor, "t t"]
    moment: Float[Tensor, " t"]
    groups: list[tuple[Float[Tensor, "t t"], Float[Tensor, " t"]]]


@dataclass(frozen=True)
class Regression:
    """Ridge regressions of the equations, with all examples and without groups of them.

    Attributes:
        examples: all of them.
        groups: the numbers of the examples of each group.
        sums: at each place.
    """

    examples: LawExamples
    groups: list[Tensor]
    sums: list[PlaceSums]

    @classmethod
    def of(cls, examples: LawExamples, groups: Sequence[Tensor], rows: int = ROWS) -> Regression:
        """Sum the equations at all points, or at some of them if there are more than `rows`."""
        n, stencil = len(examples.u), examples.stencil
        first, sums = stencil.mean_of_neighbours().to(examples.u), []
        for place in stencil.places:
            points = place.points
            if n * len(points) > rows:  # the same random ones of each example
                order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
                points = points[order[: max(1, rows // n)].to(points.device)]
            X = stencil.columns(examples.f, examples.u, place, points)  # (n, s, t)
            y = examples.u[:, points] - X @ first[place.own]
            parts = [_products(X[own], y[own]) for own in groups]
            sums.append(PlaceSums(place, *_products(X, y), parts))
        return cls(examples, list(groups), sums)

    def coefficients(self, ridge: float) -> list[Float[Tensor, " t"]]:
        """Of all examples, then without each group; near those of the mean of the neighbours.

        Args:
            ridge: as a share of the mean square of a column.
        """
        first = self.examples.stencil.mean_of_neighbours().to(self.examples.u)
        found = first.repeat(1 + len(self.groups), 1)
        for place, gram, moment, groups in self.sums:
            bound = ridge * gram.diagonal().mean() * identity_like(gram)
            found[0, place.own] += torch.linalg.solve(gram + bound, moment)
            for row, (own, target) in zip(found[1:], groups, strict=True):
                row[place.own] += torch.linalg.solve(gram - own + bound, moment - target)
        return list(found)

    def error(self, ridge: float) -> float:
        """The squared error of the answers to each group, by equations without it."""
        each = zip(self.groups, self.coefficients(ridge)[1:], strict=True)
        found = (self.examples.some(rows).residual(w).square().sum() for rows, w in each)
        return sum(map(float, found))


def _products(X: Float[Tensor, "n s t"], y: Float[Tensor, "n s"]) -> tuple[Tensor, Tensor]:
    rows = X.flatten(0, 1)
    return rows.T @ rows, rows.T @ y.flatten()


def tried(n: int, points: int) -> list[Tensor]:
    """Groups of one example each, whose errors choose how a law is fitted."""
    return list(evenly(n, min(FOLDS, max(2, TRIED // points)))[:, None])


def fitted(examples: LawExamples, ridge: float) -> tuple[Float[Tensor, " t"], Float[Tensor, "n p"]]:
    """The coefficients, and the residuals of all examples by coefficients without them. On grids of
    few points so many examples take part in the steps that the residuals of others are those of the
    coefficients of all: one example changes these little.
    """
    n, points = examples.u.shape
    if points > STEP_POINTS:
        folds = min(n, LARGE_FOLDS)
        groups = [torch.arange(k, n, folds, device=examples.u.device) for k in range(folds)]
        w, *without = Regression.of(examples, groups).coefficients(ridge)
    else:
        few = evenly(n, max(2, STEP_VALUES // points)).to(examples.u.device)
        groups = list(few[:, None])
        starts = Regression.of(examples, groups).coefficients(ridge)
        w, without = _improved(examples.some(few), *starts)
    residual, others = torch.zeros_like(examples.u), torch.ones(n, dtype=torch.bool)
    for rows, own in zip(groups, without, strict=True):
        residual[rows] = examples.some(rows).residual(own)
        others[rows.cpu()] = False
    if others.any():
        rest = others.nonzero()[:, 0].to(examples.u.device)
        residual[rest] = examples.some(rest).residual(w)
    return w, residual


def _improved(
    examples: LawExamples, start: Float[Tensor, " t"], *others: Float[Tensor, " t"]
) -> tuple[Float[Tensor, " t"], list[Float[Tensor, " t"]]]:
    """Coefficients that reduce the error of the answers, and those without each example. The latter
    minimise, for x near w,

        |residual - J (x - w)|^2 + damping |x - start|^2

    Args:
        examples: that take part.
        start: coefficients to start from.
        others: the same without each example.
    """
    w, stencil = start, examples.stencil
    residual, damping = examples.residual(w), DAMPING
    for step in range(STEPS + 1):
        J = stencil.derivatives(examples.f, examples.u - residual, w)  # (n, p, t)
        gram, slope = J.mT @ J, (J.mT @ residual[..., None])[..., 0]
        unit = gram.sum(0).diagonal()
        unit = unit.clamp(min=1e-12 * unit.max()).sqrt()
        if step == STEPS:
            break
        for _ in range(TRIALS):
            trial = w + _step(gram.sum(0), slope.sum(0), unit, damping)
            found = examples.residual(trial)
            if trial.isfinite().all() and found.square().sum() < residual.square().sum():
                w, residual, damping = trial, found, damping * LESS
                break
            damping *= MORE
        else:
            break
    whole, target = gram.sum(0), slope.sum(0)
    own = _step(whole, target, unit, DAMPING, start - w)
    without = [
        w + _step(whole - G, target - g, unit, DAMPING, other - w) - own
        for G, g, other in zip(gram, slope, others, strict=True)
    ]
    return w, without


def _step(
    gram: Tensor, slope: Tensor, unit: Tensor, damping: float, towards: Tensor | None = None
) -> Float[Tensor, " t"]:
    """One damped step. towards: the step that damping prefers; default: none."""
    A = gram / unit / unit[:, None] + damping * identity_like(gram)
    target = slope / unit if towards is None else slope / unit + damping * unit * towards
    return torch.linalg.solve(A, target) / unit
