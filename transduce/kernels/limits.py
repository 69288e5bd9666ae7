"""How far answers may deviate from the mean of the examples.

Far from all examples some answers explode. Each may therefore exceed the largest deviation of the
examples' u from their mean only by a factor

    (1.3 + (1 / (e_j + 1 / 2n) - 1) / 2) rho^max(0, 1 - e_j - 1 / n),
    rho = max(1, |v - m| / max_i |v_i - m|)

which is the larger, the smaller the leave-one-out error e_j in units of the mean's. m is the mean
of the examples' v. Each block of columns of v is in units of its own variance. Before that,
deviations are divided by

    1 + e_j^2 (rho^2 - 1) / 2:

beyond the examples an answer with a large error extrapolates less.

Where rho exceeds 2, examples say little about the answer. Its standard deviation is then at least a
share 1 - 2 / rho of half the largest deviation of the examples' u, whatever the errors at the
examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

CONSTANT = 1e-12  # deviation of a column, relative to its mean, that is only rounding
CONSTANT_FACTOR = 1.3  # of the largest deviation of the examples' u
LARGEST = 1e6  # rho
FAR = 2.0  # rho beyond which examples say little
LIMITS = (
    "mean",
    "limit",
    "power",
    "damping",
    "center",
    "scale",
    "reach",
)  # of a fit, which a refit keeps


@runtime_checkable
class HasLimits(Protocol):
    """A fit with what `limits_of` returns."""

    @property
    def center(self) -> Tensor: ...
    @property
    def scale(self) -> Tensor: ...
    @property
    def reach(self) -> Tensor: ...
    @property
    def limit(self) -> Tensor: ...
    @property
    def mean(self) -> Tensor: ...
    @property
    def power(self) -> Tensor: ...
    @property
    def damping(self) -> Tensor: ...


def limits_of(
    v: Float[Tensor, "b n d"],
    u: Float[Tensor, "b n q"],
    residuals: Float[Tensor, "b j n q"],
    there: Float[Tensor, "b n"],
    blocks: Sequence[int],
) -> dict[str, Tensor]:
    """The means of the examples, and how far answers may deviate from that of u.

    Args:
        v: inputs.
        u: outputs.
        residuals: leave-one-out residuals of each answer.
        there: 1 for examples, 0 for padding.
        blocks: numbers of columns of v that have one unit.
    """
    n = there.sum(1).clamp(min=1)[:, None, None]
    mean = (u * there[..., None]).sum(1, keepdim=True) / n
    away = (u - mean).abs() * there[..., None]
    size = (away.square().sum((1, 2), keepdim=True) / (n * u.shape[2])).sqrt()
    errors = (residuals.square() * there[:, None, :, None]).sum((2, 3))
    errors = errors / errors[:, :1].clamp(min=1e-300)
    factor = CONSTANT_FACTOR + (1 / (errors + 1 / (2 * n[..., 0])) - 1).clamp(min=0) / 2
    center = (v * there[..., None]).sum(1, keepdim=True) / n
    squares = ((v - center).square() * there[..., None]).sum(1, keepdim=True) / n
    scale = torch.where(squares.sqrt() > CONSTANT * center.abs(), _scales(squares, blocks), 0.0)
    reach = (((v - center) * scale).norm(dim=-1) * there).max(1, keepdim=True).values
    largest = away.max(1, keepdim=True).values + size / 4
    return {
        "mean": mean[:, None],
        "limit": largest[:, None] * factor[..., None, None],
        "power": (1 - errors - 1 / n[..., 0]).clamp(min=0)[..., None, None],
        "damping": errors.clamp(max=1).square()[..., None, None] / 2,
        "center": center,
        "scale": scale,
        "reach": reach.clamp(min=1e-300),
    }


def _scales(squares: Float[Tensor, "b 1 d"], blocks: Sequence[int]) -> Float[Tensor, "b 1 d"]:
    """The factor of each column that gives its block the size 1; 0 for constant ones."""
    sums = [part.sum(-1, keepdim=True).expand_as(part) for part in squares.split(list(blocks), -1)]
    size = torch.cat(sums, -1)
    varying = torch.where(size > 0, size, 1.0)  # a root has no derivative at 0
    return torch.where(size > 0, 1 / varying.sqrt(), 0.0)


def rho_of(v: Float[Tensor, "b m d"], limits: HasLimits) -> Float[Tensor, "b m"]:
    """How far queries are from the mean of the examples, in units of the furthest example."""
    size = ((v - limits.center) * limits.scale).norm(dim=-1)
    return (size / limits.reach).clamp(1, LARGEST)


def bounded(
    answers: Float[Tensor, "b j m q"],
    v: Float[Tensor, "b m d"],
    limits: HasLimits,
    which: slice | list[int],
) -> Float[Tensor, "b j m q"]:
    """Answers within the limits. which: their numbers among those that have limits."""
    rho = rho_of(v, limits)[:, None, :, None]
    mean, damping = limits.mean.to(v), limits.damping[:, which]
    limit = (limits.limit[:, which] * rho ** limits.power[:, which]).to(v)
    beyond = (answers - mean) / (1 + damping * (rho**2 - 1)).to(v)
    return mean + torch.minimum(torch.maximum(beyond, -limit), limit)


def unknown_beyond(rho: Float[Tensor, "b m"], limits: HasLimits) -> Float[Tensor, "b m q"]:
    """The least standard deviation of answers to queries far beyond the examples."""
    share = (1 - FAR / rho).clamp(min=0)[..., None]
    return share * limits.limit[:, 0] / (2 * CONSTANT_FACTOR)
