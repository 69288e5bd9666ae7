"""Candidates for an answer, mixed by what each leaves of the examples when they are left out.

    w_j = softmax_j(a_j - b log <r_j^2> - b' log <|r_j|^2>),   b, b' ~ n^e,
    one more candidate being 0, whose residual is u itself

r_j are the leave-one-out residuals of candidate j. The first mean is of one coefficient of u, so
that each has weights of its own, the second of all. The preferences a and the trust b, which grows
with n, are learned."""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .kappa import Kappa

FLOOR = 1e-12  # of leave-one-out errors relative to u: below it there is nothing to choose


class Mixing(Kappa):
    """A kernel that answers with a mixture of candidates."""

    transforms: ClassVar[bool] = False
    leaves_out: ClassVar[bool] = True

    def start_mixing(self, candidates: int, preferences: int) -> None:
        """preferences: for each coefficient of u, or 1 for all of them alike."""
        self.preference = nn.Parameter(0.1 * torch.randn(candidates + 1, 1).repeat(1, preferences))
        self.log_trust = nn.Parameter(torch.full((2,), -1.0))
        self.growth = nn.Parameter(torch.tensor(0.5))

    def mixed(
        self, residuals: Tensor, u: Tensor, count: Tensor
    ) -> tuple[Float[Tensor, "b j q"], Float[Tensor, "b n q"]]:
        """The weights of the candidates for each coefficient, and the residuals that their mixture
        with answering zero leaves."""
        errors = (
            torch.cat([residuals.square().sum(-2), u.square().sum(-2)[:, None]], 1)
            / count[:, None, None]
        )
        unit = errors[:, -1:].sum(-1, keepdim=True).clamp(min=1e-200)
        trust = (
            (self.log_trust[:, None, None, None] + self.growth * (count[:, None, None] / 50).log())
            .double()
            .exp()
        )
        logits = self.preference.double() - trust[0] * (errors / unit + FLOOR).log()
        logits = logits - trust[1] * (errors.sum(-1, keepdim=True) / unit + FLOOR).log()
        mix, nothing = logits.softmax(1).tensor_split([-1], 1)
        return mix, (mix[:, :, None] * residuals).sum(1) + nothing * u

    @staticmethod
    def blame(mix: Tensor, residual: Tensor) -> Float[Tensor, "b j"]:
        """What each candidate counts for in the error that is left."""
        share = (mix * (residual.double().square().sum(-2)[:, None] + 1e-200)).sum(-1)
        return share / share.sum(1, keepdim=True)
