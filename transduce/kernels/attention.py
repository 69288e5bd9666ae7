"""Kernels that average the examples (equation 4).

    kappa(v, v')(u) = W [..., A^j(v, v') V^j(u), ...]_{j <= J}

with one of the supplement's three A (S.2.2), normalised over the examples:

    exp_dot   A = exp(<K v, Q v'> / tau)
    rbf       A = exp(-|K v - Q v'|^2 / tau)        (the supplement drops the sign)
    l2        A = |K v - Q v'|^2
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from .kappa import Kappa, Known


class Sources(NamedTuple):
    """What a kernel keeps of the examples."""

    key: Float[Tensor, "b h n c"]
    value: Float[Tensor, "b h n e"]
    mask: Bool[Tensor, "b n"] | None


class Attention(Kappa):
    """J heads of `width` features each; subclasses say how a query weighs the examples."""

    options: ClassVar[tuple[str, ...]] = ("tau", "learn_tau", "bias")
    transforms: ClassVar[bool] = True
    follows: ClassVar[bool] = True

    def __init__(
        self,
        d_v: int,
        d_u: int,
        heads: int,
        width: int,
        tau: float = 1.0,
        learn_tau: bool = True,
        bias: bool = False,
    ):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d_v, heads * width, bias=bias)
        self.key = nn.Linear(d_v, heads * width, bias=bias)
        self.value = nn.Linear(d_u, heads * width, bias=False)
        self.out = nn.Linear(heads * width, d_u, bias=False)
        self.log_tau = nn.Parameter(torch.tensor(math.log(tau)), requires_grad=learn_tau)

    @property
    def tau(self) -> Float[Tensor, ""]:
        """The temperature: positive, whatever training does."""
        return self.log_tau.exp()

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
        known: Known | None = None,
    ) -> Sources:
        """The keys and values of the examples; there is nothing to gain from those known."""
        return Sources(self._heads(self.key(v)), self._heads(self.value(u)), mask)

    def forward(self, sources: Sources, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        return self.out(
            rearrange(self.transport(sources, self._heads(self.query(v))), "b h m e -> b m (h e)")
        )

    def carry(
        self, sources: Sources, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
    ) -> Float[Tensor, "b n d_u"]:
        """Examples look at one another as queries do."""
        return u + self(sources, v)

    def read(
        self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"]
    ) -> Float[Tensor, "1 h n n"]:
        """The scores of all pairs."""
        return self.scores(self._heads(self.query(v)), self._heads(self.key(v)))

    def split(
        self,
        read: Float[Tensor, "1 h n n"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n d_u"]:
        """Examples and queries look at the examples alike."""
        found = self.normalised(read, mask) @ self._heads(self.value(u))
        return u + self.out(rearrange(found, "b h m e -> b m (h e)"))

    def transport(
        self, sources: Sources, query: Float[Tensor, "b h m c"]
    ) -> Float[Tensor, "b h m e"]:
        """sum_i A(v_i, v) V(u_i) / sum_i A(v_i, v), head by head, without holding all A at once
        where that can be."""
        return self.normalised(self.scores(query, sources.key), sources.mask) @ sources.value

    def scores(
        self, query: Float[Tensor, "b h m c"], key: Float[Tensor, "b h n c"]
    ) -> Float[Tensor, "b h m n"]:
        """log A(v_i, v), up to what is the same for all examples."""
        raise NotImplementedError

    def normalised(
        self, scores: Float[Tensor, "a h m n"], mask: Bool[Tensor, "b n"] | None
    ) -> Float[Tensor, "b h m n"]:
        """A(v_i, v) / sum_i A(v_i, v)."""
        return (
            scores if mask is None else scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        ).softmax(-1)

    def weights(self, sources: Sources, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b h m n"]:
        """The normalised A(v_i, v), to look at: how much each example counts for each query."""
        return self.normalised(self.scores(self._heads(self.query(v)), sources.key), sources.mask)

    def _heads(self, x: Tensor) -> Tensor:
        return rearrange(x, "b n (h c) -> b h n c", h=self.heads)


class ExpDot(Attention):
    """A = exp(<K v, Q v'> / tau): dot-product attention."""

    def transport(
        self, sources: Sources, query: Float[Tensor, "b h m c"]
    ) -> Float[Tensor, "b h m e"]:
        mask = None if sources.mask is None else sources.mask[:, None, None, :]
        return nn.functional.scaled_dot_product_attention(
            query / self.tau, sources.key, sources.value, mask, scale=1.0
        )

    def scores(
        self, query: Float[Tensor, "b h m c"], key: Float[Tensor, "b h n c"]
    ) -> Float[Tensor, "b h m n"]:
        return query / self.tau @ key.mT


class Rbf(Attention):
    """A = exp(-|K v - Q v'|^2 / tau); |Q v'|^2 is the same for all examples and cancels."""

    def transport(
        self, sources: Sources, query: Float[Tensor, "b h m c"]
    ) -> Float[Tensor, "b h m e"]:
        bias = self._bias(sources.key)
        if sources.mask is not None:
            bias = bias.masked_fill(~sources.mask[:, None, None, :], -torch.inf)
        return nn.functional.scaled_dot_product_attention(
            2 * query / self.tau, sources.key, sources.value, bias, scale=1.0
        )

    def scores(
        self, query: Float[Tensor, "b h m c"], key: Float[Tensor, "b h n c"]
    ) -> Float[Tensor, "b h m n"]:
        return 2 * query / self.tau @ key.mT + self._bias(key)

    def _bias(self, key: Float[Tensor, "b h n c"]) -> Float[Tensor, "b h 1 n"]:
        return -key.square().sum(-1)[:, :, None, :] / self.tau


class L2(Attention):
    """A = |K v - Q v'|^2. It has no temperature: a factor of A cancels in the normalisation."""

    follows: ClassVar[bool] = False

    def __init__(
        self,
        d_v: int,
        d_u: int,
        heads: int,
        width: int,
        tau: float = 1.0,
        learn_tau: bool = True,
        bias: bool = False,
    ):
        super().__init__(d_v, d_u, heads, width, tau, learn_tau=False, bias=bias)

    def scores(
        self, query: Float[Tensor, "b h m c"], key: Float[Tensor, "b h n c"]
    ) -> Float[Tensor, "b h m n"]:
        """A itself."""
        distance = (
            query.square().sum(-1)[..., :, None]
            + key.square().sum(-1)[..., None, :]
            - 2 * query @ key.mT
        )
        return (
            distance.clamp(min=0) + torch.finfo(key.dtype).eps
        )  # equal weights where every distance is zero

    def normalised(
        self, scores: Float[Tensor, "a h m n"], mask: Bool[Tensor, "b n"] | None
    ) -> Float[Tensor, "b h m n"]:
        A = scores if mask is None else scores * mask[:, None, None, :]
        return A / A.sum(-1, keepdim=True)
