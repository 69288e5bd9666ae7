"""One variable of climate files as an array over time, latitude and longitude.

Files name their dimensions differently, order latitudes in two ways and number longitudes by two
conventions. A `Series` has one form: times ascend, latitudes descend from the north, longitudes
ascend from the west."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Shaped

from ..files import brief
from ..types import TransduceError
from .climate_grids import eastward
from .climate_units import conversion

if TYPE_CHECKING:
    import xarray as xr

DIMENSIONS = {
    "time": ("time", "valid_time", "year"),
    "lat": ("lat", "latitude"),
    "lon": ("lon", "longitude"),
}
SAME_PLACE = 1e-3  # degrees


class Series(NamedTuple):
    """One variable over time, oriented like `ClimateFields`.

    Args:
        values: in the converted unit.
        time: ascending.
        lat: descending, in degrees.
        lon: ascending, in degrees.
        unit: of the values.
        said: what error messages call the variable.
    """

    values: Float32[np.ndarray, "t y x"]
    time: Shaped[np.ndarray, " t"]
    lat: Float64[np.ndarray, " y"]
    lon: Float64[np.ndarray, " x"]
    unit: str
    said: str


def read_series(
    datasets: Sequence[tuple[str, xr.Dataset]], name: str, units: Mapping[str, str]
) -> Series:
    """A variable from all sources that have it, sorted by time.

    Args:
        datasets: the sources, each with its name in error messages.
        name: of the variable.
        units: units by variable name, which override the file's.
    """
    parts = [
        _part(dataset[name], f"{name} in {said}", units)
        for said, dataset in datasets
        if name in dataset.data_vars
    ]
    for part in parts[1:]:
        check_grid(parts[0], part)
    time = np.concatenate([part.time for part in parts])
    order = np.argsort(time, kind="stable")
    joined = parts[0]._replace(
        values=np.concatenate([part.values for part in parts])[order], time=time[order]
    )
    repeated = np.flatnonzero(joined.time[1:] == joined.time[:-1])
    if repeated.size:
        raise TransduceError(
            f"{joined.said} has {joined.time[repeated[0]]} more than once ({repeated.size} times "
            "are repeats); expected each time once. "
            "Drop repeats with xarray's drop_duplicates, and give the dataset."
        )
    _check_finite(joined)
    return joined


def _part(array: xr.DataArray, said: str, units: Mapping[str, str]) -> Series:
    """A variable of one source, with ordered axes and converted values."""
    array = _three_axes(array, said)
    if not array.size:
        raise TransduceError(
            f"{said} has shape {array.shape}, which is nothing; expected a time or more. Select "
            "other dates."
        )
    unit, scale, offset = conversion(array, said, units)
    with reading(said):
        values = array.values
    if (scale, offset) != (1.0, 0.0):
        values = values.astype(np.float64) * scale + offset
    lat, (lon, columns) = array.lat.values.astype(np.float64), eastward(array.lon.values)
    rows = np.argsort(-lat)
    return Series(
        values.astype(np.float32)[:, rows][:, :, columns],
        array.time.values,
        lat[rows],
        lon,
        unit,
        said,
    )


def _three_axes(array: xr.DataArray, said: str) -> xr.DataArray:
    """The variable with dimensions time, lat and lon.

    Other dimensions, such as a level, must have length one and are dropped. A time without a
    dimension becomes one of length one."""
    if not set(DIMENSIONS["time"]) & set(array.dims):
        array = array.expand_dims(
            [name for name in DIMENSIONS["time"] if name in array.coords and not array[name].ndim][
                :1
            ]
        )
    found = {
        ours: next((name for name in names if name in array.dims and name in array.coords), None)
        for ours, names in DIMENSIONS.items()
    }
    if missing := [" or ".join(DIMENSIONS[ours]) for ours, name in found.items() if name is None]:
        timeless = found["time"] is None and len(missing) == 1 and array.ndim == 2
        remedy = (
            "Say when it was: dataset.expand_dims(time=[date])"
            if timeless
            else "Rename them with xarray"
        )
        raise TransduceError(
            f"{said} has dimensions {', '.join(map(str, array.dims))}; expected also, with "
            f"coordinates, {', '.join(missing)}. "
            f"{remedy}, and give the dataset."
        )
    others = [name for name in array.dims if name not in found.values()]
    if long := [name for name in others if array.sizes[name] > 1]:
        raise TransduceError(
            f"{said} has {array.sizes[long[0]]} places along {long[0]}; expected one of all but "
            "time, lat and lon. Choose with xarray, "
            f"dataset.isel({long[0]}=0), and give the dataset."
        )
    array = (
        array.squeeze(others, drop=True)
        .reset_coords(drop=True)
        .assign_coords({found["time"]: _dates(array[found["time"]], said)})
    )
    return array.rename({name: ours for ours, name in found.items()}).transpose(
        "time", "lat", "lon"
    )


def _dates(time: xr.DataArray, said: str) -> Shaped[np.ndarray, " t"]:
    """Times to the second. A year becomes its first second."""
    if time.dtype.kind == "M":
        return time.values.astype("datetime64[s]")
    if time.name == "year" and time.dtype.kind == "i":
        return (time.values - 1970).astype("datetime64[Y]").astype("datetime64[s]")
    raise TransduceError(
        f"{said} has times of type {time.dtype}; expected dates of the standard calendar. Give "
        "them units like 'days since 2000-01-01', or "
        "use xarray's convert_calendar('standard'), and give the dataset."
    )


def check_grid(one: Series, other: Series) -> None:
    for name, a, b in (("latitudes", one.lat, other.lat), ("longitudes", one.lon, other.lon)):
        if len(a) != len(b) or np.abs(a - b).max() > SAME_PLACE:
            grids = (f"{len(x)} {name} from {x[0]:g} to {x[-1]:g}" for x in (a, b))
            raise TransduceError(
                f"{one.said} has {next(grids)}, {other.said} {next(grids)}; expected one grid. "
                "Interpolate one with xarray's interp, and "
                "give the dataset."
            )


def _check_finite(series: Series) -> None:
    bad = ~np.isfinite(series.values)
    if bad.any():
        t, y, x = np.unravel_index(bad.argmax(), bad.shape)
        raise TransduceError(
            f"{series.said} is {series.values[t, y, x]} on {series.time[t]} at latitude "
            f"{series.lat[y]:g}, longitude {series.lon[x]:g} "
            f"({bad.sum()} of {bad.size} values are not finite); expected numbers. Fill them or "
            "leave those "
            "times out, and give the dataset."
        )


@contextmanager
def reading(said: str) -> Iterator[None]:
    """Turn any error of a reading library into one that names the file."""
    try:
        yield
    except Exception as error:
        raise TransduceError(
            f"{said} cannot be read ({brief(error)}); expected a NetCDF file or a Zarr store. "
            "Fetch it again, or open it with xarray and "
            "give the dataset."
        ) from error
