"""The reanalyses of the climate experiment, by name: where their files are, and what is in them.

europe          ERA-Interim, daily at 12 UTC, 2000-2010, 11 x 13 points:
                temperature at 850 hPa -> sea-level pressure
north-pacific   NCEP/NCAR R1, monthly, 1948-2025, 21 x 53 points:
                temperature near the surface -> sea-level pressure
winters         the same over the globe, the mean of each winter, 1949-2010, 73 x 144 points
globe           the same over the globe, monthly, 1948-2013, 73 x 144 points; the pressure is a
                reconstruction of rank 20
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..files import data_folders, not_found_in
from ..types import TransduceError
from .climate_fields import ClimateFields
from .climate_files import open_climate

FILES = {
    "europe": ("eraint_europe_daily_t850.nc", "eraint_europe_daily_mslp.nc"),
    "north-pacific": ("ncep_r1_npac_monthly_t_slp_1948-2025.nc",),
    "winters": ("ncep_r1_djf_t_slp_1949-2010.nc",),
    "globe": ("ncep_r1_monthly_t_slp.nc",),
}


@cache
def load_climate(name: str) -> ClimateFields:
    """The reanalysis of this name, from the files in `climate/` of the folder that TRANSDUCE_DATA
    names, or, in a source checkout, of `../shared/data`."""
    if name not in FILES:
        raise TransduceError(
            f"no climate fields are called {name!r}; known: {', '.join(FILES)}. Read files of "
            "your own with open_climate."
        )
    folders = [folder / "climate" for folder in data_folders()]
    for folder in folders:
        if all((folder / file).exists() for file in FILES[name]):
            return open_climate(*(folder / file for file in FILES[name]))
    raise TransduceError(
        f"{' and '.join(FILES[name])} are {not_found_in(folders)}. Download them, and set "
        "TRANSDUCE_DATA to a folder that has them in climate/. ECMWF publishes ERA-Interim, NOAA "
        "PSL publishes NCEP/NCAR R1."
    )


@dataclass(frozen=True)
class Period:
    """Some years of a reanalysis, which are read when they are needed."""

    name: str
    first: str
    last: str

    @property
    def fields(self) -> ClimateFields:
        return _period(self)


@cache
def _period(period: Period) -> ClimateFields:
    return load_climate(period.name).select(slice(period.first, period.last))
