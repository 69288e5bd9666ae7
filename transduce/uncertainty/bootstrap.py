"""Bands as wide, at each point, as regressions from half of the examples differ there.

    |u(x) - O(v)(x)| <= q s(v)(x),      s(v)(x)^2 = the variance of T(D_m)(v)(x) over half-splits m

Half of n examples, drawn without putting back, vary about all n as those vary about infinitely
many. What they differ by says where an answer is unsure, not by how much: q is the quantile of
|r_i(x)| / s(v_i)(x), r_i being what is left of example i when it is left out, and s(v_i) the
deviation among the half-splits that do not use it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..bands import quantile
from ..transducer import Transducer
from ..types import ExampleSet, TransduceError, like, to_tensor
from .many import Progress, all_but_one, half_splits, many_regressions

LEAST = 0.1  # of the root mean square over x: nowhere is an answer much surer than elsewhere


def bootstrap(
    T: Transducer,
    examples: ExampleSet,
    v: object,
    level: float = 0.9,
    n_regressions: int = 100,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> tuple[Any, Any, Any]:
    """The images of v, and the lower and the upper end of a band that is meant to hold this share
    of their values.

    >>> mean, low, high = bootstrap(T, examples, v, level=0.9)
    """
    if not 0 < level < 1:
        raise TransduceError(
            f"level={level}; expected a share of the values between 0 and 1, like 0.9."
        )
    n, u = len(examples), to_tensor(examples.u, "examples.u")
    halves = half_splits(n, n_regressions, generator or torch.Generator().manual_seed(0))
    if (~halves).sum(0).min() < 2:
        raise TransduceError(
            f"n_regressions={n_regressions} of {n} examples leave one out less than twice; "
            "expected more, like 100."
        )
    left_out, spread = _passes(
        many_regressions(T, examples, torch.cat([all_but_one(n), halves]), v, progress), n
    )
    q = quantile((left_out - u.to(left_out)).abs() / spread[:n], level)
    mean = T.regress(examples)(v)
    middle = to_tensor(mean, "answers")
    half = (q * spread[n:]).to(middle.device)
    return mean, like(middle - half, mean, of=mean), like(middle + half, mean, of=mean)


def _passes(
    regressions: Iterable[Tensor], n: int
) -> tuple[Float[Tensor, "n ..."], Float[Tensor, "m ..."]]:
    """Of n regressions that leave each example out in turn, its own answers; of those that follow,
    the deviation of all answers."""
    left_out: list[Tensor] = []
    sums: Any = torch.zeros(3)  # of ones, of answers and of their squares
    for answers in regressions:
        alone = min(len(answers), n - len(left_out))
        left_out += [answers[i, len(left_out) + i] for i in range(alone)]
        halves = answers[alone:].double()
        there = ~halves.isnan()
        halves = halves.where(there, 0)
        sums = [
            a + b
            for a, b in zip(
                sums, (there.sum(0), halves.sum(0), halves.square().sum(0)), strict=True
            )
        ]
    count, total, squares = sums
    variance = (squares - total**2 / count) / (count - 1)
    typical = variance.flatten(1).mean(1).reshape(-1, *[1] * (variance.ndim - 1))
    return torch.stack(left_out), variance.clamp(min=LEAST**2 * typical).sqrt().clamp(min=1e-30)
