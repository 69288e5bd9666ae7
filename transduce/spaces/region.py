"""Fields of one region: anomalies about the mean field, weighted by area (section 5.3).

    c(y) = sqrt(w(lat_y)) (f(y) - mean(y)) / unit,      w = cos(lat) / mean of cos

|c|^2 is the latitude-weighted squared error in that unit, and the mean field (topography, climate)
is known before any example. Fields are given and returned in their own units, such as kelvin and
pascal.

To compare fields, most of c's mean is subtracted: where it is warm says more than that it is warm
everywhere. Slopes, the differences of c between neighbours, are added in a unit of their own,
because winds change with height along slopes of temperature. Decoding leaves slopes out. With a
`reach`, fields are compared at each of several places, where distant points count for less
(kernels/places.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..types import DataArray, Json, TransduceError
from .base import Space


class Region(Space):
    """Fields on a grid of latitudes and longitudes. `measure` sets the mean field and the units.

    Args:
        lat: latitudes in degrees, from north to south.
        lon: longitudes in degrees.
        slopes: weight of slopes relative to values when fields are compared; 0 for none.
        level: share of the mean that is kept when fields are compared.
        reach: distance in degrees of arc within which points count at a place; 0 for no places.
        block: places are the centres of blocks of block x block points.

    >>> Region((55.0, 52.5, 50.0), (-15.0, -12.5)).encode(fields).shape      # fields: (15, 3, 2)
    (15, 6)
    """

    dims = 2
    root: Tensor

    def __init__(
        self,
        lat: Sequence[float],
        lon: Sequence[float],
        slopes: float | bool = 0.0,
        level: float = 0.4,
        reach: float = 0.0,
        block: int = 4,
    ):
        super().__init__()
        self.lat, self.lon = (
            tuple(float(degrees) for degrees in lat),
            tuple(float(degrees) for degrees in lon),
        )
        self.grid, self.points, self.slopes, self.level = (
            (len(self.lat), len(self.lon)),
            len(self.lat) * len(self.lon),
            slopes,
            level,
        )
        self.size = self.points + (slopes > 0) * (2 * self.points - sum(self.grid))
        cosine = torch.tensor(self.lat, dtype=torch.float64).deg2rad().cos()
        if (
            min(self.grid) < 1 + (slopes > 0)
            or max(map(abs, self.lat)) > 90
            or list(self.lat) != sorted(self.lat, reverse=True)
        ):
            raise TransduceError(
                f"lat={self.lat}, lon={self.lon}; expected some of each, two with slopes, "
                "latitudes from 90 down to -90."
            )
        if slopes < 0 or level <= 0 or reach < 0 or block < 1:
            raise TransduceError(
                f"slopes={slopes}, level={level}, reach={reach}, block={block}; expected a weight "
                "from 0, a share above 0, degrees from 0, "
                "and points from 1."
            )
        self.reach, self.block = reach, block
        self.mean = nn.Parameter(torch.zeros(self.grid), requires_grad=False)
        self.unit = nn.Parameter(torch.ones(()), requires_grad=False)
        self.slope = nn.Parameter(torch.ones(()), requires_grad=False)
        weights = (
            cosine.clamp(min=1e-3) / cosine.mean()
        ).sqrt()  # at a pole a little is left, so that fields can be put together again
        self.register_buffer("root", weights[:, None].float(), persistent=False)

    def config(self) -> dict[str, Json]:
        near = {"reach": self.reach, "block": self.block} if self.reach else {}
        steep = {"slopes": self.slopes, "level": self.level} if self.slopes else {}
        return {"space": "Region", "lat": list(self.lat), "lon": list(self.lon), **steep, **near}

    @torch.no_grad()
    def measure(self, f: Float[Tensor, "n y x"]) -> bool:
        """Take the mean field and the spread about it from these, unless that was done."""
        if self.measured:
            return True
        self.check(f, None, "f")
        self.measured = True
        self.mean.copy_(f.double().mean(0))
        self.unit.copy_((f - self.mean).double().square().mean().sqrt().clamp(min=1e-12))
        if self.slopes:
            self.slope.copy_(
                _slopes(self._values(f)).double().square().mean().sqrt().clamp(min=1e-12)
            )
        return True

    def _values(self, f: Float[Tensor, "... y x"]) -> Float[Tensor, "... y x"]:
        return self.root.to(f) * (f - self.mean.to(f)) / self.unit.to(f)

    def check_coordinates(self, f: object, name: str) -> None:
        for axis, degrees in (("latitude", self.lat), ("longitude", self.lon)):
            own = f.coords.get(axis, f.coords.get(axis[:3])) if isinstance(f, DataArray) else None
            if (
                own is not None
                and own.shape == (len(degrees),)
                and not np.allclose(own, degrees, atol=1e-3)
            ):
                raise TransduceError(
                    f"{name} has {axis} from {float(own[0]):g} to {float(own[-1]):g}; this model "
                    f"expects {degrees[0]:g} to "
                    f"{degrees[-1]:g}. Bring it to that order and grid: "
                    "transduce.domains.climate.regress_climate does."
                )

    def check(self, f: Tensor, x: Tensor | None, name: str) -> tuple[int, ...]:
        if x is not None or f.ndim != 3 or tuple(f.shape[1:]) != self.grid:
            raise TransduceError(
                f"{name} has shape {tuple(f.shape)}{'' if x is None else ' at scattered points'}; "
                f"this model expects (n, {self.grid[0]}, "
                f"{self.grid[1]}), fields from {self.lat[0]:g} to {self.lat[-1]:g} N and "
                f"{self.lon[0]:g} to {self.lon[-1]:g} E. "
                "Interpolate them to that grid with transduce.families.regridded."
            )
        return self.grid

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        values = self._values(f)
        if not self.slopes:
            return values.flatten(-2)
        pattern = values - (1 - self.level) * values.mean((-2, -1), keepdim=True)
        # So that values and slopes count by their mean squares.
        share = self.slopes * (self.points / (self.size - self.points)) ** 0.5
        return torch.cat([pattern.flatten(-2), share * _slopes(values) / self.slope.to(f)], -1)

    def decode(self, c: Tensor, at: object) -> Tensor:
        if not isinstance(at, tuple | list) or tuple(at) != self.grid:
            raise TransduceError(
                f"at={at} was asked of a model that answers on {self.grid[0]} x {self.grid[1]} "
                "points. Leave it out."
            )
        values = c[..., : self.points]
        if self.slopes:
            values = values + (1 / self.level - 1) * values.mean(-1, keepdim=True)
        return self.mean.to(c) + self.unit.to(c) * values.unflatten(-1, self.grid) / self.root.to(c)

    def neighbourhoods(self) -> tuple[Float[Tensor, "p d"], Int[Tensor, " points"]]:
        """How much each coefficient counts at each place, 1 in the mean over values and over
        slopes; and the place of each point."""
        rows, columns = (torch.arange(points) // self.block for points in self.grid)
        place = (rows[:, None] * (columns[-1] + 1) + columns).flatten()
        where = torch.cartesian_prod(
            *(
                torch.tensor(degrees, dtype=torch.float64).deg2rad()
                for degrees in (self.lat, self.lon)
            )
        )
        lat, lon = where.unbind(1)
        points = torch.stack([lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()], 1)
        middles = torch.stack([points[place == p].mean(0) for p in range(int(place[-1]) + 1)])
        on_grid = points.unflatten(0, self.grid)
        between = [
            (on_grid[:, 1:] + on_grid[:, :-1]).flatten(0, 1),
            (on_grid[1:] + on_grid[:-1]).flatten(0, 1),
        ]
        near = [
            self._near(middles, some)
            for some in ([points, torch.cat(between)] if self.slopes else [points])
        ]
        return torch.cat(near, 1).float(), place

    def _near(
        self, middles: Float[Tensor, "p 3"], points: Float[Tensor, "s 3"]
    ) -> Float[Tensor, "p s"]:
        cosine = nn.functional.normalize(middles, dim=1) @ nn.functional.normalize(points, dim=1).mT
        near = (-(cosine.clamp(-1, 1).acos().rad2deg() / self.reach).square() / 2).exp()
        return near / near.mean(1, keepdim=True)


def _slopes(f: Float[Tensor, "... y x"]) -> Float[Tensor, "... s"]:
    """The differences between neighbours, eastward and southward."""
    return torch.cat([f.diff(dim=-1).flatten(-2), f.diff(dim=-2).flatten(-2)], -1)


def regions(V: Space, U: Space) -> tuple[Region, Region] | None:
    """The spaces of a model between fields of a region; None for those of another model."""
    return (V, U) if isinstance(V, Region) and isinstance(U, Region) else None
