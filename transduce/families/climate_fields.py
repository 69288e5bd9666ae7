"""Two fields of the atmosphere over time (section 5.3): the input v and the output u.

    v(t, lat, lon): such as temperature in kelvin,      u(t, lat, lon): such as pressure in pascal

Fields are oriented like maps: latitudes descend from the north, longitudes ascend from the west.
The first longitude is in [-180, 180). A region across the date line continues beyond 180, so that
neighbours in the array are neighbours on the globe.

Time is counted in whole units of the calendar: hours, days, months or years, as the data has them.
So February counts as much as March in monthly data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int, Shaped

from ..types import Array, TransduceError

if TYPE_CHECKING:
    import xarray as xr

Index = slice | int | list[int] | np.ndarray  # steps: a slice, positions or a boolean mask
Date = str | np.datetime64 | date
Degrees = Sequence[float | int] | np.ndarray
# The least that each unit can be.
SECONDS = {
    "Y": 365 * 86400,
    "M": 28 * 86400,
    "D": 86400,
    "h": 3600,
    "s": 1,
}


class Gap(NamedTuple):
    """Steps that are missing between two neighbouring times."""

    after: np.datetime64
    before: np.datetime64
    missing: int


@dataclass(frozen=True, eq=False)
class ClimateFields:
    """v and u at the same times and places, as `open_climate` reads them from files.

    Args:
        v: inputs, shape (time, lat, lon).
        u: outputs, the same shape.
        time: ascending.
        lat: in degrees, descending.
        lon: in degrees, ascending.
        names: of v and u.
        units: of v and u.

    >>> open_climate("era5_surface_2025_11_11.nc")
    ClimateFields(t2m -> sp, 24 steps of 1 h from 2025-11-11T00 to 2025-11-11T23, 181 x 360)
    """

    v: Float32[np.ndarray, "_t _y _x"]
    u: Float32[np.ndarray, "_t _y _x"]
    time: Shaped[np.ndarray, " t"]
    lat: Float64[np.ndarray, " y"]
    lon: Float64[np.ndarray, " x"]
    names: tuple[str, str] = ("v", "u")
    units: tuple[str, str] = ("K", "Pa")

    def __post_init__(self) -> None:
        shape = (len(self.time), len(self.lat), len(self.lon))
        if self.v.shape != shape or self.u.shape != shape:
            raise TransduceError(
                f"v has shape {self.v.shape}, u {self.u.shape}, and there are {shape[0]} times, "
                f"{shape[1]} latitudes and {shape[2]} "
                "longitudes; expected (time, lat, lon) of both. Transpose them, or let "
                "open_climate read them."
            )
        check_axes(self.time, self.lat, self.lon)

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        count, unit = self.step
        span = (
            f"{len(self)} steps of {count} {unit} from {self.said(self.time[0])} to "
            f"{self.said(self.time[-1])}"
        )
        return (
            f"ClimateFields({' -> '.join(self.names)}, {span}, {len(self.lat)} x {len(self.lon)})"
        )

    def __getitem__(self, index: Index) -> ClimateFields:
        """The fields at these steps: a slice, ascending positions or a boolean mask."""
        index = np.atleast_1d(np.arange(len(self))[index])
        return replace(self, v=self.v[index], u=self.u[index], time=self.time[index])

    @cached_property
    def step(self) -> tuple[int, str]:
        """The usual step: (1, "D") is a day, (1, "M") a month, (6, "h") six hours. A single time
        counts as a day."""
        if len(self) == 1:
            return 1, "D"
        usual = np.median(np.diff(_counted(self.time, "s")))
        unit = next(unit for unit, seconds in SECONDS.items() if usual >= seconds)
        return int(np.median(np.diff(_counted(self.time, unit)))), unit

    def ticks(self, time: np.ndarray | np.datetime64) -> np.ndarray:
        """Times as whole numbers of the unit of the step."""
        return _counted(time, self.step[1])

    def said(self, time: np.datetime64 | np.ndarray | np.integer | int) -> str:
        """A time, or its tick, as text with the precision of the step: 2001-03 for months."""
        return str(np.asarray(time).astype(f"datetime64[{self.step[1]}]"))

    @cached_property
    def missing(self) -> Int[np.ndarray, " k"]:
        """The number of missing steps after each time but the last."""
        return np.maximum(np.diff(self.ticks(self.time)) // self.step[0] - 1, 0)

    def gaps(self) -> list[Gap]:
        """Where steps are missing."""
        return [
            Gap(self.time[i], self.time[i + 1], int(self.missing[i]))
            for i in np.flatnonzero(self.missing)
        ]

    def select(self, dates: slice | str) -> ClimateFields:
        """The fields of some dates, both ends included; "2001-02" is all of that month.

        >>> fields.select(slice("2001", "2003-06"))
        """
        import xarray as xr

        try:
            index = (
                xr.DataArray(np.arange(len(self)), {"time": self.time}, ["time"])
                .sel(time=dates)
                .values
            )
        except (KeyError, ValueError, TypeError):
            index = np.arange(0)
        if not index.size:
            span = f"{self.said(self.time[0])} to {self.said(self.time[-1])}"
            raise TransduceError(
                f"no times in {dates!r}; expected some of {span}. Give dates like slice('2001', "
                "'2003-06')."
            )
        return self[index]

    def at_hour(self, hour: int) -> ClimateFields:
        """The fields at this hour of each day, UTC."""
        hours = _counted(self.time, "h") % 24
        if hour not in hours:
            raise TransduceError(
                f"no times at {hour} h; expected one of the hours "
                f"{', '.join(map(str, np.unique(hours)))}."
            )
        return self[hours == hour]

    def to_xarray(
        self, values: Array, at: Index = slice(None), of: Literal["v", "u"] = "u"
    ) -> xr.DataArray:
        """Values on this grid as a DataArray with times, coordinates and units.

        Args:
            values: shape (steps, lat, lon).
            at: the steps that the values belong to.
            of: whose name and unit the result has, "v" or "u".

        >>> fields.to_xarray(O(fields.v[days]), at=days).to_netcdf("pressure.nc")
        """
        array = (
            values.detach().cpu().numpy()
            if isinstance(values, torch.Tensor)
            else np.asarray(values)
        )
        time, which = np.atleast_1d(self.time[at]), ("v", "u").index(of)
        if array.shape != (len(time), len(self.lat), len(self.lon)):
            raise TransduceError(
                f"values have shape {array.shape}; expected "
                f"{(len(time), len(self.lat), len(self.lon))}. Say with `at` which steps they "
                "are of."
            )
        return located(array, time, self.lat, self.lon, self.names[which], self.units[which])


def check_axes(
    time: Shaped[np.ndarray, " t"], lat: Float64[np.ndarray, " y"], lon: Float64[np.ndarray, " x"]
) -> None:
    """Raise an error if there are too few times or places, or if they are out of order."""
    shape = (len(time), len(lat), len(lon))
    if shape[0] < 1 or min(shape[1:]) < 2:
        raise TransduceError(
            f"fields of shape {shape}; expected a time or more, and two latitudes and longitudes "
            "or more."
        )
    for name, ascending in (("time", time), ("lat", -lat), ("lon", lon)):
        if not (ascending[1:] > ascending[:-1]).all():
            raise TransduceError(
                f"{name} is out of order; expected times and longitudes that ascend, latitudes "
                "that descend. Sort them."
            )


def located(
    values: Shaped[np.ndarray, "t y x"],
    time: Shaped[np.ndarray, " t"],
    lat: Degrees,
    lon: Degrees,
    name: str,
    unit: str,
) -> xr.DataArray:
    """Values as a DataArray with times, coordinates and units."""
    import xarray as xr

    coordinates = {
        "time": ("time", time),
        "lat": ("lat", np.asarray(lat), {"units": "degrees_north", "standard_name": "latitude"}),
        "lon": ("lon", np.asarray(lon), {"units": "degrees_east", "standard_name": "longitude"}),
    }
    return xr.DataArray(values, coordinates, ["time", "lat", "lon"], name, {"units": unit})


def _counted(time: np.ndarray | np.datetime64, unit: str) -> np.ndarray:
    return np.asarray(time).astype(f"datetime64[{unit}]").astype(np.int64)
