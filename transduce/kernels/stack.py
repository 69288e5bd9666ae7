"""Kernels in parallel, some of them corrected by a kernel on their residuals, weighted together.

    u_hat(v) = sum_j w_j(v) u_hat_j(v)
    u_hat_j = kappa_j,      or      kappa_b + kappa' regressed on the residuals of kappa_b

The weights depend on the leave-one-out residuals of all answers, and at each query on how far the
answers are apart. They sum to 1, so every answer that shifts with u makes the sum shift with it.
`limits` bounds answers far from the examples.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..types import TransduceError
from .kappa import Fit, Kappa, Reading
from .limits import LIMITS, bounded, limits_of, rho_of, unknown_beyond
from .posterior import Posterior
from .trust import FLOOR, Trust, Weighing, capped, votes_between, weights_at
from .trust import squared_distances_between as squared_distances

LEAST_WEIGHT = 0.02  # of a kernel whose posterior counts
ROUNDING = 1e-24  # squared, relative
LEAST = 1e-3  # typical distance of two answers in units of their errors
PRIOR = 4.0  # examples that the error of all points counts for, in the error at one point


@dataclass(frozen=True, kw_only=True)
class StackFit(Fit):
    """The fits of all kernels and corrections, and the weights of all answers.

    Attributes:
        fits: of the kernels, then of the corrections.
        weighing: of the answers of the kernels, then of the corrected ones.
        typical: mean squared distances between answers at the examples, each left out.
        weights: of the answers at the examples, each left out.
        residuals: leave-one-out residuals of each answer.
        error: expected squared error of the sum in units of that of the mean of the examples.
        honesty: factor of bands: the fourth root of the expected squared error divided by the
            leave-one-out one.
        size: root mean square of the residuals at each point, shrunk towards that of all points.
        mean: of the examples' u.
        limit: largest deviation of each answer from it, at queries no larger than the examples.
        power: of rho in that.
        damping: factor of rho^2 - 1 in what deviations are divided by.
        center: mean of the examples' v.
        scale: factor of each column of v.
        reach: largest deviation of the examples from their mean, in these units.
    """

    residual: Float[Tensor, "b n q"]
    deviation: Float[Tensor, "b n q"]
    fits: tuple[Fit, ...]
    weighing: Weighing
    typical: Float[Tensor, "b j j"]
    weights: Float[Tensor, "b n j"]
    residuals: Float[Tensor, "b j n q"]
    error: Float[Tensor, " b"]
    honesty: Float[Tensor, " b"]
    size: Float[Tensor, "b 1 q"]
    mean: Float[Tensor, "b 1 1 q"]
    limit: Float[Tensor, "b j 1 q"]
    power: Float[Tensor, "b j 1 1"]
    damping: Float[Tensor, "b j 1 1"]
    center: Float[Tensor, "b 1 d"]
    scale: Float[Tensor, "b 1 d"]
    reach: Float[Tensor, "b 1"]


class Stack(Kappa[StackFit, Reading]):
    """Weighted kernels, the first of which is the mean of the examples.

    Args:
        kernels: each has leave-one-out residuals.
        bases: the numbers of the kernels that are corrected.
        corrections: for each of these, the kernel that regresses its residuals.
        trust: weights the answers of the kernels, then those of the corrected ones.
        which: the numbers of these answers among those that the trust knows.
        origins: of these answers; those of one origin do not vote for each other.
        blocks: numbers of columns of v that have one unit; None if all have the same.
    """

    leaves_out = True
    votes: Tensor

    def __init__(
        self,
        kernels: Sequence[Kappa],
        bases: Sequence[int],
        corrections: Sequence[Kappa],
        trust: Trust,
        which: Sequence[int],
        origins: Sequence[Hashable],
        blocks: Sequence[int] | None = None,
    ):
        super().__init__()
        if len(bases) != len(corrections) or not all(0 <= b < len(kernels) for b in bases):
            raise TransduceError(
                f"{len(corrections)} corrections of the kernels {list(bases)} among "
                f"{len(kernels)}; expected one number of a kernel for each."
            )
        answers = len(kernels) + len(bases)
        if len(which) != answers or not all(0 <= k < trust.answers for k in which):
            raise TransduceError(
                f"{answers} answers, numbers {list(which)} of a trust of {trust.answers}; expected "
                "one of its numbers for each."
            )
        self.kernels, self.corrections = nn.ModuleList(kernels), nn.ModuleList(corrections)
        self.bases, self.trust = tuple(bases), trust
        self.which, self.origins = tuple(which), tuple(origins)
        self.blocks = None if blocks is None else tuple(blocks)
        self.register_buffer("votes", votes_between(origins), persistent=False)
        self.chunk = min(kernel.chunk for kernel in (*kernels, *corrections))

    def train(self, mode: bool = True) -> Stack:
        """Kernels stay in evaluation mode: the trust learns from their residuals."""
        self.training = mode
        for part in (*self.kernels, *self.corrections, self.trust):
            part.train(mode and part is self.trust)
        return self

    def _kernels(self) -> tuple[Kappa, ...]:
        return cast(tuple[Kappa, ...], tuple(self.kernels))

    def _corrections(self) -> tuple[Kappa, ...]:
        return cast(tuple[Kappa, ...], tuple(self.corrections))

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> StackFit:
        fits = [kernel.condition(v, u, mask) for kernel in self._kernels()]
        for base, kernel in zip(self.bases, self._corrections(), strict=True):
            fits.append(kernel.condition(v, _remainder(fits[base]), mask))
        return self._weighted(fits, v, u, mask, None)

    def refit(
        self,
        fit: StackFit,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> StackFit:
        """The choices of all kernels, the weighing and the typical distances stay."""
        count = len(self.kernels)
        pairs = zip(self._kernels(), fit.fits[:count], strict=True)
        fits = [kernel.refit(f, v, u, mask) for kernel, f in pairs]
        each = zip(self.bases, self._corrections(), fit.fits[count:], strict=True)
        for base, kernel, f in each:
            fits.append(kernel.refit(f, v, _remainder(fits[base]), mask))
        return self._weighted(fits, v, u, mask, fit)

    def answers(
        self, fit: StackFit, v: Float[Tensor, "b m d_v"], which: Sequence[int] | None = None
    ) -> Float[Tensor, "b j m d_u"]:
        """The answers before they are weighted. which: the numbers of some; None for all."""
        count = len(self.kernels)
        wanted = list(range(len(fit.fits)) if which is None else which)
        bases = {k: self.bases[k - count] if k >= count else k for k in wanted}
        own = {k: self._kernels()[k](fit.fits[k], v) for k in sorted(set(bases.values()))}
        found, by = [own[bases[k]] for k in wanted], self._corrections()
        for place, k in enumerate(wanted):
            found[place] = found[place] + by[k - count](fit.fits[k], v) if k >= count else own[k]
        return bounded(torch.stack(found, 1), v, fit, slice(None) if which is None else wanted)

    def forward(self, fit: StackFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        answers = self.answers(fit, v)
        weights = self._weights(fit, answers).to(v)
        return (weights.mT[..., None] * answers).sum(1)

    def deviations(self, fit: StackFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        """By the residuals at each point and by how far the answers disagree; larger than at the
        examples as far as leave-one-out errors are too small."""
        answers = self.answers(fit, v).double()
        apart = disagreement(answers, self._weights(fit, answers))
        return fit.honesty[:, None, None] * torch.hypot(fit.size, apart)

    def least_deviations(self, fit: StackFit, v: Float[Tensor, "b m d_v"]) -> Tensor:
        """More than 0 far beyond the examples."""
        return unknown_beyond(rho_of(v.double(), fit), fit)

    def posteriors(self, fit: StackFit) -> list[tuple[float, Posterior]]:
        """Those of the kernels and corrections that are Gaussian processes, by their weights among
        these; all of them if other answers have nearly all the weight."""
        shares = fit.weights[0].mean(0).tolist()
        each = zip(shares, (*self._kernels(), *self._corrections()), fit.fits, strict=True)
        known = ((w, kernel.posteriors(f)) for w, kernel, f in each)
        every = [(w, own) for w, own in known if any(p.amplitude > 0 for _, p in own)]
        found = [(w, own) for w, own in every if w > LEAST_WEIGHT] or every
        total = sum(w for w, _ in found)
        if total <= 0:
            found, total = [(1.0, own) for _, own in found], float(len(found))
        return [(w * part / total, posterior) for w, own in found for part, posterior in own]

    def _weights(self, fit: StackFit, answers: Float[Tensor, "b j m q"]) -> Float[Tensor, "b m j"]:
        """The weights of the answers at queries."""
        apart = distances(answers.double(), fit.weighing)
        return weights_at(fit.weighing, torch.log1p(apart / fit.typical[:, None]), self.votes)

    def _left_out(self, fits: list[Fit]) -> list[Tensor]:
        """Leave-one-out residuals of all answers. A correction of in-sample residuals also includes
        how the answer that it corrects changes without the example, unless that is rigid."""
        count, found = len(self.kernels), [_residual(fit) for fit in fits]
        for k, base in enumerate(self.bases, count):
            if not self._kernels()[base].rigid:
                found[k] = found[k] + _residual(fits[base]) - _remainder(fits[base])
        return found

    def _weighted(
        self, fits: list[Fit], v: Tensor, u: Tensor, mask: Tensor | None, known: StackFit | None
    ) -> StackFit:
        residuals = torch.stack([r.double() for r in self._left_out(fits)], 1)
        there = torch.ones_like(u[..., 0]).double() if mask is None else mask.double()
        weighing = self.trust(residuals, there, self.which) if known is None else known.weighing
        apart = distances(residuals, weighing)
        if known is None:
            typical, others = typical_distances(residuals, apart, there)
        else:
            typical, others = known.typical, known.typical[:, None]
        weights = weights_at(weighing, torch.log1p(apart / others), self.votes)
        residual = (weights.mT[..., None] * residuals).sum(1)
        squares = residual.square() * there[..., None]
        n = there.sum(1)[:, None, None]
        overall = squares.sum((1, 2), keepdim=True) / (n * u.shape[2]) + 1e-300
        least = overall * PRIOR / (n + PRIOR)
        left = (squares.sum(1, keepdim=True) - squares) / (n - 1).clamp(min=1)
        rounding = ROUNDING * u.double().square().sum((1, 2))  # of u that does not vary
        unit = torch.maximum(residuals[:, 0].square().sum((1, 2)), rounding).clamp(min=1e-300)
        own = capped(squares.sum(2), there.sum(1)).sum(1) / unit
        error = own.clamp(min=FLOOR) * weighing.shift.exp() if known is None else known.error
        honesty = (error / own.clamp(min=1e-300)).clamp(0.25, 16) ** 0.25
        return StackFit(
            residual=residual.to(u),
            deviation=torch.hypot((left + least).sqrt(), disagreement(residuals, weights)),
            fits=tuple(fits),
            weighing=weighing,
            typical=typical,
            weights=weights,
            residuals=residuals,
            error=error,
            honesty=honesty,
            size=(squares.sum(1, keepdim=True) / n + least).sqrt(),
            **(
                limits_of(v.double(), u.double(), residuals, there, self.blocks or (v.shape[-1],))
                if known is None
                else {name: getattr(known, name) for name in LIMITS}
            ),
        )


def distances(answers: Float[Tensor, "b j m q"], weighing: Weighing) -> Float[Tensor, "b m j j"]:
    """Squared distances between answers, computed about their weighted mean: those of the likely
    answers keep their digits."""
    w = weighing.logits.softmax(-1)[..., None, None]
    return squared_distances((answers - (w * answers).sum(1, keepdim=True)).movedim(1, 2))


def typical_distances(
    residuals: Float[Tensor, "b j n q"],
    apart: Float[Tensor, "b n j j"],
    there: Float[Tensor, "b n"],
) -> tuple[Float[Tensor, "b j j"], Float[Tensor, "b n j j"]]:
    """Mean squared distances between answers over all examples, and over all but one; at least a
    share of the answers' own errors."""
    n, counted = there.sum(1)[:, None, None], apart * there[..., None, None]
    errors = (residuals.square().sum(-1) * there[:, None]).sum(-1) / n[..., 0]
    least = LEAST * (errors[:, None] + errors[..., None]) / 2
    least = least + 1e-14 * errors[:, :1, None] + 1e-300
    total = counted.sum(1)
    others = (total[:, None] - counted) / (n[:, None] - 1).clamp(min=1)
    return total / n + least, others + least[:, None]


def disagreement(
    answers: Float[Tensor, "b j m q"], weights: Float[Tensor, "b m j"]
) -> Float[Tensor, "b m q"]:
    """The weighted standard deviation of the answers, or of their residuals, at each point."""
    w = weights.mT[..., None]
    mean = (w * answers).sum(1, keepdim=True)
    return (w * (answers - mean).square()).sum(1).sqrt()


def _residual(fit: Fit) -> Tensor:
    assert fit.residual is not None
    return fit.residual


def _remainder(fit: Fit) -> Tensor:
    """What a correction regresses: residuals in the sample of a fit with few parameters, otherwise
    those of examples that are left out."""
    return _residual(fit) if fit.in_sample is None else fit.in_sample
