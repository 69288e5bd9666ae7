"""A fixed mean function, as the first layer of a model.

    O = B + delta,      B(v) = sum_m k(v_m, v) a_m,     a = (K + I)^-1 u

B is a kernel regression on pairs of many operators: what these have in common. It is solved once
and kept in the weights. The layers that follow regress delta, the difference between the operator
of the examples and the common one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..types import TransduceError
from .grams import ProductGram
from .kappa import Fit, Kappa, Reading
from .places import AtPlaces, Neighbourhoods
from .ridge import Ridge
from .solving import solve


@dataclass(frozen=True)
class MeanReading(Reading):
    """B at each function."""

    B: Float[Tensor, "1 n d_u"]


class Mean(Kappa[Fit, MeanReading]):
    """The fixed mean function B.

    Args:
        kernel: k; a Ridge of one candidate, or one at each place of a region.
        pairs: number of pairs that B is made of.
        d_v: size of V.
        d_u: size of U.
    """

    leaves_out = True

    def __init__(self, kernel: Kappa, pairs: int, d_v: int, d_u: int):
        super().__init__()
        self.kernel, self.pairs, self.d_v, self.d_u = kernel, pairs, d_v, d_u
        self.points = nn.Parameter(torch.zeros(pairs, d_v))
        self.coefficients = nn.Parameter(torch.zeros(pairs, d_u))
        self.requires_grad_(False)
        local_parts(kernel)

    @torch.no_grad()
    def remember(self, kernel: Kappa, v: Float[Tensor, "m d_v"], u: Float[Tensor, "m d_u"]) -> None:
        """Solve for B from these pairs, with the parameters of a kernel that was trained."""
        self.kernel.load_state_dict(kernel.state_dict())
        self.points.copy_(v)
        self.coefficients.copy_(coefficients(self.kernel, v, u))

    def B(self, v: Float[Tensor, "b n d_v"]) -> Float[Tensor, "b n d_u"]:
        """The mean function."""
        return sums(self.kernel, self.points, self.coefficients, v)

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> Fit:
        return Fit(residual=u - self.B(v), deviation=torch.ones_like(u[..., 0]))

    def forward(self, fit: Fit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        return self.B(v)

    def deviations(self, fit: Fit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        return torch.ones_like(v[..., 0])

    def read(self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"] | None) -> MeanReading:
        return MeanReading(v, self.B(v))

    def split(
        self,
        reading: MeanReading,
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n d_u"]:
        return torch.where(mask[..., None], u - reading.B, u + reading.B)


def local_parts(kernel: Kappa) -> tuple[Ridge, Neighbourhoods | None]:
    """The Ridge of one candidate in a kernel, and its places if there are several."""
    places = kernel.places if isinstance(kernel, AtPlaces) else None
    ridge = kernel.of if isinstance(kernel, AtPlaces) else kernel
    if (
        isinstance(ridge, Ridge)
        and ridge.candidates.count == 1
        and isinstance(ridge.candidates.gram, ProductGram)
        and (places is None or isinstance(places, Neighbourhoods))
    ):
        return ridge, places
    raise TransduceError(
        f"a Mean of a {type(kernel).__name__}; expected a Ridge of one candidate over inner "
        "products, or AtPlaces of one with Neighbourhoods."
    )


def coefficients(
    kernel: Kappa, v: Float[Tensor, "n d_v"], u: Float[Tensor, "n d_u"]
) -> Float[Tensor, "n d_u"]:
    """a = (K + I)^-1 u. Places are solved one after the other, to bound memory."""
    ridge, places = local_parts(kernel)
    candidates = ridge.candidates

    def solved(v: Tensor, u: Tensor) -> Tensor:
        parts, _ = candidates.gram.among(candidates.gram.points(v[None]), torch.ones(1, len(v)))
        K = candidates.combined(parts)
        return solve(candidates, K, u[None].double(), None).coefficients[0, 0].to(u)

    if places is None:
        return solved(v, u)
    found = torch.empty_like(u)
    for root, members in zip(places.root, places.members, strict=True):
        found[:, members] = solved(v * root.to(v), u[:, members])
    return found


def sums(
    kernel: Kappa,
    points: Float[Tensor, "n d_v"],
    c: Float[Tensor, "n d_u"],
    v: Float[Tensor, "b m d_v"],
) -> Float[Tensor, "b m d_u"]:
    """sum_i k(v_i, v) c_i. The distances at all places come from the same inner products."""
    ridge, places = local_parts(kernel)
    gram = ridge.candidates.gram
    assert isinstance(gram, ProductGram)
    unit = gram.unit(points.shape[-1]).double().square()
    root = torch.ones_like(points[:1]) if places is None else places.root
    near, points, query = unit * root.double().square(), points.double(), v.double()
    ab = (query[:, None] * near[:, None]) @ points.mT
    query_squares, squares = (query.square() @ near.mT).mT, near @ points.square().mT
    parts = gram.of_products(query_squares[..., None], squares[:, None], ab)
    k = torch.zeros_like(ab)
    for share, part in zip(ridge.candidates.shares(), parts, strict=True):
        k = torch.addcmul(k, share, part)
    if places is None:
        return (k[:, 0] @ c.double()).to(c)
    found = query.new_empty(*v.shape[:-1], c.shape[-1])
    for place, members in enumerate(places.members):
        found[..., members] = k[:, place] @ c[:, members].double()
    return found.to(c)
