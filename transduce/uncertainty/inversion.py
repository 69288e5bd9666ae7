"""The input behind an observed output, and how sure one can be of it.

    u = O(v) + e,
    e ~ N(0, C),   C = noise^2 I + sum_j r_j r_j^T,
    v = sum_i xi_i root_i,   xi ~ N(0, I)

    E(xi) = (u - O(v))^T C^-1 (u - O(v)) / 2 + |xi|^2 / 2 = -log p(xi | u) + constant

r_j are modes of the errors of O itself, where these count. The most probable xi* is found by
Gauss-Newton steps. Gradients are exact, back through O; the matrix H = I + A^T C^-1 A with A = dO /
dxi only steers, so central differences do, in one batch of queries. About xi* the posterior is
nearly N(xi*, H^-1) (Laplace).

Samples come from preconditioned Crank-Nicolson steps. In the directions of H, whose eigenvalues are
lambda,

    xi' = c + sqrt(1 - beta^2 pi / lambda) (xi - c) + beta eta / sqrt(lambda),      eta ~ N(0, I)

leaves N(c, 1 / pi) as it is, and is accepted with probability min(1, exp(Psi(xi) - Psi(xi'))), Psi
= E - sum pi (xi - c)^2 / 2. Two kinds take turns: about xi*, pi = lambda, where Psi is constant if
O is linear, so that every step is accepted; and about 0, pi = 1, where Psi is the misfit and tails
that Laplace's approximation has not are sampled too. Each has its beta, adapted during burn-in for
each observed function. All chains are one batch of queries. They start from xi*, and a second mode
far from it will not be found."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..conditioned import ConditionedOperator
from ..random_fields import _covariance_root, _periodic_root
from ..types import Operator, TransduceError, like, to_tensor
from .chains import band, check_sampling, effective_sizes
from .many import all_but_one, many_regressions

NEGLIGIBLE = 1e-8  # variance of a direction of the prior, in units of the largest
LEFT_OUT = 64  # examples, for the errors of O itself
ALL = 0.999  # of their variance, nearly
DIFFERENCE = 0.1  # of xi, in central differences
STARTS = 32  # draws of the prior, of which the most probable is where the search begins
LENGTHS = 0.5 ** torch.arange(8, dtype=torch.float64)  # of a Gauss-Newton step, tried at once
ITERATIONS = 50
SETTLED = 1e-4  # a step that promises to lower E by less is the last
BURN_IN = 100  # steps at least
ACCEPTANCE = 0.3  # aimed at; what is above it where beta = 1 is welcome
PACE = 4.0  # of beta's adaptation


@dataclass(frozen=True, eq=False)
class GaussianPrior:
    """v = sum_i xi_i root_i with white xi: a Gaussian field of mean zero.

    root: (d, *grid), or (d, channels, *grid) for functions of several components.

    >>> # what ADR's initial states are drawn from
    >>> prior = GaussianPrior.interval(101, 0.2, boundary_mask(family.x))
    >>> # and those of Burgers' equation
    >>> prior = GaussianPrior.periodic(64, 0.125, amplitude=0.1, channels=2)
    """

    root: Float[Tensor, "d ..."]

    def __post_init__(self) -> None:
        if self.root.ndim < 2 or not len(self.root):
            raise TransduceError(
                f"root has shape {tuple(self.root.shape)}; expected (d, *grid) or (d, channels, "
                "*grid), one function or more to be summed."
            )
        object.__setattr__(self, "root", to_tensor(self.root, "root").double())

    @classmethod
    def interval(
        cls, points: int, length_scale: float, mask: Float[Tensor, " x"] | None = None
    ) -> GaussianPrior:
        """The squared-exponential field on a uniform grid of [0, 1] with both ends, times
        `mask`."""
        root = _covariance_root(points, length_scale).T
        return cls(_ample(root if mask is None else root * mask))

    @classmethod
    def periodic(
        cls, points: int, length_scale: float, amplitude: float = 1.0, channels: int = 1
    ) -> GaussianPrior:
        """The periodic field on a grid of [0, 1]^2 that leaves out the last points; `amplitude` is
        its standard deviation."""
        side = _periodic_root(points, length_scale)
        root = _ample(amplitude * torch.einsum("xi,yj->ijxy", side, side).flatten(0, 1))
        if channels > 1:
            root = torch.einsum(
                "ce,dxy->cdexy", torch.eye(channels, dtype=root.dtype), root
            ).flatten(0, 1)
        return cls(root)

    def fields(self, xi: Float[Tensor, "n d"]) -> Float[Tensor, "n ..."]:
        return torch.tensordot(xi, self.root, 1)

    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n ..."]:
        """Draw n functions."""
        return self.fields(torch.randn(n, len(self.root), dtype=torch.float64, generator=generator))


def _ample(root: Float[Tensor, "d ..."]) -> Float[Tensor, "e ..."]:
    """The directions in which functions differ by anything to speak of."""
    variance = root.flatten(1).square().sum(1)
    return root[variance > NEGLIGIBLE * variance.max()]


@dataclass(frozen=True, eq=False)
class Inversion:
    """v: the most probable inputs, (m, *grid). low, high: the ends of their bands, of the same
    shape. samples: (m, samples, *grid).

    Of the chains, for each of the m functions: acceptance, the share of steps taken, about xi* and
    about 0; beta, their size; effective, the number of independent samples that theirs amount to,
    in the direction that has the fewest."""

    v: Any
    low: Any
    high: Any
    samples: Any
    acceptance: Float[Tensor, "m 2"]
    beta: Float[Tensor, "m 2"]
    effective: Float[Tensor, " m"]


@torch.no_grad()
def invert(
    O: Operator,
    u_observed: Any,
    prior: GaussianPrior,
    *,
    noise: float,
    errors: Any = None,
    samples: int = 0,
    chains: int = 16,
    level: float = 0.9,
    generator: torch.Generator | None = None,
) -> Inversion:
    """The inputs v behind observed outputs u = O(v) + noise.

    O: what `regress` returned, or any operator that torch can differentiate. u_observed: (m,
    *grid), where O answers; at other places, give lambda v: O(v, at=places) as the operator. noise:
    the standard deviation of the error of u_observed at each point. errors: modes of O's own, (r,
    *grid), where those are not small beside the noise: `errors_of(O)`. samples: to draw for each
    function, after as many that are not kept, from `chains` chains. level: of the band, pointwise:
    from the samples, or without any from Laplace's approximation.

    >>> found = invert(
    ...     O, u_observed, prior, noise=0.02, errors=errors_of(O), samples=1000, generator=generator
    ... )
    >>> found.v, found.low, found.high
    """
    check_sampling(noise, level, samples, chains, fewest=0)
    u = to_tensor(u_observed, "u_observed").double().cpu()
    _check(O, u, prior)
    posterior = Posterior(O, u, prior, noise_of(noise, u, errors))
    xi, H = most_probable(posterior)
    v = prior.fields(xi)
    if samples:
        generator = generator or torch.Generator().manual_seed(0)
        states, acceptance, beta = crank_nicolson(
            posterior, xi, H, -(-samples // chains), chains, generator
        )
        drawn = prior.fields(states.movedim(2, 0).flatten(0, 2)).unflatten(0, (len(u), -1))[
            :, :samples
        ]
        low, high = band(drawn.transpose(0, 1), level)
        effective = effective_sizes(states).amin(1)
    else:
        drawn, acceptance, beta, effective = (
            v[:, None][:, :0],
            *torch.zeros(2, len(u), 2),
            torch.zeros(len(u)),
        )
        half = NormalDist().inv_cdf((1 + level) / 2) * _deviations(prior, H)
        low, high = v - half, v + half
    v, low, high, drawn = (like(f, u_observed) for f in (v, low, high, drawn))
    return Inversion(v, low, high, drawn, acceptance, beta, effective)


def _check(O: Operator, u: Tensor, prior: GaussianPrior) -> None:
    """Raise if O does not answer the prior's functions with functions like those observed."""
    own = tuple(prior.root.shape[1:])
    try:
        answer: Any = O(prior.root[:1])
    except TransduceError as error:
        raise TransduceError(
            f"functions of the prior have shape {own}, which O does not take ({error}) Give a "
            "prior on another grid."
        ) from None
    if u.ndim < 2 or not len(u) or u.shape[1:] != answer.shape[1:]:
        expected = ", ".join(map(str, ("m", *answer.shape[1:])))
        raise TransduceError(
            f"u_observed has shape {tuple(u.shape)}; expected ({expected}), as O answers "
            f"functions of the prior, which have shape {own}. "
            "Give both on O's grid; for a single function, give u[None]."
        )


@torch.no_grad()
def errors_of(O: ConditionedOperator) -> Float[Tensor, "r ..."]:
    """Modes r_j of O's errors, their covariance being sum_j r_j r_j^T: those of U that have nearly
    all of their variance.

    Errors are what O would answer at each of its examples, of up to LEFT_OUT, without that one,
    less what it should. A few of them span too little to say how modes go together, but each has
    its variance."""
    regressions = many_regressions(O.T, O.examples, all_but_one(len(O.examples))[:LEFT_OUT])
    answers: list[Tensor] = []
    for block in regressions:
        answers += [block[i, len(answers) + i] for i in range(len(block))]
    errors = torch.stack(answers) - regressions.u[:LEFT_OUT]
    variances, places = (
        O.T.encode(O.T.U, errors, O.x, "errors")[0].square().mean(0).sort(descending=True)
    )
    count = int((variances.cumsum(0) < ALL * variances.sum()).sum()) + 1
    modes = variances.new_zeros(count, len(variances))
    modes[range(count), places[:count]] = variances[:count].sqrt()
    return O.T.U.decode(modes, regressions.at)


@dataclass(frozen=True)
class Noise:
    """C^-1/2: noise everywhere, and less of a few orthonormal directions, by `shares`."""

    deviation: float
    directions: Float[Tensor, "p r"]
    shares: Float[Tensor, " r"]

    def whitened(self, f: Float[Tensor, "*b p"]) -> Float[Tensor, "*b p"]:
        return (f - f @ self.directions * self.shares @ self.directions.T) / self.deviation


def noise_of(noise: float, u: Float[Tensor, "m ..."], errors: Any) -> Noise:
    """C^-1/2 from the modes of O's errors, which are functions like u."""
    r = u[:0] if errors is None else to_tensor(errors, "errors").to(u)
    if r.shape[1:] != u.shape[1:]:
        raise TransduceError(
            f"errors have shape {tuple(r.shape)}, u_observed {tuple(u.shape)}; expected the same "
            "but for how many there are. Give both on "
            "one grid."
        )
    _, sizes, directions = torch.linalg.svd(r.flatten(1), full_matrices=False)
    return Noise(noise, directions.T, 1 - noise / (noise**2 + sizes**2).sqrt())


@dataclass(frozen=True)
class Posterior:
    """E, its gradient and its curvature, for m observed functions at once."""

    O: Operator
    u: Float[Tensor, "m ..."]
    prior: GaussianPrior
    noise: Noise

    def answers(self, xi: Float[Tensor, "m b d"]) -> Float[Tensor, "m b p"]:
        """C^-1/2 O(v)."""
        u: Any = self.O(self.prior.fields(xi.flatten(0, 1)))
        return self.noise.whitened(u.double().flatten(1)).unflatten(0, xi.shape[:2])

    @cached_property
    def observed(self) -> Float[Tensor, "m p"]:
        """C^-1/2 u."""
        return self.noise.whitened(self.u.flatten(1))

    def energy(self, xi: Float[Tensor, "m b d"]) -> Float[Tensor, "m b"]:
        """E; infinite where O's answer is not a number."""
        misfits = self.observed[:, None] - self.answers(xi)
        return ((misfits.square().sum(-1) + xi.square().sum(-1)) / 2).nan_to_num(nan=math.inf)

    def gradient(self, xi: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        with torch.enable_grad():
            xi = xi.detach().requires_grad_()
            answers = self.answers(xi[:, None])[:, 0]
            if not answers.requires_grad:
                raise TransduceError(
                    "the answers of O carry no gradient; expected an operator that torch can "
                    "differentiate in v."
                )
            (back,) = torch.autograd.grad(answers, xi, answers.detach() - self.observed)
        return xi.detach() + back

    def curvature(self, xi: Float[Tensor, "m d"]) -> Float[Tensor, "m d d"]:
        """H = I + A^T C^-1 A."""
        identity = torch.eye(xi.shape[1], dtype=xi.dtype)
        ahead, behind = (
            self.answers(xi[:, None] + step * identity) for step in (DIFFERENCE, -DIFFERENCE)
        )
        A = (ahead - behind) / (2 * DIFFERENCE)
        return identity + A @ A.mT


def most_probable(posterior: Posterior) -> tuple[Float[Tensor, "m d"], Float[Tensor, "m d d"]]:
    """xi* and H there, by Gauss-Newton steps of the best of a few lengths; H is renewed when they
    slow down."""
    m, d = len(posterior.u), len(posterior.prior.root)
    starts = torch.randn(STARTS, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    xi = starts[posterior.energy(starts.expand(m, -1, -1)).argmin(1)]
    H, before = posterior.curvature(xi), math.inf
    for _ in range(ITERATIONS):
        gradient = posterior.gradient(xi)
        step = -torch.linalg.solve(H, gradient)
        promised = float((-gradient * step).sum(1).max()) / 2
        if promised < SETTLED:
            break
        if promised > before / 10:
            H = posterior.curvature(xi)
            step = -torch.linalg.solve(H, gradient)
        trials = torch.cat([xi[:, None], xi[:, None] + LENGTHS[:, None] * step[:, None]], 1)
        best = posterior.energy(trials).argmin(1)
        xi, before = trials[torch.arange(m), best], promised
        if not best.any():
            break
    if promised > 0.1:
        warnings.warn(
            "the search for the most probable input ended where a step still promised "
            f"{promised:.2g} nats: O may be too rough for its "
            "gradients, or noise too small. Look at O(v) beside u_observed.",
            stacklevel=4,
        )
    return xi, posterior.curvature(xi)


def crank_nicolson(
    posterior: Posterior,
    xi: Float[Tensor, "m d"],
    H: Float[Tensor, "m d d"],
    steps: int,
    chains: int,
    generator: torch.Generator,
) -> tuple[Float[Tensor, "t c m d"], Float[Tensor, "m 2"], Float[Tensor, "m 2"]]:
    """The states of the chains, which all start from xi, after burn-in, a step of each kind apart;
    the share of steps taken; beta."""
    eigenvalues, directions = torch.linalg.eigh(H)
    best, precision = xi[:, None] @ directions, eigenvalues[:, None].clamp(min=1)
    kinds = ((best, precision), (torch.zeros_like(best), torch.ones_like(precision)))
    odds = taken = torch.zeros(len(xi), 2, dtype=xi.dtype)
    y, states, burn_in = best.repeat(1, chains, 1), [], max(BURN_IN, steps)
    E = posterior.energy(y @ directions.mT)
    for number in range(burn_in + steps):
        beta, shares = odds.sigmoid(), []
        for (c, pi), size in zip(kinds, beta.T[..., None, None], strict=True):
            eta = torch.randn(y.shape, dtype=y.dtype, generator=generator)
            proposed = (
                c + (1 - size**2 * pi / precision).sqrt() * (y - c) + size * eta / precision.sqrt()
            )
            E_proposed = posterior.energy(proposed @ directions.mT)
            gain = E - E_proposed - (pi * ((y - c).square() - (proposed - c).square())).sum(-1) / 2
            accepted = torch.rand(E.shape, dtype=y.dtype, generator=generator).log() < gain
            y, E = (
                torch.where(accepted[..., None], proposed, y),
                torch.where(accepted, E_proposed, E),
            )
            shares.append(accepted.double().mean(1))
        if number < burn_in:
            odds = odds + (torch.stack(shares, 1) - ACCEPTANCE) * PACE / math.sqrt(1 + number)
        else:
            taken = taken + torch.stack(shares, 1) / steps
            states.append((y @ directions.mT).transpose(0, 1))
    return torch.stack(states), taken, beta


def _deviations(prior: GaussianPrior, H: Float[Tensor, "m d d"]) -> Float[Tensor, "m ..."]:
    """The pointwise standard deviation of v under Laplace's approximation."""
    root = prior.root.flatten(1).expand(len(H), -1, -1)
    variance = (root * torch.linalg.solve(H, root)).sum(1)
    return variance.clamp(min=0).sqrt().unflatten(1, prior.root.shape[1:])
