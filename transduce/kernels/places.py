"""A kernel for each place of the domain.

    u(y) = sum_i kappa(v_i at place of y, v at place of y)(u_i(y))

`AtPlaces` treats every place as a task of its own, with one kernel for all. A `Places` defines
functions as seen from each place: `PatchGrid` cuts fields into patches, and `Neighbourhoods`
weights whole fields by the distance from the place.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from ..configs import Part
from ..spaces import Region
from ..types import TransduceError
from .kappa import Fit, Kappa, Reading
from .ridge import Pairs, Ridge


class Places(Part):
    """How functions look at each of p places. Tasks and places share one axis, tasks first.

    count: p; 1 if it depends on the functions.
    """

    count: int = 1

    def inputs(self, v: Float[Tensor, "b n *grid d_v"]) -> Float[Tensor, "bp n d"]:
        """Inputs at each place."""
        raise NotImplementedError

    def outputs(self, u: Float[Tensor, "b n *grid d_u"]) -> Float[Tensor, "bp n q"]:
        """Outputs at each place."""
        raise NotImplementedError

    def joined(
        self, u: Float[Tensor, "bp n q"], like: Float[Tensor, "b n *grid d_v"]
    ) -> Float[Tensor, "b n *grid d_u"]:
        """Outputs at each place as outputs of the whole domain.

        Args:
            u: outputs at each place.
            like: any functions with the same tasks and grid.
        """
        raise NotImplementedError


class PatchGrid(Places):
    """Fields in patches, as the space `Patches` gives them: one place for each patch."""

    def inputs(self, v: Float[Tensor, "b n r c d"]) -> Float[Tensor, "p n d"]:
        return rearrange(v, "b n r c d -> (b r c) n d")

    def outputs(self, u: Float[Tensor, "b n r c d"]) -> Float[Tensor, "p n d"]:
        return self.inputs(u)

    def joined(
        self, u: Float[Tensor, "p n e"], like: Float[Tensor, "b n r c d"]
    ) -> Float[Tensor, "b n r c e"]:
        b, _, r, c, _ = like.shape
        return rearrange(u, "(b r c) n e -> b n r c e", b=b, r=r, c=c)


class Neighbourhoods(Places):
    """Whole fields, weighted by their distance from each place of a region.

        w(x)^2 = exp(-distance(x, place)^2 / (2 reach^2)), of mean 1

    Args:
        region: the space of the inputs; its `reach` and `block` define the places.
    """

    root: Tensor
    own: Tensor
    back: Tensor

    def __init__(self, region: Region):
        super().__init__()
        if not region.reach:
            raise TransduceError(
                "a kernel at places of a Region with reach=0; expected a reach in degrees of arc. "
                "Give Region(..., reach=10.0)."
            )
        self._region = (region,)  # in a tuple, so that its parameters are not those of the kernel
        near, place = region.neighbourhoods()
        self.members = [torch.nonzero(place == p)[:, 0] for p in range(len(near))]
        self.count, most = len(near), max(map(len, self.members))
        missing = len(place)  # the index of a zero that fills up places with fewer points
        own = torch.stack(
            [pad(some, (0, most - len(some)), value=missing) for some in self.members]
        )
        self.register_buffer("root", near.sqrt(), persistent=False)
        self.register_buffer("own", own, persistent=False)
        self.register_buffer("back", own.flatten().argsort()[: len(place)], persistent=False)

    @property
    def region(self) -> Region:
        """The space of the inputs."""
        return self._region[0]

    def inputs(self, v: Float[Tensor, "b n d_v"]) -> Float[Tensor, "bp n d_v"]:
        return (v[:, None] * self.root[:, None].to(v)).flatten(0, 1)

    def outputs(self, u: Float[Tensor, "b n d_u"]) -> Float[Tensor, "bp n q"]:
        return rearrange(pad(u, (0, 1))[..., self.own], "b n p q -> (b p) n q")

    def joined(
        self, u: Float[Tensor, "bp n q"], like: Float[Tensor, "b n d_v"]
    ) -> Float[Tensor, "b n d_u"]:
        return rearrange(u, "(b p) n q -> b n (p q)", p=self.count)[..., self.back]


@dataclass(frozen=True, kw_only=True)
class PlacesFit(Fit):
    """The kernel's fit with places as tasks."""

    fit: Fit


@dataclass(frozen=True)
class PlacesReading(Reading):
    """The kernel's reading with places as tasks."""

    of: Pairs


class AtPlaces(Kappa[PlacesFit, Reading]):
    """One kernel for all places, each with its own fit.

    Args:
        of: the kernel.
        places: what functions look like at each place.
    """

    def __init__(self, of: Kappa, places: Places):
        super().__init__()
        self.of, self.places = of, places
        self.leaves_out, self.chunk = of.leaves_out, of.chunk

    @property
    def systems(self) -> int:
        return self.places.count * self.of.systems

    def condition(
        self,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> PlacesFit:
        inputs, outputs = self.places.inputs(v), self.places.outputs(u)
        return self._joined(self.of.condition(inputs, outputs, self._at_each(mask, inputs)), v)

    def refit(
        self,
        fit: PlacesFit,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> PlacesFit:
        inputs, outputs = self.places.inputs(v), self.places.outputs(u)
        mask = self._at_each(mask, inputs)
        return self._joined(self.of.refit(fit.fit, inputs, outputs, mask), v)

    def forward(
        self, fit: PlacesFit, v: Float[Tensor, "b m *grid d_v"]
    ) -> Float[Tensor, "b m *grid d_u"]:
        return self.places.joined(self.of(fit.fit, self.places.inputs(v)), v)

    def deviations(self, fit: PlacesFit, v: Float[Tensor, "b m *grid d_v"]) -> Float[Tensor, "b m"]:
        return self._overall(self.of.deviations(fit.fit, self.places.inputs(v)), len(v))

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        self.of.standardised(spread, size)

    def _joined(self, fit: Fit, v: Float[Tensor, "b n *grid d_v"]) -> PlacesFit:
        if fit.residual is None or fit.deviation is None:
            return PlacesFit(fit=fit)
        residual = self.places.joined(fit.residual, v)
        deviation = self._overall(fit.deviation, len(v))
        return PlacesFit(fit=fit, residual=residual, deviation=deviation)

    def read(
        self, v: Float[Tensor, "1 n *grid d_v"], u: Float[Tensor, "1 n *grid d_u"] | None
    ) -> Reading:
        if not self._pairwise:
            return Reading(v)
        return PlacesReading(v, self.of.read(self.places.inputs(v), None))

    def split(
        self,
        reading: Reading,
        u: Float[Tensor, "b n *grid d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n *grid d_u"]:
        """Fixed places are compared in pairs once, and solve for each task one after the other."""
        if not isinstance(reading, PlacesReading):
            return super().split(reading, u, mask, carry)
        at_each = self.places.outputs(u).unflatten(0, (len(u), -1)).unbind(1)
        found = [
            self.of.split(reading.of.task(place), own, mask, carry)
            for place, own in enumerate(at_each)
        ]
        return self.places.joined(torch.stack(found, 1).flatten(0, 1), u)

    @property
    def _pairwise(self) -> bool:
        """Whether the kernel compares functions in pairs, at places that are always the same."""
        return self.places.count > 1 and isinstance(self.of, Ridge)

    @staticmethod
    def _at_each(
        mask: Bool[Tensor, "b n"] | None, inputs: Float[Tensor, "bp n d"]
    ) -> Bool[Tensor, "bp n"] | None:
        return None if mask is None else mask.repeat_interleave(len(inputs) // len(mask), 0)

    @staticmethod
    def _overall(deviation: Float[Tensor, "bp n"], tasks: int) -> Float[Tensor, "b n"]:
        """The root mean square over places."""
        return deviation.unflatten(0, (tasks, -1)).square().mean(1).sqrt()
