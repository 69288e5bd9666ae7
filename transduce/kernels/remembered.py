"""What is known before any example because pairs of other operators are remembered.

    O = B + delta,      B(v) = sum_m k(v_m, v) a_m,      a = (K + I)^-1 u

B is what a `Metric` kernel k tells from all pairs (v_m, u_m) that were ever seen, whichever
operator they came from: what these have in common. It is solved for once and kept in the weights.
The layers that follow regress delta, by which the operator of the examples differs from the common
one."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from .kappa import Kappa, Known
from .local import Local
from .metric import Metric


class Left(NamedTuple):
    """What B leaves of each example."""

    residual: Float[Tensor, "b n q"]
    deviation: Float[Tensor, "b n"]


class Remembered(Kappa):
    """kernel: k. pairs: how many are remembered."""

    leaves_out: ClassVar[bool] = True

    def __init__(self, kernel: Metric | Local, d_v: int, d_u: int, pairs: int):
        super().__init__()
        self.config: dict[str, Any] = {"pairs": pairs}
        self.kernel = kernel
        self.points = nn.Parameter(torch.zeros(pairs, d_v))
        self.coefficients = nn.Parameter(torch.zeros(pairs, d_u))
        self.requires_grad_(False)

    @torch.no_grad()
    def remember(
        self, kernel: Metric | Local, v: Float[Tensor, "m d_v"], u: Float[Tensor, "m d_u"]
    ) -> None:
        """Solve for B from these pairs, by the kernel that was learned."""
        self.kernel.load_state_dict(kernel.state_dict())
        self.points.copy_(v)
        self.coefficients.copy_(kernel.coefficients(v, u))

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
        known: Known | None = None,
    ) -> Left:
        return Left(u - self.B(v), torch.ones_like(u[..., 0]))

    def B(self, v: Float[Tensor, "b n d_v"]) -> Float[Tensor, "b n d_u"]:
        """What all operators that are remembered have in common."""
        return self.kernel.told(self.points, self.coefficients, v)

    def forward(self, sources: Left, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        return self.B(v)

    def carry(
        self, sources: Left, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
    ) -> Float[Tensor, "b n d_u"]:
        return sources.residual

    def read(
        self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"]
    ) -> Float[Tensor, "1 n d_u"]:
        return self.B(v)

    def split(
        self,
        read: Float[Tensor, "1 n d_u"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n d_u"]:
        return torch.where(mask[..., None], u - read, u + read)

    def deviations(self, sources: Left, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        return torch.ones_like(v[..., 0])
