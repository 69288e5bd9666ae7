"""Climate fields from NetCDF files and Zarr stores, whoever wrote them.

    v = scale * stored + offset  in kelvin,      u = scale * stored  in pascal

Variables, dimensions and units go by many names, latitudes in two orders and longitudes by two
conventions: here they come to one. What cannot be settled without guessing is an error that says
how to settle it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float32, Float64, Shaped

from ..files import PathLike, brief
from ..types import TransduceError
from .climate_fields import ClimateFields, check_axes, eastward, located

TEMPERATURES = (
    "t",
    "t2m",
    "2t",
    "t850",
    "ta",
    "tas",
    "air",
    "temp",
    "temperature",
    "2m_temperature",
    "air_temperature",
)
AT_SURFACE = ("sp", "ps", "pres", "pressure", "surface_pressure")
AT_SEA_LEVEL = (
    "msl",
    "mslp",
    "slp",
    "slp_eof20",
    "psl",
    "prmsl",
    "sea_level_pressure",
    "mean_sea_level_pressure",
)
PRESSURES = (*AT_SURFACE, *AT_SEA_LEVEL)
KINDS = dict.fromkeys(TEMPERATURES, "K") | dict.fromkeys(PRESSURES, "Pa")
DIMENSIONS = {
    "time": ("time", "valid_time", "year"),
    "lat": ("lat", "latitude"),
    "lon": ("lon", "longitude"),
}
SPELLINGS = {
    ("K", 1.0, 0.0): ("k", "kelvin", "degk", "deg_k", "degree_kelvin", "degrees_kelvin"),
    ("K", 1.0, 273.15): (
        "c",
        "°c",
        "degc",
        "deg_c",
        "celsius",
        "degree_c",
        "degrees_c",
        "degree_celsius",
        "degrees_celsius",
    ),
    ("Pa", 1.0, 0.0): ("pa", "pascal", "pascals"),
    ("Pa", 100.0, 0.0): (
        "hpa",
        "mb",
        "mbar",
        "millibar",
        "millibars",
        "hectopascal",
        "hectopascals",
    ),
}
CONVERSIONS = {
    spelling: conversion for conversion, spellings in SPELLINGS.items() for spelling in spellings
}
KNOWN = {"K": "K or degC", "Pa": "Pa, hPa or mbar"}
SAME_PLACE = 1e-3  # degrees

Datasets = Sequence[tuple[str, xr.Dataset]]  # each with what messages call it


class Series(NamedTuple):
    """One variable over time, oriented as `ClimateFields` are; `said` is what messages call it."""

    values: Float32[np.ndarray, "t y x"]
    time: Shaped[np.ndarray, " t"]
    lat: Float64[np.ndarray, " y"]
    lon: Float64[np.ndarray, " x"]
    unit: str
    said: str


def open_climate(
    *sources: Any,
    v: str | None = None,
    u: str | None = None,
    units: Mapping[str, str] | None = None,
) -> ClimateFields:
    """Temperature v and pressure u from one source or several: both in one, one in each, or a file
    for each year.

    sources: NetCDF files, Zarr stores or datasets that xarray has opened, or lists of them. v, u:
    the names of the variables, if they are not usual ones or if several could be meant; those of
    another kind keep their units. units: of variables that do not say theirs, {"t": "degC"}. Times
    that only one of the two has are left out, with a warning.

    >>> open_climate("eraint_europe_daily_t850.nc", "eraint_europe_daily_mslp.nc")
    ClimateFields(t -> msl, 4018 steps of 1 D from 2000-01-01 to 2010-12-31, 11 x 13)
    """
    with _all_opened(sources) as datasets:
        names = _chosen(datasets, "v", v, TEMPERATURES), _chosen(datasets, "u", u, PRESSURES)
        one, other = (_series(datasets, name, units or {}) for name in names)
    _check_grid(one, other)
    time, first, second = np.intersect1d(
        one.time, other.time, assume_unique=True, return_indices=True
    )
    if not len(time):
        raise TransduceError(
            f"{one.said} is from {one.time[0]} to {one.time[-1]}, {other.said} from "
            f"{other.time[0]} to {other.time[-1]}, and no time is in "
            "both; expected some to be. Make them agree with xarray, and give the datasets."
        )
    if dropped := len(one.time) + len(other.time) - 2 * len(time):
        warnings.warn(
            f"{dropped} times that only one of {one.said} and {other.said} has were left out; "
            f"{len(time)} remain.",
            stacklevel=2,
        )
    return ClimateFields(
        one.values[first],
        other.values[second],
        time,
        one.lat,
        one.lon,
        names,
        (one.unit, other.unit),
    )


def open_inputs(
    *sources: Any, v: str | None = None, units: Mapping[str, str] | None = None
) -> xr.DataArray:
    """Temperature v alone, of which pressure is to be told: (time, lat, lon), oriented and
    converted as `open_climate` does.

    >>> open_inputs("today.nc").sizes
    Frozen({'time': 1, 'lat': 11, 'lon': 13})
    """
    with _all_opened(sources) as datasets:
        name = _chosen(datasets, "v", v, TEMPERATURES)
        series = _series(datasets, name, units or {})
    check_axes(series.time, series.lat, series.lon)
    return located(series.values, series.time, series.lat, series.lon, name, series.unit)


@contextmanager
def _all_opened(sources: Sequence[Any]) -> Iterator[Datasets]:
    """Each source as a dataset; files are closed in the end."""
    with ExitStack() as stack:
        datasets = [
            ("a dataset", source)
            if isinstance(source, xr.Dataset)
            else (str(source), stack.enter_context(_opened(source)))
            for source in _each(sources)
        ]
        if not datasets:
            raise TransduceError(
                "no file was given; expected one or more. Give the paths of NetCDF files or Zarr "
                "stores."
            )
        yield datasets


def _each(sources: Sequence[Any]) -> Iterator[PathLike | xr.Dataset]:
    """All of them, those in lists too."""
    for source in sources:
        if isinstance(source, list | tuple):
            yield from _each(source)
        elif isinstance(source, str | os.PathLike | xr.Dataset):
            yield source
        else:
            raise TransduceError(
                f"a source is of type {type(source).__name__}; expected the path of a NetCDF file "
                "or a Zarr store, a dataset, or a list of "
                "these. Give an array as array.to_dataset(name=...), and what yields paths as "
                "list(paths)."
            )


@contextmanager
def _reading(said: str) -> Iterator[None]:
    """Each library has its own error for a damaged file."""
    try:
        yield
    except Exception as error:
        raise TransduceError(
            f"{said} cannot be read ({brief(error)}); expected a NetCDF file or a Zarr store. "
            "Fetch it again, or open it with xarray and "
            "give the dataset."
        ) from error


def _opened(path: PathLike) -> xr.Dataset:
    if not Path(path).exists():
        raise TransduceError(
            f"there is no file {path}; expected a NetCDF file or a Zarr store. Check the path."
        )
    zarr: dict[str, Any] = {"engine": "zarr", "consolidated": False}
    with _reading(str(path)):
        return xr.open_dataset(path, **(zarr if Path(path).is_dir() else {}))


def _chosen(datasets: Datasets, which: str, name: str | None, usual: Sequence[str]) -> str:
    """The name of the variable that is meant."""
    there = sorted({str(variable) for _, dataset in datasets for variable in dataset.data_vars})
    found = [
        variable for variable in there if (variable == name if name else variable.lower() in usual)
    ]
    if len(found) > 1:
        raise TransduceError(
            f"{' and '.join(found)} could each be {which}; expected one. Say which: "
            f"{which}={found[0]!r} (--{which} {found[0]})."
        )
    if not found:
        of_another_kind = PRESSURES if usual is TEMPERATURES else TEMPERATURES
        others = [variable for variable in there if variable.lower() not in of_another_kind]
        named = f"Name one of these, {which}=... (--{which} ...), or give" if others else "Give"
        raise TransduceError(
            f"{', '.join(said for said, _ in datasets)}: no variable {name or ' or '.join(usual)} "
            f"for {which}; there is "
            f"{', '.join(there) or 'none'}. {named} the file that has it."
        )
    return found[0]


def _series(datasets: Datasets, name: str, units: Mapping[str, str]) -> Series:
    """A variable from all the sources that have it, in the order of time."""
    parts = [
        _part(dataset[name], f"{name} in {said}", units)
        for said, dataset in datasets
        if name in dataset.data_vars
    ]
    for part in parts[1:]:
        _check_grid(parts[0], part)
    time = np.concatenate([part.time for part in parts])
    order = np.argsort(time, kind="stable")
    series = parts[0]._replace(
        values=np.concatenate([part.values for part in parts])[order], time=time[order]
    )
    repeated = np.flatnonzero(series.time[1:] == series.time[:-1])
    if repeated.size:
        raise TransduceError(
            f"{series.said} has {series.time[repeated[0]]} more than once ({repeated.size} times "
            "are repeats); expected each time once. "
            "Drop repeats with xarray's drop_duplicates, and give the dataset."
        )
    _check_finite(series)
    return series


def _part(array: xr.DataArray, said: str, units: Mapping[str, str]) -> Series:
    """A variable of one source: its axes in order and oriented, its values converted."""
    array = _three_axes(array, said)
    if not array.size:
        raise TransduceError(
            f"{said} has shape {array.shape}, which is nothing; expected a time or more. Select "
            "other dates."
        )
    unit, scale, offset = _conversion(array, said, units)
    with _reading(said):
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
    """The variable with dimensions time, lat and lon; others, like a level, are of length one and
    go. A time may stand alone."""
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
    """Times to the second; a year is its first one."""
    if time.dtype.kind == "M":
        return time.values.astype("datetime64[s]")
    if time.name == "year" and time.dtype.kind == "i":
        return (time.values - 1970).astype("datetime64[Y]").astype("datetime64[s]")
    raise TransduceError(
        f"{said} has times of type {time.dtype}; expected dates of the standard calendar. Give "
        "them units like 'days since 2000-01-01', or "
        "use xarray's convert_calendar('standard'), and give the dataset."
    )


def _conversion(
    array: xr.DataArray, said: str, units: Mapping[str, str]
) -> tuple[str, float, float]:
    """The unit that values are brought to, with scale and offset; variables that are neither
    temperature nor pressure keep theirs."""
    name = str(array.name)
    stated, kind = str(units.get(name, array.attrs.get("units", ""))), KINDS.get(name.lower())
    unit, scale, offset = CONVERSIONS.get(
        stated.strip().lower().replace(" ", "_"), (stated, 1.0, 0.0)
    )
    if not unit or kind not in (None, unit):
        raise TransduceError(
            f"{said} has units {stated!r}; expected {KNOWN.get(kind or '', 'some')}. Say what "
            "they are: "
            f"units={{{name!r}: {kind or 'K'!r}}} to open_climate, or the attribute units in the "
            "file."
        )
    return unit, scale, offset


def _check_grid(one: Series, other: Series) -> None:
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
