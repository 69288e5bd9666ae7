"""From days of weather to a model of their region, and back: what files hold goes in, a field with
times and places comes out.

    u_hat(t) = T(D)(v(t)),      D = {(v(s), u(s)) | s in the examples}

Fields come on any grid that covers the region; they are interpolated to the model's own, on which
it answers."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float32

from .conditioned import ConditionedOperator
from .families.climate_fields import ClimateFields, located, resampled
from .families.climate_files import open_inputs
from .spaces import Region
from .transducer import Transducer
from .types import ExampleSet, TransduceError

# standard deviations from what the model was trained on: no weather, but another unit, or another
# quantity
FAR = 5.0


def condition_climate(T: Transducer, examples: ClimateFields) -> ConditionedOperator:
    """The operator of the examples, from fields to fields on the grid of the model."""
    V, U = _regions(T)
    v = _on_grid(V, examples.v, examples.lat, examples.lon, "the examples' v")
    u = _on_grid(U, examples.u, examples.lat, examples.lon, "the examples' u")
    return T.regress(ExampleSet(v, u))


def regress_climate(T: Transducer, examples: ClimateFields, v: xr.DataArray) -> xr.DataArray:
    """The fields that the examples' operator gives for v, in the order of time, on the grid of the
    model.

    v has dimensions time, lat and lon in any order and convention, and says its units, as
    `open_inputs` gives it.

    >>> u = regress_climate(T, open_climate("days.nc"), open_inputs("today.nc"))
    >>> u.to_netcdf("pressure.nc")
    """
    O, (V, U) = condition_climate(T, examples), _regions(T)
    name = str(v.name or examples.names[0])
    asked = open_inputs(v.to_dataset(name=name), v=name)
    u_hat = O(_on_grid(V, asked.values, asked.lat.values, asked.lon.values, "the queries"))
    return located(u_hat, asked.time.values, U.lat, U.lon, examples.names[1], examples.units[1])


def _regions(T: Transducer) -> tuple[Region, Region]:
    """The spaces of a model of a region, or an error if it is none."""
    if not isinstance(T.V, Region) or not isinstance(T.U, Region):
        raise TransduceError(
            f"a model from {type(T.V).__name__} to {type(T.U).__name__} was given; expected one "
            "of a region, like climate-europe. "
            "Give arrays to T.regress."
        )
    return T.V, T.U


def _on_grid(
    space: Region, f: Float32[np.ndarray, "n y x"], lat: np.ndarray, lon: np.ndarray, said: str
) -> Float32[np.ndarray, "n _y _x"]:
    """Fields on the grid of the model, or an error if they do not reach so far or are not of its
    kind."""
    try:
        on_grid = resampled(f, lat, lon, np.array(space.lat), np.array(space.lon))
    except TransduceError as error:
        region = (
            f"{space.lat[0]:g} to {space.lat[-1]:g} N and {space.lon[0]:g} to {space.lon[-1]:g} E"
        )
        outside = str(error).split("; expected")[0]
        raise TransduceError(
            f"{said} do not cover the region of this model, {region}: {outside}. Give fields that "
            "reach so far."
        ) from None
    mean, unit = space.mean.numpy(force=True), float(space.unit)
    away = float(np.sqrt(np.square((on_grid - mean) / unit).mean()))
    if away > FAR:
        raise TransduceError(
            f"{said} are about {on_grid.mean():.4g}, what this model was trained on about "
            f"{mean.mean():.4g}, and {away:.0f} standard "
            "deviations are between; expected the same quantity in the same unit. Check the units "
            "in the file, or name another variable."
        )
    return on_grid
