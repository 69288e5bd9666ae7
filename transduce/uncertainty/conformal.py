"""Bands from leaving each example out, with a guarantee: jackknife+ (Barber et al., 2021), at every
point on its own.

    low(x)  = the alpha (n + 1)-th smallest of u_i(x) - R_i(x),
    high(x) likewise from above of u_i(x) + R_i(x)
    u_i = T(D without i)(v),
    R_i(x) = |u_i| |T(D without i)(v_i)(x) - O(v_i)(x)| / |T(D without i)(v_i)|,
    level = 1 - alpha

Errors are measured relative to the size of the answer. If examples and v are drawn alike and alpha
(n + 1) is a whole number, a band holds O(v)(x) with a probability of at least 1 - 2 alpha whatever
the operator, and of about 1 - alpha where one example more or less changes little. Between whole
numbers, ends are interpolated; of a level so low that they pass one another, they are taken in
order."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..transducer import Transducer
from ..types import ExampleSet, TransduceError, like, to_tensor
from .many import Progress, all_but_one, many_regressions


def conformal(
    T: Transducer,
    examples: ExampleSet,
    v: object,
    level: float = 0.9,
    progress: Progress | None = None,
) -> tuple[Any, Any, Any]:
    """The images of v, and the lower and the upper end of a band for them.

    >>> mean, low, high = conformal(T, examples, v, level=0.9)
    """
    n, u = len(examples), to_tensor(examples.u, "examples.u")
    place = place_of(level, n)
    answers = torch.cat(list(many_regressions(T, examples, all_but_one(n), v, progress)))
    own, found = answers[range(n), range(n)], answers[:, n:]
    residuals = (own - u.to(own)).abs()
    R = size(found) * (residuals / size(own[:, None])[:, 0])[:, None]
    low, high = smallest(found - R, place), -smallest(-found - R, place)
    mean = T.regress(examples)(v)
    return (
        mean,
        like(torch.minimum(low, high), mean, of=mean),
        like(torch.maximum(low, high), mean, of=mean),
    )


def place_of(level: float, n: int) -> float:
    """alpha (n + 1): how far in, of n ordered ends, that of a band of this level is; or an error if
    n are too few for it."""
    if not 0 < level < 1:
        raise TransduceError(
            f"level={level}; expected a share of the values between 0 and 1, like 0.9."
        )
    place = (1 - level) * (n + 1) + 1e-9
    if place < 1:
        least = math.ceil(1 / (1 - level) - 1e-9) - 1
        raise TransduceError(
            f"a level of {level} takes at least {least} examples; {n} were given. Give more, or "
            "lower the level."
        )
    return min(place, n)


def smallest(ends: Float[Tensor, "n ..."], place: float) -> Float[Tensor, "m ..."]:
    """The one at this place among ends in order, the first being at 1."""
    below = int(place)
    found = ends.kthvalue(below, 0).values
    return (
        found
        if below == len(ends)
        else found.lerp(ends.kthvalue(below + 1, 0).values, place - below)
    )


def size(f: Float[Tensor, "r m ..."]) -> Float[Tensor, "r m ..."]:
    """The root mean square of each function, never zero, to be multiplied with functions."""
    return (
        f.flatten(2)
        .square()
        .mean(2)
        .sqrt()
        .clamp(min=1e-30)
        .reshape(*f.shape[:2], *[1] * (f.ndim - 2))
    )
