"""Two fields of the atmosphere over time (section 5.3): what is seen, and what is to be told from
it.

    v(t, lat, lon), as temperature in kelvin,      u(t, lat, lon), as pressure in pascal

One orientation throughout, that of maps: latitudes descend from the north, longitudes ascend from
the west. The first longitude is in [-180, 180); a region across the date line goes on beyond 180,
so that neighbours in the array are neighbours on the globe.

Time goes by the step of the data, hours, days, months or years, in whole numbers of that unit of
the calendar: February is as long as March where months are counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float32, Float64, Int, Shaped

from ..types import TransduceError

SECONDS = {
    "Y": 365 * 86400,
    "M": 28 * 86400,
    "D": 86400,
    "h": 3600,
    "s": 1,
}  # the least that each unit can be
DEGREES = 1e-6  # that rounding may move a point


class Gap(NamedTuple):
    """Steps that are missing between two neighbouring times."""

    after: np.datetime64
    before: np.datetime64
    missing: int


@dataclass(frozen=True, eq=False)
class ClimateFields:
    """v and u at the same times and places. `open_climate` reads them from files and brings them
    into this form.

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

    def __getitem__(self, index: Any) -> ClimateFields:
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

    def ticks(self, time: Any) -> Any:
        """Times as whole numbers of the unit of the step."""
        return _counted(time, self.step[1])

    def said(self, time: Any) -> str:
        """A time, or its tick, as far as the step resolves it: 2001-03 where months are counted."""
        return str(np.asarray(time).astype(f"datetime64[{self.step[1]}]"))

    @cached_property
    def missing(self) -> Int[np.ndarray, " k"]:
        """How many steps are missing after each but the last."""
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
        self, values: Any, at: Any = slice(None), of: Literal["v", "u"] = "u"
    ) -> xr.DataArray:
        """Values on this grid as a DataArray with times, coordinates and units. at: the steps that
        they belong to; of: "v" or "u".

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
    """Raise if fields are too few or out of order."""
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
    values: Shaped[np.ndarray, "t y x"], time: Any, lat: Any, lon: Any, name: str, unit: str
) -> xr.DataArray:
    """Values with times, coordinates and units, as files have them."""
    coordinates = {
        "time": ("time", time),
        "lat": ("lat", np.asarray(lat), {"units": "degrees_north", "standard_name": "latitude"}),
        "lon": ("lon", np.asarray(lon), {"units": "degrees_east", "standard_name": "longitude"}),
    }
    return xr.DataArray(values, coordinates, ["time", "lat", "lon"], name, {"units": unit})


def _counted(time: Any, unit: str) -> Any:
    return np.asarray(time).astype(f"datetime64[{unit}]").astype(np.int64)


def eastward(lon: Any) -> tuple[Float64[np.ndarray, " x"], Int[np.ndarray, " x"]]:
    """Longitudes ascending from the western edge, the first in [-180, 180), and where each stood; a
    meridian given twice is kept once.

    >>> eastward([0.0, 90.0, 180.0, 270.0])[0], eastward([-170.0, 160.0, 175.0])[0]
    (array([-180.,  -90.,    0.,   90.]), array([160., 175., 190.]))
    """
    west, stood = np.unique(
        (np.asarray(lon, dtype=np.float64) + 180) % 360 - 180, return_index=True
    )
    gaps = np.diff(west, append=west[0] + 360)
    edge = (
        (int(gaps.argmax()) + 1) % len(west) if gaps.max() > 1.5 * np.median(gaps) else 0
    )  # none: all the way round
    return np.concatenate([west[edge:], west[:edge] + 360]), np.roll(stood, -edge)


def regridded(fields: ClimateFields, lat: Any, lon: Any) -> ClimateFields:
    """The fields on another grid, by bilinear interpolation; across the seam where longitudes go
    all the way round.

    The paper's 720 x 720 points of ERA5:

    >>> regridded(fields, lat=np.arange(90, -90, -0.25), lon=np.arange(-180, 180, 0.5))
    """
    lat, lon = np.sort(np.asarray(lat, dtype=np.float64))[::-1].copy(), eastward(lon)[0]
    v, u = (resampled(field, fields.lat, fields.lon, lat, lon) for field in (fields.v, fields.u))
    return replace(fields, v=v, u=u, lat=lat, lon=lon)


def resampled(
    f: Float32[np.ndarray, "t y x"],
    lat: Float64[np.ndarray, " y"],
    lon: Float64[np.ndarray, " x"],
    onto_lat: Float64[np.ndarray, " j"],
    onto_lon: Float64[np.ndarray, " k"],
) -> Float32[np.ndarray, "t j k"]:
    """A field oriented as `ClimateFields` are, at other latitudes and longitudes in their own order
    and convention."""
    west, step = lon[0], np.median(np.diff(lon))
    around = np.append(lon, west + 360) if west + 360 - lon[-1] < 1.5 * step else lon
    east = (onto_lon - west + DEGREES) % 360 - DEGREES + west
    _check_inside("latitude", onto_lat, onto_lat, lat[-1], lat[0])
    _check_inside("longitude", onto_lon, east, west, around[-1])
    rows, columns = _between(-lat, -onto_lat), _between(around, east)
    return np.stack([_bilinear(frame, rows, columns) for frame in f])


def _check_inside(
    name: str,
    given: Float64[np.ndarray, " k"],
    x: Float64[np.ndarray, " k"],
    low: float,
    high: float,
) -> None:
    """Raise if some x, given by another convention perhaps, are not between."""
    outside = given[(x < low - DEGREES) | (x > high + DEGREES)]
    if outside.size:
        raise TransduceError(
            f"{name} {outside[0]:g} ({outside.size} of {x.size}) is outside of the fields, which "
            f"reach from {low:g} to {high:g}; expected "
            "none to be, for nothing is extrapolated. Leave them out, or give fields that reach "
            "so far."
        )


def _between(
    nodes: Float64[np.ndarray, " k"], x: Float64[np.ndarray, " j"]
) -> tuple[Int[np.ndarray, " j"], Float32[np.ndarray, " j"]]:
    """The node before each point, and how far it is on the way to the next."""
    place = np.interp(x, nodes, np.arange(len(nodes)))
    before = np.minimum(place.astype(np.int64), len(nodes) - 2)
    return before, (place - before).astype(np.float32)


def _bilinear(
    frame: Float32[np.ndarray, "y x"], rows: Any, columns: Any
) -> Float32[np.ndarray, "j k"]:
    (i, down), (j, east) = rows, columns
    frame = frame[i] * (1 - down)[:, None] + frame[i + 1] * down[:, None]
    return frame[:, j] * (1 - east) + frame[:, (j + 1) % frame.shape[1]] * east
