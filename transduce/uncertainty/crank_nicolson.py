"""Samples of a posterior by preconditioned Crank-Nicolson steps.

In the directions of H, whose eigenvalues are lambda,

    xi' = c + sqrt(1 - beta^2 pi / lambda) (xi - c) + beta eta / sqrt(lambda),      eta ~ N(0, I)

leaves N(c, 1 / pi) invariant and is accepted with probability min(1, exp(Psi(xi) - Psi(xi'))),
Psi = E - sum pi (xi - c)^2 / 2. Two kinds take turns. About xi*, pi = lambda: Psi is constant if O
is linear, so that every step is accepted. About 0, pi = 1: Psi is the misfit, and tails that
Laplace's approximation lacks are sampled too. Each kind has its beta, adapted during burn-in for
each observed function. All chains are one batch of queries. They start from xi*, and do not find a
second mode far from it.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from .posterior import Posterior

BURN_IN = 100  # steps at least
ACCEPTANCE = 0.3  # aimed at; a larger one is welcome where beta = 1
ADAPTATION = 4.0  # rate of beta's adaptation


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
            odds = odds + (torch.stack(shares, 1) - ACCEPTANCE) * ADAPTATION / math.sqrt(1 + number)
        else:
            taken = taken + torch.stack(shares, 1) / steps
            states.append((y @ directions.mT).transpose(0, 1))
    return torch.stack(states), taken, beta
