"""ERA5 (Hersbach et al., 2020): where surface temperature and pressure at 12 UTC are had, as the
paper has them (supplement S.3.3).

    ARCO-ERA5
    Google's public copy, read over the network without an account: pip install gcsfs
    Climate Data Store
    a file for each year, with a free account and its key in ~/.cdsapirc: pip install cdsapi

Both give 721 x 1440 points, 8 MB a day; `regridded` brings them to 720 x 720.

>>> fields = open_climate(era5_online("2016-01-01", "2016-01-31"))
>>> fields = open_climate(*(download_era5(year, f"era5_{year}.nc") for year in range(2010, 2015)))
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..files import PathLike, brief, replacing
from ..types import TransduceError

if TYPE_CHECKING:
    import xarray as xr

ARCO = "gs://gcp-public-data-arco-era5/ar/full_37-1h-0p25deg-chunk-1.zarr-v3"
VARIABLES = ["2m_temperature", "surface_pressure"]


def era5_online(first: str, last: str, hour: int = 12) -> xr.Dataset:
    """The days from first to last at one hour, UTC, for `open_climate`, which fetches them."""
    import xarray as xr

    try:
        store = xr.open_zarr(ARCO, chunks=None, storage_options={"token": "anon"})
    except Exception as error:
        raise TransduceError(
            f"{ARCO} cannot be opened ({brief(error)}); expected gcsfs and a network. Try pip "
            "install gcsfs, or download_era5."
        ) from error
    hours = store[VARIABLES].sel(time=slice(first, last))
    return hours.isel(time=np.flatnonzero(hours.time.dt.hour == hour))


def cds_request(year: int, hour: int = 12) -> dict[str, str | list[str]]:
    """What is asked of the dataset reanalysis-era5-single-levels: a year of days at one hour,
    UTC."""
    return {
        "product_type": ["reanalysis"],
        "variable": VARIABLES,
        "year": [str(year)],
        "month": [f"{month:02d}" for month in range(1, 13)],
        "day": [f"{day:02d}" for day in range(1, 32)],
        "time": [f"{hour:02d}:00"],
        "data_format": "netcdf",
        "download_format": "unarchived",
    }


def download_era5(year: int, path: PathLike, hour: int = 12) -> Path:
    """Fetch a year from the Climate Data Store into a file, unless it is there already; it may
    queue for hours."""
    path = Path(path)
    if path.exists():
        return path
    try:
        import cdsapi

        with replacing(path) as temporary:
            cdsapi.Client().retrieve(
                "reanalysis-era5-single-levels", cds_request(year, hour), str(temporary)
            )
    except Exception as error:
        raise TransduceError(
            f"ERA5 of {year} cannot be fetched ({brief(error)}); expected cdsapi (pip install "
            "cdsapi) and a key of "
            "https://cds.climate.copernicus.eu in ~/.cdsapirc. Or use era5_online."
        ) from error
    return path
