"""Kernel ridge regression: the minimiser of Theorem 2 in closed form (docs/representer.md).

    u_hat(v) = sum_j w_j sum_i k_j(v_i, v) alpha_ij,        alpha_j = (K_j + lambda_j I)^-1 u
    r_ij = u_i - u_hat_j^{-i}(v_i) = alpha_ij / [(K_j + lambda_j I)^-1]_ii

The candidates k_j are made of the parts of a `Gram`. Their leave-one-out residuals r_ij come with
the factor of the matrix, and a `Mixer` weights the candidates by them. With many examples, parts
without finite features are spanned by landmarks, and the cost is linear in n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..types import TransduceError
from . import solving
from .candidates import Candidates
from .grams import Points
from .grams.base import Landmarks
from .kappa import Fit, Kappa, Reading
from .mixer import Mixer, blame, mixed
from .systems import SMALLEST_RIDGE, Solved


@dataclass(frozen=True, kw_only=True)
class RidgeFit(Fit):
    """What queries, bands and updates need.

    Attributes:
        scale: of the Gram, measured from the examples.
        folded: the coefficients in the form that `Gram.answer` takes.
        points: the examples in the form in which they are compared.
        factor: W with W^T W the inverse of each candidate's system.
        mix: weight of each candidate for each coefficient of u.
        mask: which examples count.
        landmarks: of the approximation; None if the n x n systems were solved.
        versions: of the parameters, which must not have changed for an update.
    """

    residual: Float[Tensor, "b n q"]
    deviation: Float[Tensor, "b n"]
    scale: Float[Tensor, "b k"]
    folded: Points
    points: Points
    factor: Float[Tensor, "b j r r"]
    mix: Float[Tensor, "b j q"]
    mask: Bool[Tensor, "b n"] | None
    landmarks: Landmarks | None
    versions: tuple[int, ...]


@dataclass(frozen=True)
class Pairs(Reading):
    """Points of all functions, and all that kernels need of each pair."""

    points: Points
    pairs: Float[Tensor, "k p n n"]

    def task(self, i: int) -> Pairs:
        """The reading of one of several sets of functions."""
        one = slice(i, i + 1)
        return Pairs(self.v[one], tuple(part[one] for part in self.points), self.pairs[one])


class Ridge(Kappa[RidgeFit, Pairs]):
    """Kernel ridge regression with several candidate kernels.

    Args:
        candidates: the kernels, and their ridges.
        mixer: weights the candidates; None if there is one candidate.
        exact: largest number of examples that are compared in all pairs; None for no limit.
        landmarks: number of examples that span the kernels beyond that; 0 to refuse more.
    """

    leaves_out, chunk = True, 512

    def __init__(
        self,
        candidates: Candidates,
        mixer: Mixer | None = None,
        exact: int | None = None,
        landmarks: int = 0,
    ):
        super().__init__()
        expected = 1 if mixer is None else mixer.answers
        if candidates.count != expected:
            raise TransduceError(
                f"{candidates.count} candidates and a mixer of {expected}; expected the same "
                "number. Only a single candidate needs no mixer."
            )
        self.candidates, self.mixer, self.exact, self.landmarks = (
            candidates, mixer, exact, landmarks,
        )  # fmt: skip

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        self.candidates.gram.standardised(spread, size)

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> RidgeFit:
        return self._fit(v, u, mask)

    def refit(
        self,
        fit: RidgeFit,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> RidgeFit:
        """Scale, mixture weights and landmarks stay those of `fit`."""
        return self._fit(v, u, mask, chosen=fit)

    def update(
        self,
        fit: RidgeFit,
        rows: Sequence[int],
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
    ) -> RidgeFit:
        """A few examples more or less cost n^2 each, instead of n^3."""
        same = fit.mask is None and fit.landmarks is None and fit.versions == self._versions()
        few = solving.few(fit.residual.shape[1], len(rows), v.shape[1])
        known = same and few and not torch.is_grad_enabled()
        return self._fit(v, u, None, known=(fit, rows) if known else None)

    def forward(self, fit: RidgeFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        gram = self.candidates.gram
        return gram.answer(fit.folded, gram.points(v), fit.scale).to(v.dtype)

    def deviations(self, fit: RidgeFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """The standard deviation of each query under the candidates' Gaussian processes."""
        points, ridge = self.candidates.gram.points(v), self.candidates.ridge()
        if fit.landmarks is None:
            known = (self._across(fit, points) @ fit.factor.mT).square().sum(-1)
            variances = self.candidates.diagonal(points, fit.scale) + ridge - known
        else:
            psi = self.candidates.design(points, fit.scale, fit.landmarks)
            spanned = ridge * (1 + (psi @ fit.factor.mT).square().sum(-1))
            variances = self.candidates.unspanned(points, fit.scale, psi) + spanned
        share = blame(fit.mix, fit.residual)[..., None]
        return (share * variances.clamp(min=SMALLEST_RIDGE)).sum(1).sqrt()

    def weights(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        query: Float[Tensor, "b m d_v"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b m n"]:
        """k_j(v) (K_j + lambda_j I)^-1, averaged over coefficients with the mixture weights."""
        fit = self.condition(v, u, mask)
        if fit.landmarks is not None:
            return super().weights(v, u, query, mask)
        across = self._across(fit, self.candidates.gram.points(query))
        solved = across @ fit.factor.mT @ fit.factor
        return torch.einsum("bjq,bjmn->bmn", fit.mix, solved).to(u) / u.shape[-1]

    def read(self, v: Float[Tensor, "k n d_v"], u: Float[Tensor, "k n d_u"] | None) -> Pairs:
        if self.exact is not None and v.shape[1] > self.exact:
            raise TransduceError(
                f"many regressions on {v.shape[1]} functions; expected at most {self.exact}. "
                "Give fewer."
            )
        points = self.candidates.gram.points(v)
        return Pairs(v, points, self.candidates.gram.pairs(points, points))

    def split(
        self,
        reading: Pairs,
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n d_u"]:
        """Each task solves the systems of its own examples."""
        count, order = mask.sum(1), mask.int().argsort(dim=1, descending=True, stable=True)
        examples, queries = order[:, : int(count.max())], order[:, int(count.min()) :]
        there = mask.gather(1, examples).double()
        gram, candidates = self.candidates.gram, self.candidates
        scale = gram.scale(reading.points, mask.double())
        K = candidates.combined(gram.parts(_between(reading, examples, examples), scale))
        rows = examples[..., None].expand(-1, -1, u.shape[-1])
        target = u.gather(1, rows).double() * there[..., None]
        solved = solving.solve(candidates, K, target, there)
        mix = self._mix(solved, target, count.double())
        c = candidates.spread(mix[:, :, None] * solved.coefficients)
        parts = gram.parts(_between(reading, queries, examples), scale)
        answers = rearrange(parts, "b s m k -> b m (s k)") @ c.flatten(1, 2)
        streams = u.scatter_add(1, queries[..., None].expand_as(answers), answers.to(u))
        if not carry:
            return streams
        residual = mixed(mix, solved.residuals, target).to(u)
        return torch.where(
            mask[..., None], torch.zeros_like(u).scatter_add(1, rows, residual), streams
        )

    def _fit(
        self,
        v: Tensor,
        u: Tensor,
        mask: Tensor | None,
        chosen: RidgeFit | None = None,
        known: tuple[RidgeFit, Sequence[int]] | None = None,
    ) -> RidgeFit:
        there = torch.ones_like(u[..., 0], dtype=torch.float64) if mask is None else mask.double()
        target = u.double() if mask is None else u.double() * there[..., None]
        points = self.candidates.gram.points(v)
        landmarks = (
            self._landmarks(points, v.shape[1], mask) if chosen is None else chosen.landmarks
        )
        scale = None if chosen is None else chosen.scale
        solved, scale = self._solve(
            points, target, None if mask is None else there, scale, landmarks, known
        )
        mix = self._mix(solved, target, there.sum(-1)) if chosen is None else chosen.mix
        residual = mixed(mix, solved.residuals, target)
        c = mix[:, :, None] * solved.coefficients
        return RidgeFit(
            residual=residual.to(u.dtype),
            deviation=(blame(mix, residual)[..., None] * solved.variances).sum(1).sqrt(),
            scale=scale,
            folded=self.candidates.fold(points, scale, landmarks, c),
            points=points,
            factor=solved.factor,
            mix=mix,
            mask=mask,
            landmarks=landmarks,
            versions=self._versions(),
        )

    def _solve(
        self,
        points: Points,
        u: Float[Tensor, "b n q"],
        there: Float[Tensor, "b n"] | None,
        scale: Float[Tensor, "b k"] | None,
        landmarks: Landmarks | None,
        known: tuple[RidgeFit, Sequence[int]] | None,
    ) -> tuple[Solved, Float[Tensor, "b k"]]:
        """The candidates' coefficients and the scale, which is measured unless it is given."""
        candidates, gram = self.candidates, self.candidates.gram
        count = torch.ones_like(u[..., 0]) if there is None else there
        if landmarks is not None or known is not None:
            scale = gram.scale(points, count) if scale is None else scale
        if landmarks is not None and scale is not None:
            return solving.solve_spanned(candidates, landmarks, points, scale, u), scale
        if known is not None and scale is not None and torch.equal(known[0].scale, scale):
            fit, rows = known
            return solving.solve_updated(candidates, fit.factor, rows, points, scale, u), scale
        if scale is None:
            K, scale = candidates.among(points, count)
        else:
            K = candidates.between(points, points, scale)
        return solving.solve(candidates, K, u, there), scale

    def _mix(
        self, solved: Solved, u: Float[Tensor, "b n q"], count: Float[Tensor, " b"]
    ) -> Float[Tensor, "b j q"]:
        if self.mixer is None:
            return torch.ones_like(u[:, :1])
        return self.mixer(solved.residuals, u, count)

    def _landmarks(self, points: Points, n: int, mask: Tensor | None) -> Landmarks | None:
        """None if the examples are few enough to compare in pairs."""
        if self.exact is None or n <= self.exact:
            return None
        if not self.landmarks:
            raise TransduceError(
                f"{n} examples; this kernel expects at most {self.exact}, all pairs of which it "
                "compares. Give a sample of them."
            )
        if mask is not None:
            raise TransduceError(
                f"more than {self.exact} examples and a mask; expected one or the other. "
                "Condition on one task at a time."
            )
        return self.candidates.gram.landmarks(points, self.landmarks)

    def _across(self, fit: RidgeFit, query: Points) -> Float[Tensor, "b j m n"]:
        """k_j between queries and examples; 0 where there is no example."""
        k = self.candidates.between(query, fit.points, fit.scale)
        return k if fit.mask is None else k * fit.mask[:, None, None, :]

    def _versions(self) -> tuple[int, ...]:
        return tuple(parameter._version for parameter in self.parameters())


def _between(
    reading: Pairs, a: Int[Tensor, "b m"], b: Int[Tensor, "b k"]
) -> Float[Tensor, "b p m k"]:
    """The pairs of functions a and b of each task."""
    return reading.pairs[0][:, a[:, :, None], b[:, None, :]].movedim(0, 1)
