"""Temperature and pressure by their usual names, and conversion to kelvin and pascal.

converted = scale * stored + offset
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..types import TransduceError

if TYPE_CHECKING:
    import xarray as xr

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


def conversion(
    array: xr.DataArray, said: str, units: Mapping[str, str]
) -> tuple[str, float, float]:
    """The unit, scale and offset of the values after conversion.

    Variables that are neither temperature nor pressure keep their unit.

    Args:
        array: a variable whose attribute `units` may state its unit.
        said: what error messages call the variable.
        units: units by variable name, which override the attribute.
    """
    name = str(array.name)
    stated, kind = str(units.get(name, array.attrs.get("units", ""))), KINDS.get(name.lower())
    unit, scale, offset = CONVERSIONS.get(
        stated.strip().lower().replace(" ", "_"), (stated, 1.0, 0.0)
    )
    if not unit or kind not in (None, unit):
        raise TransduceError(
            f"{said} has units {stated!r}; expected {KNOWN.get(kind or '', 'some')}. Say what "
            f"they are: units={{{name!r}: {kind or 'K'!r}}} to open_climate, or the attribute "
            "units in the file."
        )
    return unit, scale, offset
