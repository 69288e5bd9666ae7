"""The contract of a kernel kappa between functions, whose values are linear maps of U (equation 4,
Proposition 1).

    u(v) = sum_i kappa(v_i, v)(u_i)

is computed in two halves: `condition` turns the examples into whatever a query needs, once, and
calling the kernel evaluates the sum at any number of queries."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..types import TransduceError


class Known(NamedTuple):
    """Examples that a kernel was conditioned on before: the new set is these `rows` of the old one,
    and then new ones."""

    sources: Any
    rows: list[int]


class Kappa(nn.Module):
    """options: what a kernel takes of the Transducer's options. transforms: whether F and G act
    beside it unless told otherwise. leaves_out: whether what it keeps of the examples says what is
    left of each, left out (`residual`, `deviation`). follows: whether it averages, with more weight
    on examples that are like the query."""

    options: ClassVar[tuple[str, ...]]
    transforms: ClassVar[bool]
    leaves_out: ClassVar[bool] = False
    follows: ClassVar[bool] = False

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        """Told, before training, that inputs come divided by `spread`, and the root mean square of
        their norm before that."""

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
        known: Known | None = None,
    ) -> Any:
        """What a query needs of the examples; where `mask` is False there is none. known: work that
        may be used again."""
        raise NotImplementedError

    def forward(self, sources: Any, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        """sum_i kappa(v_i, v)(u_i) at each query v."""
        raise NotImplementedError

    def carry(
        self, sources: Any, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
    ) -> Float[Tensor, "b n d_u"]:
        """The examples' own stream after the layer."""
        raise NotImplementedError

    def read(self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"]) -> Any:
        """What is needed of n functions whichever of them are examples. u: their images, of use
        only to a kernel that comes first."""
        raise NotImplementedError

    def split(
        self, read: Any, u: Float[Tensor, "b n d_u"], mask: Bool[Tensor, "b n"], carry: bool = True
    ) -> Float[Tensor, "b n d_u"]:
        """All streams after the layer, for b tasks on the functions that were read: in each, the
        examples are those where mask is True, and the rest are queries. carry: whether the
        examples' own streams are of use to anyone."""
        raise NotImplementedError

    def squared_errors(self, read: Any, mask: Bool[Tensor, "b n"]) -> Float[Tensor, "b n"] | None:
        """The squared norm, over coefficients, of what `split` answers from less the images that
        were read; None where there is no shorter way than to answer."""
        return None

    def weights(self, sources: Any, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b h m n"]:
        """How much each example counts for each query, to look at."""
        raise NotImplementedError

    def deviations(self, sources: Any, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """The standard deviation of each query's answer, up to a factor."""
        raise TransduceError(
            f"{type(self).__name__} averages its examples and cannot leave one out, which bands "
            "come from. Use a model with the "
            "representer kernel or a prior, such as 'adr' or 'burgers'."
        )
