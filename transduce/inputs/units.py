"""Units of inputs, where they are stated: the attribute "units" of a DataArray, and of a DataFrame
that was read from a file, {column: unit}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from .messages import problem
from .numbers import loaded

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Units = Mapping[str, str]
"""The units of v, and of the columns of parameters, by name."""


def units_of(v: object, parameters: object) -> dict[str, str]:
    """The units that inputs state.

    Args:
        v: inputs, or None.
        parameters: what comes with them, or None.
    """
    found: dict[str, str] = {}
    for name, values in (("v", v), ("parameters", parameters)):
        if isinstance(values, loaded("xarray", "DataArray")):
            found[name] = str(cast("xr.DataArray", values).attrs.get("units", ""))
        if isinstance(values, loaded("pandas", "DataFrame")):
            stated = cast("pd.DataFrame", values).attrs.get("units")
            known = stated if isinstance(stated, Mapping) else {}
            found |= {str(name): str(unit) for name, unit in known.items()}
    return {name: unit for name, unit in found.items() if unit}


def check_units(v: object, parameters: object, known: Units) -> None:
    """Raise if queries state other units than the examples.

    Args:
        v: inputs of the queries, or None.
        parameters: what comes with them, or None.
        known: the units of the examples.
    """
    for name, unit in units_of(v, parameters).items():
        if known.get(name, unit) != unit:
            raise problem(
                f"{name} of the queries is in {unit!r}, and in {known[name]!r} in the examples",
                "the same unit",
                "Convert the values, or write the unit alike if only its spelling differs.",
            )
