"""Equations in integral form, so that steps of time need not be small.

    u - v = int_0^1 F dt = (F(v) + 4 F(m) + F(u)) / 6,      m = (v + u) / 2 + (F(v) - F(u)) / 8

F is a sum of terms, time is in steps, and m is the state half a step on (Hermite-Simpson, of order
4). m needs an equation: the one that is found with (F(v) + F(u)) / 2 on the right-hand side, and
then, in turn, the next. Data with much noise keep that first rule, whichever predicts left-out
blocks better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from .derivatives import Derivatives
from .library import Product, columns
from .moments import Moments, moments_of
from .selection import Subset, best_subsets, coefficients_of, smallest

STEPS = 2  # from one equation to the next
NOISE_STEPS = 2  # from weights of wavenumbers to the next
CERTAIN = 4.0  # standard errors of a coefficient from 0
REPLICATES = 2  # of noise, each with both signs
EQUAL = 5e-3  # share of the variation of noisy data: what leaves less is as good
OF_ORDER_4 = 0.2  # error of the second rule, in units of that of the first, at most
CONSTANT = 1e-12  # variation of the increments, of their mean square: less is rounding
LEAST_NOISE = 1e-7  # of u, below which it does not matter

Equations = Float[np.ndarray, "c terms"]
"""Coefficients of each channel's equation."""


@dataclass(frozen=True, eq=False)
class Increments:
    """Pairs a step of time apart.

    Attributes:
        v, u: states, each channel in its own unit: (n, c, p).
        derivatives: how they are differentiated.
        noise: standard deviation of the noise in each channel.
        terms: that an equation may have.
        blocks: pairs that are left out together.
        most: terms of an equation.
        wavenumbers: that are compared, from 0; None for all.
    """

    v: Float[np.ndarray, "n c p"]
    u: Float[np.ndarray, "n c p"]
    derivatives: Derivatives
    noise: Float[np.ndarray, " c"]
    terms: Sequence[Product]
    blocks: Sequence[np.ndarray]
    most: int
    wavenumbers: int | None = None

    def moments(self, equations: Equations | None = None) -> Moments:
        """Moments of the terms, averaged over the step, and of the increments.

        Args:
            equations: for the states half a step on; None to average over both ends.
        """
        own, mean = self._moments(self.v, self.u, equations)
        if not self.noisy:
            return Moments(own, np.zeros_like(own[0]), mean, len(self.terms), self._states)
        noisier = [self._moments(*states, equations)[0] for states in self._noisier()]
        noise = sum(noisier) / len(noisier) - own
        return Moments(own - noise, noise.sum(0), mean, len(self.terms), self._states)

    @property
    def noisy(self) -> bool:
        """Whether there is noise that matters."""
        return bool(self.noise.max() >= LEAST_NOISE)

    @property
    def _states(self) -> list[int]:
        """The terms that are channels."""
        return [j for j, term in enumerate(self.terms) if term.degree == 1 and not term.order]

    def _moments(
        self,
        v: Float[np.ndarray, "n c p"],
        u: Float[np.ndarray, "n c p"],
        equations: Equations | None,
    ) -> tuple[np.ndarray, Float[np.ndarray, "modes c"]]:
        """Moments of blocks, and the squared mean of the increments."""
        before, after = self.derivatives(v), self.derivatives(u)
        change = self.derivatives.evenly(u - v)
        averaged = self._averaged(before, after, equations)
        window = self.derivatives.window
        joint = moments_of(averaged, change, window, self.blocks)
        none = averaged[:1, :, :0]
        mean = moments_of(none, change.mean(0, keepdims=True), window, [np.arange(1)])[0]
        compared = slice(self.wavenumbers)
        return joint[:, compared], len(v) * np.diagonal(mean, axis1=1, axis2=2)[compared]

    def _averaged(
        self, before: np.ndarray, after: np.ndarray, equations: Equations | None
    ) -> Float[np.ndarray, "n q terms"]:
        first, last = columns(self.terms, before), columns(self.terms, after)
        if equations is None:
            return (first + last) / 2
        turn = np.moveaxis((first - last) @ equations.T, 2, 1)
        middle = (before[0] + after[0]) / 2 + turn / 8
        between = columns(self.terms, self.derivatives.again(middle))
        return (first + 4 * between + last) / 6

    def _noisier(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Both states with as much noise again."""
        generator = np.random.default_rng(0)
        unit, size = self.noise[:, None], (REPLICATES, 2, *self.v.shape)
        added = unit * generator.standard_normal(size)
        both = np.concatenate([added, -added])
        return [(self.v + e, self.u + f) for e, f in both]


@dataclass(frozen=True)
class Choice:
    """The equation of one channel.

    Attributes:
        subsets: the best of each size.
        chosen: the one that counts.
        moments: weighted, from which its coefficients follow.
        variation: of the increments about their mean.
        bound: by how much steps of time may change each coefficient of the chosen terms.
    """

    subsets: list[Subset]
    chosen: Subset
    moments: Float[np.ndarray, "blocks s s"]
    variation: float
    bound: Float[np.ndarray, " k"] | float = 0.0

    def coefficients(self, subset: Subset) -> Float[np.ndarray, " terms"]:
        """Of all terms; zero outside a subset."""
        whole = np.zeros(self.moments.shape[1] - 1)
        whole[list(subset.terms)] = coefficients_of(self.moments, subset.terms)[0]
        return whole

    def left(self, subset: Subset) -> float:
        """The share of the variation that a subset leaves at left-out blocks."""
        size = max(self.variation, CONSTANT * float(self.moments[:, -1, -1].sum()))
        return subset.error / size if size > 0 else np.inf

    @property
    def least(self) -> float:
        """What the best of all sizes leaves."""
        return min(abs(self.left(each)) for each in self.subsets)


def best_choices(several: Sequence[Increments]) -> list[Choice]:
    """The equation of each channel, by the derivatives that predict left-out blocks best.

    Args:
        several: the same pairs with different derivatives.
    """
    found = [choices_of(pairs) for pairs in several]
    least = min(EQUAL, float(several[0].noise.max()))
    errors = [sum(abs(each.left(each.chosen)) for each in choices) for choices in found]
    return found[int(np.argmin(np.maximum(errors, least)))]


def choices_of(pairs: Increments) -> list[Choice]:
    """The equation of each channel, by whichever rule predicts left-out blocks better."""
    ends = _chosen(pairs, pairs.moments())
    found = ends
    for _ in range(STEPS):
        found = _chosen(pairs, pairs.moments(_stacked(found, largest=True)))
    found = _chosen(pairs, pairs.moments(_stacked(found)))
    if sum(each.least for each in found) <= sum(each.least for each in ends):
        return _bounded(found, pairs.moments(), OF_ORDER_4)
    return _bounded(ends, pairs.moments(_stacked(ends)), 1.0)


def _stacked(choices: Sequence[Choice], largest: bool = False) -> Equations:
    """The chosen equations, or those with the most terms."""
    return np.stack([c.coefficients(c.subsets[-1] if largest else c.chosen) for c in choices])


def _chosen(pairs: Increments, moments: Moments) -> list[Choice]:
    return [_choice(pairs, moments, channel) for channel in range(pairs.v.shape[1])]


def _choice(pairs: Increments, moments: Moments, channel: int) -> Choice:
    """The equation of one channel, with weights that follow its noise."""
    coefficients = None
    for _ in range(NOISE_STEPS if pairs.noisy else 1):
        weighted, variation = moments.weighted(channel, coefficients)
        subsets = best_subsets(weighted, pairs.most)
        choice = Choice(subsets, smallest(subsets), weighted, variation)
        coefficients = choice.coefficients(choice.chosen)
    return choice


def _bounded(choices: Sequence[Choice], other: Moments, share: float) -> list[Choice]:
    """The choices without uncertain terms, with bounds on what steps of time add.

    Args:
        choices: by one rule.
        other: moments by the other rule.
        share: of the difference between both.
    """
    found = []
    for channel, choice in enumerate(choices):
        weighted, _ = other.weighted(channel, choice.coefficients(choice.chosen))
        chosen = choice.chosen
        while chosen.terms:
            value, error = coefficients_of(choice.moments, chosen.terms)
            bound = share * np.abs(value - coefficients_of(weighted, chosen.terms)[0])
            if (np.abs(value) > np.hypot(CERTAIN * error, bound)).all():
                choice = replace(choice, bound=bound)
                break
            chosen = choice.subsets[len(chosen.terms) - 1]
        found.append(replace(choice, chosen=chosen))
    return found
