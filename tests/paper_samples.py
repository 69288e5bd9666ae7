"""What tests of the experiments run on: small files in the place of the data, and scales that take
seconds."""

import gzip
import struct
from dataclasses import replace

import numpy as np
import xarray as xr

from paper import adr, burgers, climate, images
from paper.climate import places
from paper.climate import setting as climate_setting
from paper.images import setting as images_setting
from transduce.families import climate_data, load_climate
from transduce.families import image_files as image_families

TINY = {
    "adr": replace(
        adr.QUICK,
        operators=1,
        ablated=1,
        repeats=1,
        sizes=(3, 6),
        fitted_most=6,
        table_n=6,
        queries=3,
        steps=2,
        depths=(2,),
        stored=(4, 150),
        paper_steps=2,
        training_operators=(4,),
    ),
    "burgers": replace(
        burgers.QUICK,
        operators=1,
        few=1,
        queries=2,
        viscosities=(0.3,),
        datasets=1,
        steps=1,
        table_n=10,
        sizes=(2, 10),
        band_sizes=(10,),
    ),
    "climate": replace(climate.QUICK, every=200, curve_every=700, lags=(7,)),
    "images": replace(
        images.QUICK,
        n=12,
        queries=6,
        sizes=(12,),
        tasks=2,
        rival_tasks=2,
        curve_tasks=2,
        few_tasks=2,
        steps=1,
    ),
}


def forget():
    """Empty what caches data that was read."""
    for cached in (
        load_climate,
        climate_data._period,
        climate_setting.fitted_baseline,
        places.tuned,
        image_families.training_half,
        images_setting.images_of,
    ):
        cached.cache_clear()


def write_climate(folder):
    """Files of every reanalysis under their own names and over their own years, on small grids but
    that of Europe."""
    (folder / "climate").mkdir()
    days = np.arange("2000-01-01", "2011-01-01", dtype="datetime64[D]").astype("datetime64[ns]")
    europe = 55 - 2.5 * np.arange(11), -15 + 2.5 * np.arange(13)
    for file, name in zip(climate_data.FILES["europe"], ("t", "msl"), strict=True):
        write_fields(folder, file, days, *europe, [name])
    grid = 80 - 20.0 * np.arange(9), 30.0 * np.arange(12)
    for name, first, last, pressure in (
        ("north-pacific", "1948-01", "2025-07", "slp"),
        ("globe", "1948-01", "2013-04", "slp_eof20"),
    ):
        months = np.arange(first, last, dtype="datetime64[M]").astype("datetime64[ns]")
        write_fields(folder, climate_data.FILES[name][0], months, *grid, ["t", pressure])
    years = np.arange(1949, 2011)
    write_fields(folder, climate_data.FILES["winters"][0], years, *grid, ["t", "slp"])


def write_fields(folder, file, time, lat, lon, names):
    """Fields with a season, weather of a few modes, and pressure that follows from temperature."""
    generator = np.random.default_rng(0)
    modes = generator.normal(size=(4, len(lat), len(lon)))
    season = 8 * np.sin(2 * np.pi * np.arange(len(time)) / 365.25)[:, None, None]
    t = 280 + season + np.einsum("tk,kyx->tyx", generator.normal(size=(len(time), 4)), modes)
    p = 101_000 + 50 * (t - 280) + 300 * np.roll(t - 280, 1, 2)
    step = "year" if np.issubdtype(np.asarray(time).dtype, np.integer) else "time"
    every = {
        "t": ((step, "lat", "lon"), t, {"units": "K"}),
        "msl": ((step, "lat", "lon"), p, {"units": "Pa"}),
    }
    every |= {"slp": every["msl"], "slp_eof20": every["msl"]}
    data = xr.Dataset({name: every[name] for name in names}, {step: time, "lat": lat, "lon": lon})
    data.astype(np.float32).to_netcdf(folder / "climate" / file)


def write_images(folder):
    """Every set, as few images as tasks need: digits of scikit-learn, enlarged."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = image_families.resized(digits.data / 16).clip(0, 1).reshape(-1, 28, 28) * 255
    for name, split in [*((name, "test") for name in images_setting.SETS), ("mnist", "train")]:
        half = slice(0, 1200) if split == "test" else slice(1200, None)
        for file, array in zip(image_families.FILES[split], (pixels, digits.target), strict=True):
            write_idx(folder / name / file, array[half])


def write_idx(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))
