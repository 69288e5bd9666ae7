"""Weights of several answers, by the leave-one-out errors of each.

    w_j = softmax_j(a_j - b log <r_j^2> - b' log <|r_j|^2>),        b, b' proportional to n^e

r_j are the leave-one-out residuals of answer j. The first mean is over one coefficient of u, so
that each coefficient may have its own weights; the second is over all of them. One more answer is
0, whose residual is u itself. The preferences a, the trust b, b' and its growth e are learned.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..configs import Part

FLOOR = 1e-12  # of leave-one-out errors relative to u; there is nothing to choose below it
TYPICAL = 50  # number of examples at which trust is as learned, whatever its growth
TINY = 1e-200


class Mixer(Part):
    """Weights of several answers.

    Args:
        answers: how many there are, not counting 0.
        preferences: size of U if coefficients have their own preferences, or 1.
        start: logarithms of b and b' before training.
    """

    def __init__(self, answers: int, preferences: int = 1, start: Sequence[float] = (-1.0, -1.0)):
        super().__init__()
        self.answers, self.preferences, self.start = answers, preferences, tuple(start)
        first = 0.1 * torch.randn(answers + 1, 1)
        self.preference = nn.Parameter(first.repeat(1, preferences))
        self.log_trust = nn.Parameter(torch.tensor(self.start))
        self.growth = nn.Parameter(torch.tensor(0.5))

    def forward(
        self,
        residuals: Float[Tensor, "b j n q"],
        u: Float[Tensor, "b n q"],
        count: Float[Tensor, " b"],
    ) -> Float[Tensor, "b j q"]:
        """The weights of the answers for each coefficient; they sum to 1 minus the weight of 0."""
        squares = torch.cat([residuals.square().sum(-2), u.square().sum(-2)[:, None]], 1)
        errors = squares / count[:, None, None]
        unit = errors[:, -1:].sum(-1, keepdim=True).clamp(min=TINY)
        growth = self.growth * (count[:, None, None] / TYPICAL).log()
        trust = (self.log_trust[:, None, None, None] + growth).double().exp()
        logits = self.preference.double() - trust[0] * (errors / unit + FLOOR).log()
        logits = logits - trust[1] * (errors.sum(-1, keepdim=True) / unit + FLOOR).log()
        return logits.softmax(1)[:, :-1]


def mixed(
    weights: Float[Tensor, "b j q"],
    residuals: Float[Tensor, "b j n q"],
    u: Float[Tensor, "b n q"],
) -> Float[Tensor, "b n q"]:
    """The residuals of the weighted sum of answers."""
    rest = 1 - weights.sum(1)[:, None]
    return (weights[:, :, None] * residuals).sum(1) + rest * u


def blame(
    weights: Float[Tensor, "b j q"], residual: Float[Tensor, "b n q"]
) -> Float[Tensor, "b j"]:
    """The share of each answer in the error of their weighted sum."""
    squares = residual.double().square().sum(-2)[:, None] + TINY
    share = (weights * squares).sum(-1)
    return share / share.sum(1, keepdim=True)
