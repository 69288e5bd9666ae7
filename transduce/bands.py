"""Bands from leave-one-out residuals, aimed at a share of the values on average, and wider for
functions that are less sure.

    |u(x) - u_hat(x)| <= q s(v, x),
    s(v, x) = d(v, x) |u_hat|^p,
    q the quantile of |r_i(x)| / s(v_i, x) over examples and points

r_i is the residual of example i when it is left out, d its standard deviation by the kernel (left
out too), the same at all points for some kernels, and |u_hat| the root mean square of the answer:
where an operator amplifies, errors grow with it. p is the one of a few with the best interval score
(Winkler) on the examples themselves. The width is the operator's own; it comes without a guarantee,
as residuals that have chosen p, and the mixture before, are a little too small.

    W = width + (2 / alpha) (how far outside)        for a band of level 1 - alpha
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import torch
from jaxtyping import Float
from torch import Tensor

POWERS = (0.0, 0.5, 1.0, 1.5, 2.0)
# between 0, where a function's points err each on its own, and 1, all together; validation
# operators ask for about half
MARGIN = 0.6


def interval_score(
    error: Float[Tensor, "*s"], half_width: Float[Tensor, "*t"], level: float
) -> Float[Tensor, "*s"]:
    """Winkler's score of a band about the answer: the lower, the better."""
    return 2 * half_width + 2 / (1 - level) * (error.abs() - half_width).clamp(min=0)


def half_widths_of(
    residuals: Float[Tensor, "n ..."],
    answers: Float[Tensor, "n ..."],
    deviations: Float[Tensor, "n ..."],
    query_answers: Float[Tensor, "m ..."],
    query_deviations: Float[Tensor, "m ..."],
    level: float,
) -> Float[Tensor, "m k"]:
    """The half-width of the band for each query, from the examples' residuals, answers and
    deviations, each example left out. k is 1, or the number of points if deviations have these."""
    n, sizes = len(residuals), residuals.abs().flatten(1)
    share = min(1.0, level * (1 + MARGIN / n))
    own, others = (d.reshape(len(d), -1) for d in (deviations, query_deviations))
    # An answer of nothing says nothing of its error.
    smallest = 1e-3 * _size(residuals + answers).mean()

    def scored(p: float) -> tuple[float, Tensor]:
        scales = own * _size(answers).clamp(min=smallest)[:, None] ** p
        q = quantile(sizes / scales, share)
        score = float(interval_score(sizes, q * scales, level).mean())
        return score, q * others * _size(query_answers)[:, None] ** p

    best, half_widths = scored(POWERS[0])
    for p in POWERS[1:]:
        score, candidate = scored(p)
        if score < best * (1 - 1e-6):
            best, half_widths = score, candidate
    return half_widths


def half_widths_by_channel(
    residuals: Float[Tensor, "n ..."],
    answers: Float[Tensor, "n ..."],
    deviations: Float[Tensor, "n ..."],
    query_answers: Float[Tensor, "m ..."],
    query_deviations: Float[Tensor, "m ..."],
    level: float,
    channels: int,
) -> Float[Tensor, "m ..."]:
    """The same for functions of several channels, each with a band of its own; in a shape that
    can be added to the queries' answers."""

    def split(f: Tensor) -> Sequence[Float[Tensor, "n p"]]:
        if f.ndim == 1:  # the same for all channels and points
            return f[:, None, None].expand(-1, channels, 1).unbind(1)
        return f.reshape(len(f), channels, -1).unbind(1)

    given = (residuals, answers, deviations, query_answers, query_deviations)
    r, a, d, m, e = map(split, given)
    parts = [half_widths_of(r[k], a[k], d[k], m[k], e[k], level) for k in range(channels)]
    half = torch.stack(parts, 1)  # (m, c, k)
    if half.shape[-1] > 1:
        return half.reshape(query_answers.shape)
    lead = 1 + (channels > 1)
    return half.reshape(*query_answers.shape[:lead], *[1] * (query_answers.ndim - lead))


def at_least(half: Tensor, deviations: Tensor, level: float) -> Tensor:
    """Half-widths that cannot be smaller than a normal distribution's of these deviations."""
    return torch.hypot(half, NormalDist().inv_cdf((1 + level) / 2) * deviations)


def quantile(values: Tensor, share: float) -> Tensor:
    """The smallest value that at least this share of all do not exceed."""
    flat = values.flatten().sort().values
    return flat[min(len(flat) - 1, max(0, math.ceil(share * len(flat) - 1e-6) - 1))]


def _size(f: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
    """The root mean square of each function; never zero."""
    return f.flatten(1).square().mean(1).sqrt().clamp(min=1e-30)
