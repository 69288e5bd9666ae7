"""Longitudes in one convention, and bilinear interpolation between grids of latitude and longitude.

Nothing is extrapolated. Grids around the whole globe have no edge between the last longitude and
the first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float32, Float64, Int

from ..types import TransduceError
from .climate_fields import ClimateFields, Degrees

Between = tuple[Int[np.ndarray, " _"], Float32[np.ndarray, " _"]]  # node, fraction to the next
DEGREES = 1e-6  # tolerance for rounding


def eastward(lon: Degrees) -> tuple[Float64[np.ndarray, " x"], Int[np.ndarray, " x"]]:
    """Longitudes ascending from the western edge, and their previous indices.

    The first longitude is in [-180, 180). A meridian that occurs twice is kept once.

    >>> eastward([0.0, 90.0, 180.0, 270.0])[0], eastward([-170.0, 160.0, 175.0])[0]
    (array([-180.,  -90.,    0.,   90.]), array([160., 175., 190.]))
    """
    west, stood = np.unique(
        (np.asarray(lon, dtype=np.float64) + 180) % 360 - 180, return_index=True
    )
    gaps = np.diff(west, append=west[0] + 360)
    # None: all the way round.
    edge = (int(gaps.argmax()) + 1) % len(west) if gaps.max() > 1.5 * np.median(gaps) else 0
    return np.concatenate([west[edge:], west[:edge] + 360]), np.roll(stood, -edge)


def regridded(fields: ClimateFields, lat: Degrees, lon: Degrees) -> ClimateFields:
    """The fields on another grid, by bilinear interpolation.

    Fields around the whole globe are also interpolated between the last longitude and the first.

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
    """A field at other latitudes and longitudes, by bilinear interpolation.

    Args:
        f: the field, oriented like `ClimateFields`.
        lat: the field's latitudes.
        lon: the field's longitudes.
        onto_lat: latitudes of the result, in any order.
        onto_lon: longitudes of the result, in any order and convention.
    """
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
    """Raise an error if some x are not between low and high. given: x as the user gave them."""
    outside = given[(x < low - DEGREES) | (x > high + DEGREES)]
    if outside.size:
        raise TransduceError(
            f"{name} {outside[0]:g} ({outside.size} of {x.size}) is outside of the fields, which "
            f"reach from {low:g} to {high:g}; expected "
            "none to be, for nothing is extrapolated. Leave them out, or give fields that reach "
            "so far."
        )


def _between(nodes: Float64[np.ndarray, " k"], x: Float64[np.ndarray, " j"]) -> Between:
    """The node before each point, and the fraction of the way to the next node."""
    place = np.interp(x, nodes, np.arange(len(nodes)))
    before = np.minimum(place.astype(np.int64), len(nodes) - 2)
    return before, (place - before).astype(np.float32)


def _bilinear(
    frame: Float32[np.ndarray, "y x"], rows: Between, columns: Between
) -> Float32[np.ndarray, "j k"]:
    (i, down), (j, east) = rows, columns
    frame = frame[i] * (1 - down)[:, None] + frame[i + 1] * down[:, None]
    return frame[:, j] * (1 - east) + frame[:, (j + 1) % frame.shape[1]] * east
