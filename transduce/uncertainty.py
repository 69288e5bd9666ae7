"""Bands from leave-one-out residuals: conformal prediction, with a width that knows where it is unsure.

    |u(x) - u_hat(x)| <= q s(v),        s(v) = d(v) |u_hat|^p,        q the quantile of |r_i(x)| / s(v_i) over examples and points

r_i is the residual of example i when it is left out, d its standard deviation under the kernel's Gaussian process (left out too), and
|u_hat| the root mean square of the answer: where an operator amplifies, errors grow with it. p is the one of a few with the best
interval score (Winkler) on the examples themselves. Nothing is fitted beforehand: the width is the operator's own.

    W = width + (2 / alpha) (how far outside)        for a band of level 1 - alpha
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

POWERS = (0.0, 0.5, 1.0, 1.5, 2.0)


def interval_score(error: Float[Tensor, "*s"], half_width: Float[Tensor, "*t"], level: float) -> Float[Tensor, "*s"]:
    """Winkler's score of a band about the answer: the lower, the better."""
    return 2 * half_width + 2 / (1 - level) * (error.abs() - half_width).clamp(min=0)


def conformal_half_widths(
    residuals: Float[Tensor, "n ..."],
    answers: Float[Tensor, "n ..."],
    deviations: Float[Tensor, " n"],
    query_answers: Float[Tensor, "m ..."],
    query_deviations: Float[Tensor, " m"],
    level: float,
) -> Float[Tensor, " m"]:
    """The half-width of the band for each query, from the examples' residuals, answers and deviations, each example left out."""
    n, sizes = len(residuals), residuals.abs().flatten(1)
    share = min(1.0, level * (1 + 0.6 / n))  # 1 / n if all of a function's points erred together, 0 if each on its own

    def scored(p: float) -> tuple[float, Tensor]:
        scales = (deviations * _size(answers) ** p)[:, None]
        q = quantile(sizes / scales, share)
        return float(interval_score(sizes, q * scales, level).mean()), q * query_deviations * _size(query_answers) ** p

    return min((scored(p) for p in POWERS), key=lambda candidate: candidate[0])[1]


def quantile(values: Tensor, share: float) -> Tensor:
    """The smallest value that at least this share of all do not exceed."""
    flat = values.flatten().sort().values
    return flat[min(len(flat) - 1, max(0, int(share * len(flat) + 0.5) - 1))]


def _size(f: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
    """The root mean square of each function; never zero."""
    return f.flatten(1).square().mean(1).sqrt().clamp(min=1e-30)
