"""One implicit law for all points of a field: each value of u from its neighbours and v nearby.

    u(x) = b(v near x) + sum_d w_d(v near x) u(x + d),      d to the four nearest points

b and w_d are linear in features of v around x. It is the law of a stationary equation, such as flow
through porous media, diffusion, or waves of one frequency: u depends on v everywhere, but obeys an
equation at each point. Every point of every example is an equation for the coefficients. Examples
that are left out choose the ridge and the features. Where such answers are no better than the mean,
the mean is the answer.

Some v make the equations nearly singular. Answers far beyond the examples' u are therefore solved
again with weights of neighbours whose sum is at most 1, which bounds them as diffusion does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ..spaces import SampledFields
from .comparison import evenly
from .implicit_fitting import CHOOSING_ROWS, RIDGES, LawExamples, Regression, fitted, tried
from .per_task import PerTask, TaskFit
from .stencil import FEWEST, Stencil, feature_counts, features_of

USEFUL = 0.9  # error in units of the mean's, from which on the mean is the answer
HOPELESS = 1.2  # error by the first features, in units of the mean's: above it no others are tried
MOST_VALUES = 1024 * 1024  # of u, in the examples that are fitted; features take 30 times as much
MOST_POINTS = 64 * 64  # of a grid: on larger ones answers take too long
BEYOND = 1.5  # largest value that needs no second solution, in units of the examples' largest

WIDE = 2.0  # ratio of positive values from which on logarithms are tried
LEAST = 0.1  # value of queries whose logarithm is taken, in units of the examples' least


class LawChoice(NamedTuple):
    """How a law is fitted.

    Attributes:
        stencil: its number.
        ridge: of the equations.
        least: logarithms of v are taken, of values of at least this; None for v itself.
    """

    stencil: int
    ridge: float
    least: float | None


@dataclass(frozen=True, kw_only=True)
class ImplicitFit(TaskFit):
    """What queries need.

    Attributes:
        mean, size: of v as it is seen, for each channel.
        offset, unit: mean and size of u, for each channel.
        average: of the examples' u.
        chosen: None if the mean is the answer.
        w: the coefficients for each channel of u.
        largest: deviation of an answer, for each channel.
    """

    mean: Float[Tensor, "c 1"]
    size: Float[Tensor, "c 1"]
    offset: Float[Tensor, "e 1"]
    unit: Float[Tensor, "e 1"]
    average: Float[Tensor, " q"]
    chosen: LawChoice | None = None
    w: Float[Tensor, "e t"] | None = None
    largest: Float[Tensor, " e"] | None = None


def has_implicit_laws(U: SampledFields) -> bool:
    """Whether a grid has points inside, and not too many."""
    return min(U.grid) >= FEWEST and U.grid[0] * U.grid[1] <= MOST_POINTS


class ImplicitLaw(PerTask[ImplicitFit]):
    """Fields that solve an equation whose coefficients depend on v nearby.

    Args:
        V: space of the inputs.
        U: space of the outputs.
        rich: whether all features take part; if not, fewer of them are tried.
        periodic: whether fields are periodic.
    """

    chunk = 256
    exports, has_exact_gradients, is_shared = False, False, True

    def __init__(
        self, V: SampledFields, U: SampledFields, rich: bool = False, periodic: bool = False
    ):
        super().__init__()
        self.V, self.U, self.rich, self.periodic, self.onto = V, U, rich, periodic, V.onto(U)
        *fewer, most = feature_counts(V.channels)
        counts = [most] if rich else fewer
        self.grid = (U.grid[0], U.grid[1])
        self.stencils = [Stencil(self.grid, *count, periodic) for count in counts]

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> ImplicitFit:
        stencils = range(len(self.stencils) - 1, -1, -1)
        views = _views(self._on_grid(v))
        each = [(view, stencil) for view in views for stencil in stencils]
        return self._of_some(v, u, [LawChoice(k, r, view) for view, k in each for r in RIDGES])

    def refit_task(
        self, fit: ImplicitFit, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]
    ) -> ImplicitFit:
        """The choice stays."""
        return self._of_some(v, u, [] if fit.chosen is None else [fit.chosen])

    def _of_some(self, v: Tensor, u: Tensor, choices: list[LawChoice]) -> ImplicitFit:
        """The fit to as many examples as memory allows, with the residuals of all."""
        rows = evenly(len(v), max(3, MOST_VALUES // (self.grid[0] * self.grid[1]))).to(v.device)
        if len(rows) == len(v):
            return self._fitted(v, u, choices)
        fit, plain = self._fitted(v[rows], u[rows], choices), self._fitted(v, u, [])
        if fit.chosen is None:
            return plain
        residual = torch.cat([
            own - self.answer_task(fit, part)
            for part, own in zip(v.split(self.chunk), u.split(self.chunk), strict=True)
        ])  # fmt: skip
        residual[rows] = fit.residual
        return replace(fit, residual=residual, average=plain.average)

    @torch.no_grad()
    def _fitted(self, v: Tensor, u: Tensor, choices: list[LawChoice]) -> ImplicitFit:
        f, y = self._on_grid(v), u.unflatten(1, (self.U.channels, -1))
        offset, unit = _units(y)
        n, average = len(u), u.mean(0)
        of_mean = (u - average) * (n / max(1, n - 1)) if n > 1 else u
        plain = ImplicitFit(
            residual=of_mean, mean=offset, size=unit, offset=offset, unit=unit, average=average
        )
        if n < 3 or not choices:
            return plain
        y = (y - offset) / unit
        largest = BEYOND * y.abs().amax((0, 2))
        each = list(zip(y.unbind(1), largest, strict=True))
        groups = tried(*y.shape[::2])
        own = of_mean[torch.cat(groups)].unflatten(1, (self.U.channels, -1)) / unit

        @lru_cache(maxsize=1)  # choices come by view
        def features(least: float | None) -> Float[Tensor, "n p k"]:
            g = seen(f, least)
            mean, size = _units(g)
            return features_of((g - mean) / size, self.grid, self.periodic)

        def examples(stencil: int, least: float | None) -> list[LawExamples]:
            return [LawExamples(self.stencils[stencil], features(least), *part) for part in each]

        chosen = _chosen(examples, choices, groups, float(own.square().sum()))
        if chosen is None:
            return plain
        mean, size = _units(seen(f, chosen.least))
        found = examples(chosen.stencil, chosen.least)
        laws = [fitted(channel, chosen.ridge) for channel in found]
        residual = torch.stack([residual for _, residual in laws], 1) * unit
        w = torch.stack([w for w, _ in laws])
        return replace(
            plain,
            residual=residual.flatten(1),
            mean=mean,
            size=size,
            chosen=chosen,
            w=w,
            largest=largest,
        )

    def answer_task(self, fit: ImplicitFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        if fit.chosen is None or fit.w is None or fit.largest is None:
            return fit.average.expand(len(v), -1)
        stencil = self.stencils[fit.chosen.stencil]
        f = (seen(self._on_grid(v), fit.chosen.least) - fit.mean) / fit.size
        f = features_of(f, self.grid, self.periodic)
        laws = zip(fit.w, fit.largest, strict=True)
        parts = torch.stack([stencil.solve(f, w, largest) for w, largest in laws], 1)
        return (parts * fit.unit + fit.offset).flatten(1)

    def _on_grid(self, v: Float[Tensor, "n d"]) -> Float[Tensor, "n c p"]:
        """Inputs at the positions of U."""
        return self.onto(self.V.shaped(v)).flatten(2)


def seen(f: Float[Tensor, "n c p"], least: float | None) -> Float[Tensor, "n c p"]:
    """v as features see it. least: as in `LawChoice`."""
    return f if least is None else f.clamp(min=least).log()


def _views(f: Float[Tensor, "n c p"]) -> list[float | None]:
    """`least` of the choices to try: v itself and, of positive values that differ much, its
    logarithm: a coefficient often varies by factors."""
    low, high = float(f.min()), float(f.max())
    return [None, LEAST * low] if low > 0 and high > WIDE * low else [None]


def _chosen(
    examples: Callable[[int, float | None], list[LawExamples]],
    choices: list[LawChoice],
    groups: list[Tensor],
    of_mean: float,
) -> LawChoice | None:
    """The choice of least error, or None if the mean is about as good.

    Args:
        examples: of a stencil and a view of v, for each channel of u.
        choices: to try, the most promising stencils first.
        groups: of examples that are left out.
        of_mean: the error of the mean.
    """
    errors: dict[LawChoice, float] = {}
    for (stencil, least), own in groupby(choices, key=lambda c: (c.stencil, c.least)):
        known = [error for choice, error in errors.items() if choice.least == least]
        if known and min(known) > HOPELESS * of_mean:
            continue
        regressions = [
            Regression.of(channel, groups, CHOOSING_ROWS) for channel in examples(stencil, least)
        ]
        errors |= _errors(list(own), regressions, HOPELESS * of_mean)
    best = min(errors, key=lambda choice: errors[choice])
    return best if errors[best] < USEFUL * of_mean else None


def _errors(
    choices: list[LawChoice], regressions: list[Regression], hopeless: float
) -> dict[LawChoice, float]:
    """The errors of choices that differ in the ridge, towards smaller errors from the second on.

    Args:
        choices: by descending ridge.
        regressions: of each channel of u.
        hopeless: error of the first two from which on no others are tried.
    """

    def error(choice: LawChoice) -> float:
        return sum(regression.error(choice.ridge) for regression in regressions)

    few = choices if len(choices) < 3 else choices[1:3]
    found = {choice: error(choice) for choice in few}
    if few is choices or min(found.values()) > hopeless:
        return found
    further = choices[3:] if found[few[1]] < found[few[0]] else choices[:1]
    return found | {choice: error(choice) for choice in further}


def _units(f: Float[Tensor, "n c p"]) -> tuple[Float[Tensor, "c 1"], Float[Tensor, "c 1"]]:
    """Mean and standard deviation of each channel."""
    mean = f.mean((0, 2))[:, None]
    size = (f - mean).square().mean((0, 2)).sqrt()[:, None]
    return mean, torch.where(size > 1e-12 * mean.abs(), size, 1.0)
