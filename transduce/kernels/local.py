"""A kernel at every place: what is told there is told from what is near.

    u(y) = sum_i kappa(w v_i, w v)(u_i(y)),
    w(x)^2 = exp(-distance(x, place of y)^2 / (2 reach^2)), of mean 1

One `Metric` kernel for all places, with the same three numbers; each place solves for its own
coefficients, as a task of its own."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from .kappa import Kappa, Known
from .metric import Metric, Solution


class Looked(NamedTuple):
    """What queries need of the examples, with places as tasks; and of all places together, what
    bands need."""

    places: Solution
    residual: Float[Tensor, "b n d_u"]
    deviation: Float[Tensor, "b n"]


class Local(Kappa):
    """of: the kernel. near: w^2 of each place. place: which one each coefficient of u belongs
    to."""

    leaves_out: ClassVar[bool] = True
    root: Tensor
    own: Tensor
    back: Tensor

    def __init__(self, of: Metric, near: Float[Tensor, "p d_v"], place: Int[Tensor, " d_u"]):
        super().__init__()
        self.of, self.members = of, [torch.nonzero(place == p)[:, 0] for p in range(len(near))]
        most = max(map(len, self.members))
        own = torch.stack(
            [pad(some, (0, most - len(some)), value=len(place)) for some in self.members]
        )  # one past the last: none
        self.register_buffer("root", near.sqrt(), persistent=False)
        self.register_buffer("own", own, persistent=False)
        self.register_buffer("back", own.flatten().argsort()[: len(place)], persistent=False)

    def _seen(self, v: Float[Tensor, "b n d_v"]) -> Float[Tensor, "bp n d_v"]:
        """v as it is seen from each place."""
        return (v[:, None] * self.root[:, None].to(v)).flatten(0, 1)

    def _shared(self, u: Float[Tensor, "b n d_u"]) -> Float[Tensor, "bp n q"]:
        """Of u what belongs to each place."""
        return rearrange(pad(u, (0, 1))[..., self.own], "b n p q -> (b p) n q")

    def _joined(self, u: Float[Tensor, "bp n q"]) -> Float[Tensor, "b n d_u"]:
        return rearrange(u, "(b p) n q -> b n (p q)", p=len(self.root))[..., self.back]

    def _overall(self, deviation: Float[Tensor, "bp n"]) -> Float[Tensor, "b n"]:
        """The root of the mean square over places."""
        return deviation.unflatten(0, (-1, len(self.root))).square().mean(1).sqrt()

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
        known: Known | None = None,
    ) -> Looked:
        mask = mask if mask is None else mask.repeat_interleave(len(self.root), 0)
        found = self.of.condition(self._seen(v), self._shared(u), mask)
        return Looked(found, self._joined(found.residual), self._overall(found.deviation))

    def forward(self, sources: Looked, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        return self._joined(self.of(sources.places, self._seen(v)))

    def carry(
        self, sources: Looked, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
    ) -> Float[Tensor, "b n d_u"]:
        return sources.residual

    def coefficients(
        self, v: Float[Tensor, "n d_v"], u: Float[Tensor, "n d_u"]
    ) -> Float[Tensor, "n d_u"]:
        """What each place solves for, one after the other: of many pairs, all at once would be
        large."""
        found = torch.empty_like(u)
        for root, members in zip(self.root, self.members, strict=True):
            found[:, members] = self.of.coefficients(v * root.to(v), u[:, members])
        return found

    def told(
        self,
        points: Float[Tensor, "n d_v"],
        coefficients: Float[Tensor, "n d_u"],
        v: Float[Tensor, "b m d_v"],
    ) -> Float[Tensor, "b m d_u"]:
        """As `Metric.told` at each place; points are read once for all places."""
        near = self.of.points(self.root.double()).square()
        points, v = points.double(), v.double()
        k = self.of.of_products(
            (v.square() @ near.mT).mT[..., None],
            (near @ points.square().mT)[:, None],
            (v[:, None] * near[:, None]) @ points.mT,
        )
        found = v.new_empty(*v.shape[:-1], coefficients.shape[-1])
        for place, members in enumerate(self.members):
            found[..., members] = k[:, place] @ coefficients[:, members].double()
        return found.to(coefficients)

    def read(
        self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"]
    ) -> Float[Tensor, "p n n"]:
        points = self.of.points(self._seen(v))
        return self.of.between(points, points)

    def split(
        self,
        read: Float[Tensor, "p n n"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n d_u"]:
        found = torch.empty_like(u)
        for K, members in zip(read, self.members, strict=True):
            found[..., members] = self.of.split(K[None], u[..., members], mask)
        return found

    def weights(self, sources: Looked, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b p m n"]:
        """Of every place."""
        return self.of.weights(sources.places, self._seen(v)).unflatten(0, (-1, len(self.root)))[
            :, :, 0
        ]

    def deviations(self, sources: Looked, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        return self._overall(self.of.deviations(sources.places, self._seen(v)))
