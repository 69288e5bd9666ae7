"""A kernel at every patch of a field: the examples are compared, and their values transported,
patch by patch.

u(y) = sum_i kappa(v_i(y), v(y))(u_i(y)),      one kappa for all patches y
"""

from __future__ import annotations

from typing import Any

from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from ..types import TransduceError
from .kappa import Kappa, Known


def _each(f: Float[Tensor, "b n r c d"]) -> Float[Tensor, "p n d"]:
    """Patches as tasks of their own."""
    return rearrange(f, "b n r c d -> (b r c) n d")


class Patchwise(Kappa):
    """of: the kernel that acts at each patch."""

    def __init__(self, of: Kappa):
        super().__init__()
        self.of = of

    def condition(
        self,
        v: Float[Tensor, "b n r c d"],
        u: Float[Tensor, "b n r c e"],
        mask: Bool[Tensor, "b n"] | None = None,
        known: Known | None = None,
    ) -> Any:
        if mask is not None:
            mask = mask.repeat_interleave(v.shape[2] * v.shape[3], 0)
        return self.of.condition(_each(v), _each(u), mask)

    def forward(self, sources: Any, v: Float[Tensor, "b m r c d"]) -> Float[Tensor, "b m r c e"]:
        b, _, r, c, _ = v.shape
        return rearrange(self.of(sources, _each(v)), "(b r c) m e -> b m r c e", b=b, r=r, c=c)

    def carry(
        self, sources: Any, v: Float[Tensor, "b n r c d"], u: Float[Tensor, "b n r c e"]
    ) -> Float[Tensor, "b n r c e"]:
        b, _, r, c, _ = v.shape
        return rearrange(
            self.of.carry(sources, _each(v), _each(u)), "(b r c) n e -> b n r c e", b=b, r=r, c=c
        )

    def weights(self, sources: Any, v: Float[Tensor, "b m r c d"]) -> Float[Tensor, "p h m n"]:
        """Of every patch."""
        return self.of.weights(sources, _each(v))

    def read(self, v: Any, u: Any) -> Any:
        raise TransduceError(
            "many regressions of fields in patches at once are not to be had. Regress them one by "
            "one."
        )
