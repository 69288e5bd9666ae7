"""Which run to make next.

    gain(v) = sum_w a(w) c(w, v)^2 / (c(v, v) + noise / a(v))

is by how much the expected squared error, summed over all candidates w, falls if the image of v
becomes known; c is the covariance of what the examples leave unknown, and a says where their images
vary more than elsewhere. It needs no image: after each choice c is updated, so several runs are
chosen at once.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..kernels.comparison import evenly
from ..kernels.posterior import Posterior
from ..types import TransduceError

LEAST = 1e-4  # variance, in units of the largest, below which a candidate counts as known
REFERENCES = 1000  # candidates whose errors are summed where there are more


def count_of(k: object, m: int) -> int:
    """k as a number. Raises unless so many of m candidates can be chosen."""
    if isinstance(k, int | np.integer) and not isinstance(k, bool) and 1 <= k <= m:
        return int(k)
    near = min(max(1, k), m) if isinstance(k, int | float) and k == k else 1
    raise TransduceError(
        f"k={k!r} of {m} candidates; expected a whole number from 1 to {m}. Give k={int(near)}."
    )


def suggested(
    posteriors: list[tuple[float, Posterior]], candidates: Float[Tensor, "m d"], k: int
) -> Int[np.ndarray, " k"]:
    """The numbers of the k candidates of largest gain, in the order in which to run them.

    Args:
        posteriors: covariances of what is unknown, with weights.
        candidates: inputs to choose from.
        k: how many to choose.
    """
    few = evenly(len(candidates), REFERENCES)
    c = _mixed(posteriors, candidates, candidates[few])
    a = _local(posteriors, candidates)
    noise = sum(weight * posterior.noise for weight, posterior in posteriors) / a
    own = torch.cat(
        [_mixed(posteriors, part, part).diagonal() for part in candidates.split(REFERENCES)]
    )
    factors: list[Float[Tensor, " m"]] = []
    chosen: list[int] = []
    for _ in range(k):
        unknown = (own + noise).clamp(min=max(LEAST * float(own.max()), 1e-300))
        gain = c.square() @ a[few] / unknown
        gain[chosen] = -1.0
        best = int(gain.argmax())
        column = _mixed(posteriors, candidates, candidates[best : best + 1])[:, 0]
        for factor in factors:
            column = column - factor * factor[best]
        factor = column / unknown[best].sqrt()
        c, own = c - factor[:, None] * factor[few], (own - factor.square()).clamp(min=0)
        chosen.append(best)
        factors.append(factor)
    return np.array(chosen)


def _local(
    posteriors: list[tuple[float, Posterior]], v: Float[Tensor, "m d"]
) -> Float[Tensor, " m"]:
    """a, the mean over posteriors by how much each leaves unknown."""
    sizes = [weight * posterior.amplitude for weight, posterior in posteriors]
    parts = [size * p.local_amplitudes(v) for size, (_, p) in zip(sizes, posteriors, strict=True)]
    return torch.stack(parts).sum(0) / max(sum(sizes), 1e-300)


def _mixed(
    posteriors: list[tuple[float, Posterior]], v: Float[Tensor, "m d"], w: Float[Tensor, "k d"]
) -> Float[Tensor, "m k"]:
    """The weighted covariances of all pairs."""
    parts = [weight * posterior.covariances(v, w) for weight, posterior in posteriors]
    return torch.stack(parts).sum(0)
