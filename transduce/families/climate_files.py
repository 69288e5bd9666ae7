"""Climate fields from NetCDF files and Zarr stores of any origin.

    v: temperature in kelvin,      u: pressure in pascal

Variables, dimensions and units have many names, which are converted to one form. Ambiguous files
raise an error that says how to resolve the ambiguity."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..files import PathLike
from ..types import TransduceError
from .climate_fields import ClimateFields, check_axes, located
from .climate_series import check_grid, read_series, reading
from .climate_units import PRESSURES, TEMPERATURES

if TYPE_CHECKING:
    import xarray as xr

    Source = PathLike | xr.Dataset | Sequence["Source"]
    Datasets = Sequence[tuple[str, xr.Dataset]]  # each with its name in error messages


def open_climate(
    *sources: Source,
    v: str | None = None,
    u: str | None = None,
    units: Mapping[str, str] | None = None,
) -> ClimateFields:
    """Temperature v and pressure u.

    Times that only one of the two variables has are dropped with a warning.

    Args:
        sources: NetCDF files, Zarr stores, xarray datasets, or lists of these. They may hold both
            variables, one variable each, or one year each.
        v: the name of the input variable; needed if it is unusual or ambiguous. Variables that are
            neither temperature nor pressure keep their unit.
        u: the name of the output variable, likewise.
        units: units by variable name, for files that do not state them: {"t": "degC"}.

    >>> open_climate("eraint_europe_daily_t850.nc", "eraint_europe_daily_mslp.nc")
    ClimateFields(t -> msl, 4018 steps of 1 D from 2000-01-01 to 2010-12-31, 11 x 13)
    """
    with _all_opened(sources) as datasets:
        names = _chosen(datasets, "v", v, TEMPERATURES), _chosen(datasets, "u", u, PRESSURES)
        one, other = (read_series(datasets, name, units or {}) for name in names)
    check_grid(one, other)
    time, first, second = np.intersect1d(
        one.time, other.time, assume_unique=True, return_indices=True
    )
    if not len(time):
        raise TransduceError(
            f"{one.said} is from {one.time[0]} to {one.time[-1]}, {other.said} from "
            f"{other.time[0]} to {other.time[-1]}, and no time is in both; expected some to "
            "be. Make them agree with xarray, and give the datasets."
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
    *sources: Source, v: str | None = None, units: Mapping[str, str] | None = None
) -> xr.DataArray:
    """Temperature v alone, for prediction: (time, lat, lon), oriented and converted as by
    `open_climate`.

    Args:
        sources: as for `open_climate`.
        v: the name of the variable; needed if it is unusual or ambiguous.
        units: units by variable name, for files that do not state them.

    >>> open_inputs("today.nc").sizes
    Frozen({'time': 1, 'lat': 11, 'lon': 13})
    """
    with _all_opened(sources) as datasets:
        name = _chosen(datasets, "v", v, TEMPERATURES)
        found = read_series(datasets, name, units or {})
    check_axes(found.time, found.lat, found.lon)
    return located(found.values, found.time, found.lat, found.lon, name, found.unit)


@contextmanager
def _all_opened(sources: Sequence[Source]) -> Iterator[Datasets]:
    """Each source as a dataset. Files are closed at the end."""
    import xarray as xr

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


def _each(sources: Sequence[Source]) -> Iterator[PathLike | xr.Dataset]:
    """All sources, including those in lists."""
    import xarray as xr

    for source in sources:
        if isinstance(source, list | tuple):
            yield from _each(source)
        elif isinstance(source, str | os.PathLike | xr.Dataset):
            yield source
        else:
            raise TransduceError(
                f"a source is of type {type(source).__name__}; expected the path of a NetCDF file "
                "or a Zarr store, a dataset, or a list of these. Give an array as "
                "array.to_dataset(name=...), and what yields paths as list(paths)."
            )


def _opened(path: PathLike) -> xr.Dataset:
    import xarray as xr

    if not Path(path).exists():
        raise TransduceError(
            f"there is no file {path}; expected a NetCDF file or a Zarr store. Check the path."
        )
    with reading(str(path)):
        if Path(path).is_dir():
            return xr.open_dataset(path, engine="zarr", consolidated=False)
        return xr.open_dataset(path)


def _chosen(datasets: Datasets, which: str, name: str | None, usual: Sequence[str]) -> str:
    """The name of the variable to read: `name`, or the only one with a usual name."""
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
            f"for {which}; there is {', '.join(there) or 'none'}. {named} the file that has it."
        )
    return found[0]
