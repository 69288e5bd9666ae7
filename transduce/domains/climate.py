"""Fields of the atmosphere over a region: pressure from temperature, files in and files out.

    u_hat(t) = T(D)(v(t)),      D = {(v(s), u(s)) | s in the times of the examples}

Fields may be on any grid that covers the region of the model. They are interpolated to the model's
grid, on which it answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from jaxtyping import Float32

from ..families.climate_fields import ClimateFields, located
from ..families.climate_files import open_climate, open_inputs
from ..families.climate_grids import resampled
from ..spaces import Region, regions
from ..types import Array, ExampleSet, TransduceError, to_tensor
from .base import DEFAULTS, Domain, Queries, Request, ends_of

if TYPE_CHECKING:
    import xarray as xr

    from ..conditioned import ConditionedOperator
    from ..files import PathLike
    from ..transducer import Transducer

# Fields further than this from the mean field of the training data, in its standard deviations,
# have another unit or are of another quantity.
FAR = 5.0


class Climate(Domain["Transducer", ExampleSet, "ConditionedOperator"]):
    """NetCDF files or Zarr stores with times, latitudes, longitudes and units. Several files are
    separated by commas."""

    name = "climate"

    def check_model(self, T: Transducer) -> None:
        _regions(T)

    def check(self, T: Transducer, examples: ExampleSet) -> None:
        for space, f, name in zip(_regions(T), (examples.v, examples.u), "vu", strict=True):
            space.check(to_tensor(f, f"examples.{name}"), None, f"examples.{name}")
            _check_near(space, np.asarray(f), f"the examples' {name}")

    def read_examples(
        self, T: Transducer, source: PathLike, request: Request = DEFAULTS
    ) -> ExampleSet:
        _check_grid_is_default(T, request)
        files = source if request.outputs is None else f"{source},{request.outputs}"
        return _pairs(T, open_climate(_files(files), v=request.v, u=request.u))

    def read_queries(
        self,
        T: Transducer,
        source: PathLike,
        examples: ExampleSet,
        request: Request = DEFAULTS,
    ) -> Queries:
        """Fields of the variable that the examples have: temperatures at different heights, such
        as t850 and t2m, are not interchangeable."""
        return Queries(_inputs(T, open_inputs(_files(source), v=str(examples.v.name))))

    def regress(self, T: Transducer, examples: ExampleSet, name: str = "") -> ConditionedOperator:
        return T.regress(examples)

    def answer(
        self, O: ConditionedOperator, queries: Queries, request: Request = DEFAULTS
    ) -> dict[str, Array]:
        """Fields with the times of the queries, on the grid of the model, under the name and in
        the unit of the examples' u."""
        u, (_, U) = O.examples.u, _regions(O.T)
        v = np.asarray(queries.v)
        parts = (O(v),) if request.band is None else O.predict(v, band=request.band)
        time = cast("xr.DataArray", queries.v).time.values
        name, unit = str(u.name), str(u.attrs["units"])
        return {
            end: located(fields, time, U.lat, U.lon, end, unit)
            for end, fields in zip(ends_of(name), parts, strict=False)
        }


DOMAIN = Climate()


def regress_climate(T: Transducer, examples: ClimateFields, v: xr.DataArray) -> xr.DataArray:
    """The fields that the operator of the examples gives for v, sorted by time, on the grid of the
    model.

    Args:
        T: a model of a region.
        examples: fields that cover the region.
        v: inputs, which state their units; dimensions time, lat and lon in any order and
            convention, as `open_inputs` returns them.

    >>> u = regress_climate(T, open_climate("days.nc"), open_inputs("today.nc"))
    >>> u.to_netcdf("pressure.nc")
    """
    name = str(v.name or examples.names[0])
    O = T.regress(_pairs(T, examples))
    queries = Queries(_inputs(T, open_inputs(v.to_dataset(name=name), v=name)))
    (u_hat,) = DOMAIN.answer(O, queries).values()
    return cast("xr.DataArray", u_hat)


def _regions(T: Transducer) -> tuple[Region, Region]:
    """The spaces of a model of a region; raises an error for any other model."""
    found = regions(T.V, T.U)
    if found is None:
        raise TransduceError(
            f"a model from {type(T.V).__name__} to {type(T.U).__name__} was given; expected one of "
            "a region, like climate-europe. Give arrays to T.regress."
        )
    return found


def _check_grid_is_default(T: Transducer, request: Request) -> None:
    """Raise an error if the user asks for another grid than the model's."""
    if request.at is not None or request.x is not None:
        grid = " x ".join(map(str, _regions(T)[0].grid))
        raise TransduceError(
            f"{'--x' if request.at is None else '--at'} was given to a model of a region, whose "
            f"grid is {grid}. Leave it out."
        )


def _files(source: PathLike) -> list[Path]:
    """The files in "t.nc,msl.nc"."""
    given = Path(source)
    return [given] if given.exists() else [Path(name.strip()) for name in str(source).split(",")]


def _pairs(T: Transducer, fields: ClimateFields) -> ExampleSet:
    """Fields as examples on the grid of the model."""
    pairs = [
        located(
            _on_grid(space, values, fields.lat, fields.lon, f"the examples' {said}"),
            fields.time,
            space.lat,
            space.lon,
            name,
            unit,
        )
        for space, values, said, name, unit in zip(
            _regions(T), (fields.v, fields.u), "vu", fields.names, fields.units, strict=True
        )
    ]
    return ExampleSet(*pairs)


def _inputs(T: Transducer, v: xr.DataArray) -> xr.DataArray:
    """Queries on the grid of the model."""
    V, _ = _regions(T)
    values = _on_grid(V, v.values, v.lat.values, v.lon.values, "the queries")
    return located(values, v.time.values, V.lat, V.lon, str(v.name), str(v.attrs["units"]))


def _on_grid(
    space: Region, f: Float32[np.ndarray, "n y x"], lat: np.ndarray, lon: np.ndarray, said: str
) -> Float32[np.ndarray, "n _y _x"]:
    """Fields on the grid of the model; raises an error if they do not cover it, or if their values
    are not like those that the model was trained on.

    Args:
        space: of the model.
        f: the fields.
        lat: of the fields.
        lon: of the fields.
        said: what error messages call the fields.
    """
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
    _check_near(space, on_grid, said)
    return on_grid


def _check_near(space: Region, f: np.ndarray, said: str) -> None:
    """Raise an error if fields on the model's grid are unlike the training data."""
    mean, unit = space.mean.numpy(force=True), float(space.unit)
    away = float(np.sqrt(np.square((f - mean) / unit).mean()))
    if away > FAR:
        raise TransduceError(
            f"{said} are about {f.mean():.4g}, what this model was trained on about "
            f"{mean.mean():.4g}, and {away:.0f} standard deviations are between; expected the "
            "same quantity in the same unit. Check the units in the file, or name another "
            "variable."
        )
