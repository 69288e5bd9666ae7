"""Fields of one region: what differs from the mean field, weighted by area, in one unit (section 5.3).

    c(y) = sqrt(w(lat_y)) (f(y) - mean(y)) / unit,      w = cos(lat) / mean of cos

So |c|^2 is the latitude-weighted squared error in that unit, which is what is asked for, and the mean field (topography, climate) is known
before any example. Fields come and go in units of their own, as kelvin and pascal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..types import TransduceError
from .base import Space


class Region(Space):
    """lat, lon: of the grid, in degrees, latitudes from the north. `measure` sets the mean field and the unit.

    >>> Region((55.0, 52.5, 50.0), (-15.0, -12.5)).encode(fields).shape      # fields: (15, 3, 2)
    (15, 6)
    """

    dims = 2
    root: Tensor

    def __init__(self, lat: Sequence[float], lon: Sequence[float]):
        super().__init__()
        self.lat, self.lon = tuple(float(degrees) for degrees in lat), tuple(float(degrees) for degrees in lon)
        self.grid, self.size = (len(self.lat), len(self.lon)), len(self.lat) * len(self.lon)
        cosine = torch.tensor(self.lat, dtype=torch.float64).deg2rad().cos()
        if min(self.grid) < 1 or not (cosine >= -1e-9).all() or max(map(abs, self.lat)) > 90:
            raise TransduceError(f"lat={self.lat}, lon={self.lon}; expected some of each, latitudes from -90 to 90.")
        self.mean = nn.Parameter(torch.zeros(self.grid), requires_grad=False)
        self.unit = nn.Parameter(torch.ones(()), requires_grad=False)
        weights = (cosine.clamp(min=1e-3) / cosine.mean()).sqrt()  # at a pole a little is left, so that fields can be put together again
        self.register_buffer("root", weights[:, None].float(), persistent=False)

    def config(self) -> dict[str, Any]:
        return {"space": "Region", "lat": list(self.lat), "lon": list(self.lon)}

    @torch.no_grad()
    def measure(self, f: Float[Tensor, "n y x"]) -> None:
        """Take the mean field and the spread about it from these."""
        self.check(f, None, "f")
        self.mean.copy_(f.double().mean(0))
        self.unit.copy_((f - self.mean).double().square().mean().sqrt().clamp(min=1e-12))

    def check(self, f: Tensor, x: Tensor | None, name: str) -> tuple[int, ...]:
        if x is not None or f.ndim != 3 or tuple(f.shape[1:]) != self.grid:
            raise TransduceError(
                f"{name} has shape {tuple(f.shape)}{'' if x is None else ' at scattered points'}; this model expects (n, {self.grid[0]}, "
                f"{self.grid[1]}), fields from {self.lat[0]:g} to {self.lat[-1]:g} N and {self.lon[0]:g} to {self.lon[-1]:g} E. "
                "Interpolate them to that grid with transduce.families.regridded."
            )
        return self.grid

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        return (self.root.to(f) * (f - self.mean.to(f)) / self.unit.to(f)).flatten(-2)

    def decode(self, c: Tensor, at: Any) -> Tensor:
        if not isinstance(at, tuple | list) or tuple(at) != self.grid:
            raise TransduceError(f"at={at} was asked of a model that answers on {self.grid[0]} x {self.grid[1]} points. Leave it out.")
        return self.mean.to(c) + self.unit.to(c) * c.unflatten(-1, self.grid) / self.root.to(c)
