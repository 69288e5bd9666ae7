"""Markov chains: what is asked of them, and what they are worth.

    effective size of c chains of t states      t c / tau,      tau = 1 + 2 sum_s rho_s

rho_s, the correlation of states s steps apart, counts chains that disagree as correlated. The sum
ends where pairs of neighbouring terms stop being positive, and they never rise before that (Geyer
1992; Vehtari et al. 2021)."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from ..types import TransduceError


def check_sampling(noise: float, level: float, samples: int, chains: int, fewest: int) -> None:
    """Raise if there is nothing to sample, or no such band; fewest: samples that make sense."""
    if not 0 < noise < math.inf:
        raise TransduceError(
            f"noise={noise}; expected the size of the errors in what was observed, above 0. Give "
            "an estimate of it."
        )
    if not 0 < level < 1:
        raise TransduceError(
            f"level={level}; expected a share of the values between 0 and 1, like 0.9."
        )
    if samples < fewest or chains < 1:
        raise TransduceError(
            f"samples={samples} from chains={chains}; expected at least {fewest} from at least "
            "one. Give more."
        )


def band(
    samples: Float[Tensor, "s ..."], level: float
) -> tuple[Float[Tensor, "*f"], Float[Tensor, "*f"]]:
    """The ends, at each point, of the interval that leaves as many samples below as above it."""
    ordered, last = samples.sort(0).values, len(samples) - 1

    def quantile(share: float) -> Tensor:
        place = share * last
        return torch.lerp(
            ordered[math.floor(place)], ordered[math.ceil(place)], place - math.floor(place)
        )

    return quantile((1 - level) / 2), quantile((1 + level) / 2)


def effective_sizes(states: Float[Tensor, "t c *f"]) -> Float[Tensor, "*f"]:
    """The effective size of each component; 1 where chains are too short to tell, or never
    moved."""
    t, chains = states.shape[:2]
    if t < 4:
        return torch.ones_like(states[0, 0])
    means = states.mean(0)
    spectrum = torch.fft.rfft(states - means, n=2 * t, dim=0)
    covariance = torch.fft.irfft(spectrum.abs().square(), n=2 * t, dim=0)[:t].mean(1) / t
    variance = covariance[0] + (means.var(0) if chains > 1 else 0.0)
    rho = 1 - (covariance[0] * t / (t - 1) - covariance) / variance.clamp(min=1e-300)
    pairs = rho[: t - t % 2].unflatten(0, (-1, 2)).sum(1)
    tau = 2 * pairs.cummin(0).values.clamp(min=0).sum(0) - 1
    return torch.where(variance > 0, t * chains / tau.clamp(min=1), 1.0)
