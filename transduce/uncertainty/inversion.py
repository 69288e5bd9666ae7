"""The input behind an observed output, and how sure one can be of it.

    u = O(v) + e,
    e ~ N(0, C),   C = noise^2 I + sum_j r_j r_j^T,
    v = sum_i xi_i root_i,   xi ~ N(0, I)

r_j are modes of the errors of O itself, where these count. `posterior` finds the most probable xi,
and `crank_nicolson` samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..conditioned import ConditionedOperator
from ..types import Operator, TransduceError, like, to_tensor
from .chains import band, check_sampling, effective_sizes
from .crank_nicolson import crank_nicolson
from .gaussian_prior import GaussianPrior as GaussianPrior
from .many import all_but_one, many_regressions
from .posterior import Posterior, most_probable, noise_of

LEFT_OUT = 64  # examples, for the errors of O itself
ALL = 0.999  # of their variance, nearly


@dataclass(frozen=True, eq=False)
class Inversion:
    """The posterior of m inputs.

    Attributes:
        v: the most probable inputs, (m, *grid).
        low: lower ends of their bands, of the same shape.
        high: upper ends.
        samples: (m, samples, *grid).
        acceptance: share of accepted steps of each function's chains, about xi* and about 0.
        beta: size of these steps.
        effective: effective sample size, in the direction with the smallest.
    """

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
    u_observed: object,
    prior: GaussianPrior,
    *,
    noise: float,
    errors: object = None,
    samples: int = 0,
    chains: int = 16,
    level: float = 0.9,
    generator: torch.Generator | None = None,
) -> Inversion:
    """The inputs v behind observed outputs u = O(v) + noise.

    Args:
        O: what `regress` returned, or any operator that torch can differentiate.
        u_observed: (m, *grid), where O answers; elsewhere, give lambda v: O(v, at=places) as O.
        prior: what the inputs are drawn from.
        noise: standard deviation of the error of u_observed at each point.
        errors: modes of O's own errors, (r, *grid), if not small against noise: `errors_of(O)`.
        samples: number to draw for each function, after as many that are not kept.
        chains: number of Markov chains that draw them.
        level: of the pointwise band, from the samples or, without any, from Laplace.
        generator: of the samples.

    >>> found = invert(O, u_observed, prior, noise=0.02, errors=errors_of(O), samples=1000)
    >>> found.v, found.low, found.high
    """
    check_sampling(noise, level, samples, chains, fewest=0)
    u = to_tensor(u_observed, "u_observed").double().cpu()
    _check(O, u, prior)
    posterior = Posterior(O, u, prior, noise_of(noise, u, errors))
    xi, H = most_probable(posterior)
    v = prior.fields(xi)
    if not samples:
        half = NormalDist().inv_cdf((1 + level) / 2) * _deviations(prior, H)
        none, (taken, beta) = torch.zeros(len(u)), torch.zeros(2, len(u), 2)
        v, low, high, drawn = (
            like(f, u_observed) for f in (v, v - half, v + half, v[:, None][:, :0])
        )
        return Inversion(v, low, high, drawn, taken, beta, none)
    generator = generator or torch.Generator().manual_seed(0)
    steps = -(-samples // chains)
    states, taken, beta = crank_nicolson(posterior, xi, H, steps, chains, generator)
    drawn = prior.fields(states.movedim(2, 0).flatten(0, 2)).unflatten(0, (len(u), -1))
    drawn = drawn[:, :samples]
    ends = band(drawn.transpose(0, 1), level)
    v, low, high, drawn = (like(f, u_observed) for f in (v, *ends, drawn))
    return Inversion(v, low, high, drawn, taken, beta, effective_sizes(states).amin(1))


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


def _deviations(prior: GaussianPrior, H: Float[Tensor, "m d d"]) -> Float[Tensor, "m ..."]:
    """The pointwise standard deviation of v under Laplace's approximation."""
    root = prior.root.flatten(1).expand(len(H), -1, -1)
    variance = (root * torch.linalg.solve(H, root)).sum(1)
    return variance.clamp(min=0).sqrt().unflatten(1, prior.root.shape[1:])
