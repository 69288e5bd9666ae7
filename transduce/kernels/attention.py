"""Kernels that average the examples (equation 4).

    kappa(v, v')(u) = W [..., A^j(v, v') V^j(u), ...]_{j <= J}

with one of the supplement's three A (S.2.2), normalised over the examples:

    exp_dot   A = exp(<K v, Q v'> / tau)
    rbf       A = exp(-|K v - Q v'|^2 / tau)        (the supplement drops the sign)
    l2        A = |K v - Q v'|^2
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from .kappa import Fit, Kappa, Reading


@dataclass(frozen=True, kw_only=True)
class AttentionFit(Fit):
    """The keys and values of the examples, and which of them count."""

    key: Float[Tensor, "b h n c"]
    value: Float[Tensor, "b h n e"]
    mask: Bool[Tensor, "b n"] | None


@dataclass(frozen=True)
class Scores(Reading):
    """The scores of all pairs of functions."""

    scores: Float[Tensor, "1 h n n"]


class Attention(Kappa[AttentionFit, Scores]):
    """J heads that average the examples. Subclasses define A.

    Args:
        d_v: size of V.
        d_u: size of U.
        heads: J.
        width: number of features of K, Q and V in each head.
    """

    def __init__(self, d_v: int, d_u: int, heads: int, width: int):
        super().__init__()
        self.d_v, self.d_u, self.heads, self.width = d_v, d_u, heads, width
        self.query = nn.Linear(d_v, heads * width, bias=False)
        self.key = nn.Linear(d_v, heads * width, bias=False)
        self.value = nn.Linear(d_u, heads * width, bias=False)
        self.out = nn.Linear(heads * width, d_u, bias=False)

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> AttentionFit:
        return AttentionFit(
            key=self._heads(self.key(v)), value=self._heads(self.value(u)), mask=mask
        )

    def forward(self, fit: AttentionFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        return self._joined(self.transport(fit, self._heads(self.query(v))))

    def transport(
        self, fit: AttentionFit, query: Float[Tensor, "b h m c"]
    ) -> Float[Tensor, "b h m e"]:
        """sum_i A(v_i, v) V(u_i) / sum_i A(v_i, v) in each head."""
        return self.normalised(self.scores(query, fit.key), fit.mask) @ fit.value

    def scores(
        self, query: Float[Tensor, "b h m c"], key: Float[Tensor, "b h n c"]
    ) -> Float[Tensor, "b h m n"]:
        """log A(v_i, v), up to a term that is the same for all examples."""
        raise NotImplementedError

    def normalised(
        self, scores: Float[Tensor, "a h m n"], mask: Bool[Tensor, "b n"] | None
    ) -> Float[Tensor, "b h m n"]:
        """A(v_i, v) / sum_i A(v_i, v)."""
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        return scores.softmax(-1)

    def averages(self, fit: AttentionFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b h m n"]:
        """The normalised A(v_i, v) of each head."""
        return self.normalised(self.scores(self._heads(self.query(v)), fit.key), fit.mask)

    def weights(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        query: Float[Tensor, "b m d_v"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b m n"]:
        """The averages, each head weighted by the trace of its W V."""
        per_feature = (self.out.weight.T * self.value.weight).sum(1)
        trace = per_feature.unflatten(0, (self.heads, -1)).sum(1)
        averages = self.averages(self.condition(v, u, mask), query)
        return torch.einsum("bhmn,h->bmn", averages, trace) / self.d_u

    def read(self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"] | None) -> Scores:
        return Scores(v, self.scores(self._heads(self.query(v)), self._heads(self.key(v))))

    def split(
        self,
        reading: Scores,
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n d_u"]:
        """Examples and queries average the examples in the same way."""
        values = self._heads(self.value(u))
        return u + self._joined(self.normalised(reading.scores, mask) @ values)

    def _heads(self, x: Float[Tensor, "b n hc"]) -> Float[Tensor, "b h n c"]:
        return rearrange(x, "b n (h c) -> b h n c", h=self.heads)

    def _joined(self, x: Float[Tensor, "b h m e"]) -> Float[Tensor, "b m d_u"]:
        return self.out(rearrange(x, "b h m e -> b m (h e)"))


class Tempered(Attention):
    """Attention with a learned temperature.

    Args:
        tau: the temperature before training.
    """

    def __init__(self, d_v: int, d_u: int, heads: int, width: int, tau: float = 1.0):
        super().__init__(d_v, d_u, heads, width)
        self.tau = tau
        self.log_tau = nn.Parameter(torch.tensor(math.log(tau)))

    @property
    def temperature(self) -> Float[Tensor, ""]:
        """The temperature, which stays positive in training."""
        return self.log_tau.exp()


class ExpDot(Tempered):
    """A = exp(<K v, Q v'> / tau): dot-product attention."""

    def transport(
        self, fit: AttentionFit, query: Float[Tensor, "b h m c"]
    ) -> Float[Tensor, "b h m e"]:
        mask = None if fit.mask is None else fit.mask[:, None, None, :]
        return nn.functional.scaled_dot_product_attention(
            query / self.temperature, fit.key, fit.value, mask, scale=1.0
        )

    def scores(
        self, query: Float[Tensor, "b h m c"], key: Float[Tensor, "b h n c"]
    ) -> Float[Tensor, "b h m n"]:
        return query / self.temperature @ key.mT


class Rbf(Tempered):
    """A = exp(-|K v - Q v'|^2 / tau); |Q v'|^2 is the same for all examples and cancels."""

    def transport(
        self, fit: AttentionFit, query: Float[Tensor, "b h m c"]
    ) -> Float[Tensor, "b h m e"]:
        bias = self._bias(fit.key)
        if fit.mask is not None:
            bias = bias.masked_fill(~fit.mask[:, None, None, :], -torch.inf)
        return nn.functional.scaled_dot_product_attention(
            2 * query / self.temperature, fit.key, fit.value, bias, scale=1.0
        )

    def scores(
        self, query: Float[Tensor, "b h m c"], key: Float[Tensor, "b h n c"]
    ) -> Float[Tensor, "b h m n"]:
        return 2 * query / self.temperature @ key.mT + self._bias(key)

    def _bias(self, key: Float[Tensor, "b h n c"]) -> Float[Tensor, "b h 1 n"]:
        return -key.square().sum(-1)[:, :, None, :] / self.temperature


class L2(Attention):
    """A = |K v - Q v'|^2. A temperature would cancel in the normalisation."""

    def scores(
        self, query: Float[Tensor, "b h m c"], key: Float[Tensor, "b h n c"]
    ) -> Float[Tensor, "b h m n"]:
        """A itself. The epsilon gives equal weights where every distance is zero."""
        squares = query.square().sum(-1)[..., :, None] + key.square().sum(-1)[..., None, :]
        distance = squares - 2 * query @ key.mT
        return distance.clamp(min=0) + torch.finfo(key.dtype).eps

    def normalised(
        self, scores: Float[Tensor, "a h m n"], mask: Bool[Tensor, "b n"] | None
    ) -> Float[Tensor, "b h m n"]:
        A = scores if mask is None else scores * mask[:, None, None, :]
        return A / A.sum(-1, keepdim=True)


ATTENTION: dict[str, type[Attention]] = {"exp_dot": ExpDot, "rbf": Rbf, "l2": L2}
