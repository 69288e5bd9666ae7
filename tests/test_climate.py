"""Climate fields: whatever form files have, one comes out; windows in time, tasks, other grids, errors by area, and bad files."""

import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

from transduce import OperatorFamily, TransduceError
from transduce.families import (
    ClimateFields,
    ClimateWindows,
    download_era5,
    era5,
    era5_online,
    open_climate,
    previous_week,
    previous_year,
    regridded,
)
from transduce.families.climate import latitude_weighted_mse, latitude_weights
from transduce.families.climate_fields import eastward
from transduce.random_fields import generator_for

REAL = Path(os.environ.get("TRANSDUCE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "climate"


def real(*names):
    """The paths of real files, or a test that is skipped."""
    if not all((REAL / name).exists() for name in names):
        pytest.skip(f"{REAL} has no {', '.join(names)}")
    return [REAL / name for name in names]


def dataset(times=6, lat=(50.0, 47.5, 45.0), lon=(-5.0, -2.5, 0.0, 2.5), start="2001-01-01T12", **names):
    """t in kelvin and msl in pascal, daily."""
    values = np.random.default_rng(0).standard_normal((2, times, len(lat), len(lon)))
    time = np.datetime64(start, "ns") + np.arange(times) * np.timedelta64(1, "D")
    t, p = 280 + 10 * values[0], 1e5 + 1e3 * values[1]
    made = xr.Dataset(
        {"t": (("time", "lat", "lon"), t, {"units": "K"}), "msl": (("time", "lat", "lon"), p, {"units": "Pa"})},
        {"time": time, "lat": np.array(lat), "lon": np.array(lon)},
    )
    return made.rename(names)


def daily(first, last, drop=()):
    """Fields of 2 x 2 points on all days from first to last but some; v is the number of the day."""
    time = np.setdiff1d(np.arange(first, last, dtype="datetime64[D]"), np.array(drop, dtype="datetime64[D]"))
    return on(time.astype("datetime64[s]") + np.timedelta64(12, "h"))


def on(time):
    numbers = np.broadcast_to(np.arange(len(time), dtype=np.float32)[:, None, None], (len(time), 2, 2)).copy()
    return ClimateFields(numbers, -numbers, time.astype("datetime64[s]"), np.array([1.0, 0.0]), np.array([0.0, 1.0]))


def same(one, other):
    """Equal in all but the last bits of single precision."""
    assert all(np.allclose(getattr(one, name), getattr(other, name), rtol=5e-7, atol=0) for name in ("v", "u"))
    return (one.time == other.time).all() and np.allclose(one.lat, other.lat) and np.allclose(one.lon, other.lon)


def days(fields, index):
    return fields.time[index].astype("datetime64[D]").astype(str).tolist()


def test_files_come_back_as_they_were_written(tmp_path):
    made = dataset()
    made.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    made.to_netcdf(tmp_path / "b.nc", engine="scipy", format="NETCDF3_64BIT")
    made.to_zarr(tmp_path / "c.zarr", zarr_format=3, consolidated=False)
    for name in ("a.nc", "b.nc", "c.zarr"):
        fields = open_climate(tmp_path / name)
        assert (fields.v == made.t.values.astype(np.float32)).all() and (fields.u == made.msl.values.astype(np.float32)).all()
        assert (fields.time == made.time.values).all() and fields.names == ("t", "msl") and fields.units == ("K", "Pa")
        assert repr(fields) == "ClimateFields(t -> msl, 6 steps of 1 D from 2001-01-01 to 2001-01-06, 3 x 4)" and len(fields) == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.isel(lat=slice(None, None, -1)),
        lambda d: d.isel(lon=[2, 0, 3, 1]),
        lambda d: d.isel(time=[3, 1, 0, 5, 4, 2]),
        lambda d: d.assign_coords(lon=d.lon % 360),
        lambda d: d.assign_coords(lon=d.lon % 360).sortby("lon"),
        lambda d: d.transpose("lon", "time", "lat"),
        lambda d: d.expand_dims(level=[850], axis=1),
        lambda d: d.rename(time="valid_time", lat="latitude", lon="longitude").assign_coords(number=0),
        lambda d: d.assign(t=(d.t - 273.15).assign_attrs(units="degC"), msl=(d.msl / 100).assign_attrs(units="hPa")),
        lambda d: d.assign(t=(d.t - 273.15).assign_attrs(units="degrees Celsius"), msl=(d.msl / 100).assign_attrs(units="millibars")),
        lambda d: d.assign(d2m=d.t - 5, z=d.t),
    ],
    ids=[
        "south first",
        "mixed longitudes",
        "mixed times",
        "0-360",
        "0-360 sorted",
        "axes",
        "level",
        "names",
        "degC, hPa",
        "millibars",
        "more",
    ],
)
def test_every_form_gives_equal_fields(tmp_path, change):
    change(dataset()).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert same(open_climate(tmp_path / "a.nc"), open_climate(dataset()))


@pytest.mark.parametrize("name", ["t2m", "2m_temperature", "tas", "air", "T"])
def test_variables_go_by_their_usual_names(name):
    assert open_climate(dataset(t=name)).names == (name, "msl")
    assert open_climate(dataset(msl="surface_pressure")).names == ("t", "surface_pressure")


def test_one_file_for_each_variable_and_each_year(tmp_path):
    made = dataset(times=10)
    for name in ("t", "msl"):
        for part, steps in enumerate((slice(6, None), slice(6))):
            made[[name]].isel(time=steps).to_netcdf(tmp_path / f"{name}{part}.nc", engine="h5netcdf")
    assert same(open_climate(*sorted(tmp_path.glob("*.nc"))), open_climate(made))
    assert same(open_climate(made.isel(time=slice(5)), made.isel(time=slice(5, None))), open_climate(made))


def test_times_of_only_one_variable_are_left_out_with_a_warning():
    made = dataset()
    with pytest.warns(UserWarning, match="3 times that only one of t in a dataset and msl in a dataset has were left out; 3 remain"):
        fields = open_climate(made[["t"]].isel(time=slice(4)), made[["msl"]].isel(time=slice(1, None)).isel(time=[0, 1, 2, 3, 4]))
    assert same(fields, open_climate(made)[1:4])
    with pytest.raises(TransduceError, match="no time is in both"):
        open_climate(made[["t"]].isel(time=slice(3)), made[["msl"]].isel(time=slice(3, None)))


def test_longitudes_have_one_convention():
    """Neighbours in the array are neighbours on the globe, and the first is in [-180, 180)."""
    globe = np.arange(0, 360, 30.0)
    assert eastward(globe)[0].tolist() == eastward(globe - 180)[0].tolist() == np.arange(-180, 180, 30.0).tolist()
    pacific = np.arange(120, 251, 10.0)
    for lon in (pacific, (pacific + 180) % 360 - 180, pacific[::-1]):
        found, stood = eastward(lon)
        assert found.tolist() == pacific.tolist() and ((lon[stood] - found) % 360 == 0).all()
    assert eastward([0.0, 90.0, 180.0, 270.0, 360.0])[0].tolist() == [-180, -90, 0, 90]  # a seam that is given twice
    assert eastward([-170.0, 170.0])[0].tolist() == [170, 190]


def test_years_are_times():
    made = dataset().assign_coords(time=np.arange(1990, 1996)).rename(time="year")
    fields = open_climate(made)
    assert fields.step == (1, "Y") and fields.time.astype("datetime64[Y]").astype(str).tolist() == [str(y) for y in range(1990, 1996)]


def test_variables_of_other_kinds_are_named_and_keep_their_units():
    made = dataset(msl="z")
    made.z.attrs["units"] = "m**2 s**-2"
    fields = open_climate(made, u="z")
    assert fields.units == ("K", "m**2 s**-2") and (fields.u == made.z.values.astype(np.float32)).all()
    assert open_climate(dataset(), v="msl", u="t").units == ("Pa", "K")


def test_units_may_be_told():
    made = dataset()
    made["t"] = (made.t - 273.15).drop_attrs()
    assert same(open_climate(made, units={"t": "C"}), open_climate(dataset()))
    with pytest.raises(TransduceError, match=r"t in a dataset has units ''; expected K or degC. .*units=\{'t': 'K'\}"):
        open_climate(made)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.drop_vars("msl"), r"no variable sp or .* for u; there is t\. Name one of these, open_climate\(\.\.\., u=\.\.\.\)"),
        (lambda d: d.assign(t2m=d.t), r"t and t2m could each be v; expected one. Say which: open_climate\(\.\.\., v='t'\)"),
        (lambda d: d.assign(t=d.t.assign_attrs(units="Pa")), "has units 'Pa'; expected K or degC"),
        (lambda d: d.assign(msl=d.msl.assign_attrs(units="furlongs")), "has units 'furlongs'; expected Pa, hPa or mbar"),
        (lambda d: d.rename(lat="y"), "dimensions time, y, lon; expected also, with coordinates, lat or latitude"),
        (lambda d: d.drop_vars("time"), "expected also, with coordinates, time or valid_time or year"),
        (lambda d: d.assign_coords(time=np.arange(6)), "times of type int64; expected dates"),
        (lambda d: xr.concat([d, d], "level"), r"2 places along level; .*dataset\.isel\(level=0\)"),
        (lambda d: d.isel(time=[0, 1, 2, 2, 3, 3]), r"has 2001-01-03T12:00:00 more than once \(2 times are repeats\)"),
        (lambda d: d.isel(lat=[0, 1, 1]), "lat is out of order"),
        (lambda d: d.isel(lon=[0]), r"fields of shape \(6, 3, 1\)"),
        (lambda d: d.isel(time=[]), r"t in a dataset has shape \(0, 3, 4\), which is nothing"),
    ],
)
def test_what_cannot_be_settled_is_said(tmp_path, change, said):
    with pytest.raises(TransduceError, match=said):
        open_climate(change(dataset()))


def test_holes_are_said_to_be_somewhere():
    made = dataset()
    made.msl[4, 1, 2] = made.msl[5, 0, 0] = np.nan
    with pytest.raises(TransduceError, match=r"nan on 2001-01-05T12:00:00 at latitude 47.5, longitude 0 \(2 of 72 values are not finite\)"):
        open_climate(made)


def test_grids_that_differ_are_an_error():
    made = dataset()
    for other in (made.isel(lat=slice(2)), made.assign_coords(lon=made.lon + 0.5)):
        with pytest.raises(TransduceError, match="expected one grid"):
            open_climate(made[["t"]], other[["msl"]])


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(TransduceError, match="there is no file"):
        open_climate(tmp_path / "none.nc")
    with pytest.raises(TransduceError, match="no file was given"):
        open_climate()
    (tmp_path / "bad.nc").write_bytes(b"not NetCDF")
    with pytest.raises(TransduceError, match=r"bad.nc cannot be read .*; expected a NetCDF file or a Zarr store"):
        open_climate(tmp_path / "bad.nc")


def test_fields_that_do_not_fit():
    fields = daily("2001-01-01", "2001-01-05")
    for change, said in (
        ({"u": fields.u[1:]}, "expected \\(time, lat, lon\\) of both"),
        ({"time": fields.time[::-1]}, "time is out of order"),
        ({"lat": fields.lat[::-1]}, "lat is out of order"),
    ):
        with pytest.raises(TransduceError, match=said):
            ClimateFields(**{name: getattr(fields, name) for name in ("v", "u", "time", "lat", "lon")} | change)


def test_dates_and_hours_are_selected():
    fields = daily("2000-12-01", "2002-02-01")
    assert len(fields.select("2001-02")) == 28 and len(fields.select(slice("2001", "2001-06-10"))) == 161
    assert days(fields.select(slice(None, "2000-12-02")), slice(None)) == ["2000-12-01", "2000-12-02"]
    for dates in ("2005", slice("1990", "1991"), "no date"):
        with pytest.raises(TransduceError, match=r"no times in .*; expected some of 2000-12-01 to 2002-01-31"):
            fields.select(dates)
    hourly = on(np.datetime64("2001-01-01", "s") + np.arange(0, 96, 6) * np.timedelta64(1, "h"))
    noon = hourly.at_hour(12)
    assert hourly.step == (6, "h") and noon.step == (1, "D") and noon.v[:, 0, 0].tolist() == [2, 6, 10, 14]
    with pytest.raises(TransduceError, match="no times at 3 h; expected one of the hours 0, 6, 12, 18"):
        hourly.at_hour(3)


def test_gaps_are_counted_in_steps():
    fields = daily("2001-01-01", "2001-03-01", drop=["2001-01-04", "2001-01-05", "2001-02-10"])
    assert [(str(g.after)[:10], str(g.before)[:10], g.missing) for g in fields.gaps()] == [
        ("2001-01-03", "2001-01-06", 2),
        ("2001-02-09", "2001-02-11", 1),
    ]
    months = on(np.delete(np.arange("1999-01", "2005-01", dtype="datetime64[M]"), [13, 14]))
    assert months.step == (1, "M") and [g.missing for g in months.gaps()] == [2]  # months of any length follow each other
    assert on(np.arange("1999", "2005", dtype="datetime64[Y]")).gaps() == []
    seasons = on(np.arange("1999-03", "2005-03", 3, dtype="datetime64[M]"))
    assert seasons.step == (3, "M") and seasons.gaps() == []
    assert on(np.array(["2001-01-01"], dtype="datetime64[D]")).gaps() == []


def test_answers_go_back_with_coordinates_and_units(tmp_path):
    fields = open_climate(dataset())
    answers = fields.to_xarray(torch.from_numpy(fields.u[[1, 4]]).requires_grad_(), at=[1, 4])
    assert answers.name == "msl" and answers.attrs["units"] == "Pa" and (answers.time.values == fields.time[[1, 4]]).all()
    xr.Dataset({"msl": fields.to_xarray(fields.u), "t": fields.to_xarray(fields.v, of="v")}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert same(open_climate(tmp_path / "a.nc"), fields)
    with pytest.raises(TransduceError, match=r"expected \(6, 3, 4\). Say with `at`"):
        fields.to_xarray(fields.u[:2])


def test_the_week_before_ends_a_lag_before_the_date():
    fields = daily("2007-01-01", "2010-01-01")
    assert days(fields, previous_week(fields, "2008-03-10")) == [
        str(d) for d in np.arange("2008-02-18", "2008-03-04", dtype="datetime64[D]")
    ]
    assert days(fields, previous_week(fields, "2010-01-03T18", n=2, lag=4)) == ["2009-12-29", "2009-12-30"]  # a date that is not in it


def test_the_year_before_is_centred_on_the_same_date():
    fields = daily("2006-01-01", "2010-01-01")
    for date, centre in (
        ("2007-06-15", "2006-06-15"),
        ("2008-02-29", "2007-02-28"),
        ("2008-03-01", "2007-03-01"),
        ("2009-03-01", "2008-03-01"),
    ):
        expected = [str(np.datetime64(centre) + k) for k in range(-7, 8)]
        assert days(fields, previous_year(fields, date)) == expected
    assert "2008-02-29" in days(fields, previous_year(fields, "2009-02-28"))


@pytest.mark.parametrize("seed", range(20))
def test_windows_hold_n_steps_none_nearer_than_the_lag(seed):
    """Whatever is missing: n distinct steps in order, all of them before the date by the lag or more, and the nearest that there are."""
    rng = np.random.default_rng(seed)
    every = np.arange("2000-01-01", "2004-01-01", dtype="datetime64[D]")
    fields = daily("2000-01-01", "2004-01-01", drop=rng.choice(every, 200, replace=False))
    date, n, lag = every[rng.integers(500, len(every))], int(rng.integers(1, 20)), int(rng.integers(1, 10))
    present = fields.time.astype("datetime64[D]")
    week, year = previous_week(fields, date, n, lag), previous_year(fields, date, n)
    assert present[week].tolist() == present[present <= date - lag][-n:].tolist()
    assert len(set(year)) == n and (np.diff(year) > 0).all() and (present[year] < date).all()
    distance = np.abs(present - (date - 365)).astype(int)
    assert distance[year].max() <= np.sort(distance)[n - 1] + 1  # 365 or 366 days


def test_windows_go_by_the_step_of_the_data():
    months = on(np.arange("1990-01", "2000-01", dtype="datetime64[M]"))
    assert months.time[previous_year(months, "1995-02-14", n=5)].astype("datetime64[M]").astype(str).tolist() == [
        "1993-12", "1994-01", "1994-02", "1994-03", "1994-04",
    ]  # fmt: skip
    assert months.time[previous_week(months, "1995-02", n=2, lag=1)].astype("datetime64[M]").astype(str).tolist() == ["1994-12", "1995-01"]
    assert months.said(months.time[previous_year(months, "1995-02", n=30)[-1]]) == "1995-01"  # a long one stops before the date
    years = on(np.arange("1990", "2010", dtype="datetime64[Y]"))
    assert years.time[previous_year(years, "2005", n=3)].astype("datetime64[Y]").astype(str).tolist() == ["2002", "2003", "2004"]
    assert years.time[previous_week(years, "2005", n=2, lag=2)].astype("datetime64[Y]").astype(str).tolist() == ["2002", "2003"]


def test_windows_that_are_not_there():
    fields = daily("2001-01-01", "2003-01-01")
    for ask, said in (
        (lambda: previous_year(fields, "2001-06-01"), "0 steps from 2000-05-02 to 2000-07-01 are there to tell 2001-06-01 from"),
        (lambda: previous_week(fields, "2001-01-10"), "3 steps from 2000-12-04 to 2001-01-03 .*; expected n = 15"),
        (lambda: previous_week(fields, "2004-01-01"), "The fields are from 2001-01-01 to 2002-12-31: choose another date"),
        (lambda: previous_week(fields, "2002-01-01", n=0), "expected n = 0, one or more"),
        (lambda: previous_week(fields, "2002-01-01", lag=0), "lag=0; expected 1 or more"),
        (lambda: previous_year(fields, "yesterday"), "'yesterday' is not a date"),
    ):
        with pytest.raises(TransduceError, match=said):
            ask()


def test_tasks_are_distinct_steps_of_one_window():
    fields = daily("2001-01-01", "2001-04-01", drop=["2001-02-10"])
    family = ClimateWindows(fields)
    assert isinstance(family, OperatorFamily)
    spans, last = set(), 40
    for seed in range(200):
        task = family.sample_task(15, 5, generator_for("train", seed))
        assert task.examples.v.shape == (15, 2, 2) and task.queries.u.shape == (5, 2, 2) and task.examples.v.dtype == torch.float32
        assert torch.equal(task.examples.u, -task.examples.v)
        steps = sorted(torch.cat([task.examples.v, task.queries.v])[:, 0, 0].int().tolist())
        assert steps == list(range(steps[0], steps[0] + 20)) and (steps[-1] < last) == (steps[0] < last)  # none across the gap
        spans.add(steps[0])
    assert spans == {*range(21), *range(40, 70)}  # all of those that there are
    assert len(family.sample_task(3, 1, generator_for("train", 0)).examples) == 3


def test_queries_are_anywhere_in_the_window():
    family = ClimateWindows(daily("2001-01-01", "2001-01-21"))
    places = torch.cat([family.sample_task(15, 5, generator_for("train", seed)).queries.v[:, 0, 0] for seed in range(200)])
    assert sorted(places.unique().int().tolist()) == list(range(20)) and 9 < places.mean() < 10


def test_windows_that_cannot_be_drawn():
    fields = daily("2001-01-01", "2001-02-01", drop=["2001-01-15"])
    for window in (1, 20, 40):
        with pytest.raises(TransduceError, match=f"window={window}, of 30 steps with 1 gaps"):
            ClimateWindows(fields, window)
    with pytest.raises(TransduceError, match="6 examples and 5 queries were asked of a window of 10 steps"):
        ClimateWindows(fields, 10).sample_task(6, 5, generator_for("train", 0))


def bilinear(lat, lon):
    """A function that bilinear interpolation leaves exact, as fields at one time."""
    values = 280 + 0.5 * lat[:, None] - 0.25 * lon + 0.01 * lat[:, None] * lon
    time = np.array(["2001-01-01"], dtype="datetime64[s]")
    return ClimateFields(values[None].astype(np.float32), -values[None].astype(np.float32), time, lat, lon)


def test_regridding_is_exact_for_bilinear_functions():
    lat, lon = np.array([60.0, 58.0, 51.0, 50.0]), np.array([-20.0, -15.0, -14.0, 3.0])
    fine = regridded(bilinear(lat, lon), np.linspace(50, 60, 23), np.linspace(-20, 3, 37))
    assert same(fine, bilinear(np.linspace(60, 50, 23), np.linspace(-20, 3, 37)))
    assert same(regridded(fine, fine.lat[::-1], fine.lon + 360), fine)  # on its own grid, given in another form


def test_regridding_goes_round_the_globe():
    lat, lon = np.array([90.0, 0.0, -90.0]), np.arange(-180, 180, 10.0)
    time = np.array(["2001-01-01"], dtype="datetime64[s]")
    values = np.broadcast_to(np.abs(lon), (1, 3, 36)).astype(np.float32)  # linear on both sides of the date line
    coarse = ClimateFields(values, values, time, lat, lon)
    fine = regridded(coarse, [45.0, -45.0], np.arange(0, 360, 2.5))
    assert fine.v.shape == (1, 2, 144) and np.allclose(fine.v, np.abs(fine.lon), atol=1e-4) and fine.lon[0] == -180
    with pytest.raises(TransduceError, match=r"latitude 91 \(1 of 2\) is outside of the fields, which reach from -90 to 90"):
        regridded(coarse, [91.0, 0.0], [0.0, 1.0])


def test_regridding_does_not_extrapolate():
    fields = bilinear(np.array([60.0, 50.0]), np.array([-20.0, 0.0]))
    for lat, lon, said in (([61.0, 55.0], [-5.0, -1.0], "latitude 61"), ([55.0, 52.0], [-5.0, 5.0], "longitude 5 .*from -20 to 0")):
        with pytest.raises(TransduceError, match=said):
            regridded(fields, lat, lon)


def test_latitudes_count_by_area():
    lat = np.linspace(90, -90, 181)
    weights = latitude_weights(lat)
    assert weights.mean() == pytest.approx(1) and weights[0] == pytest.approx(0, abs=1e-12) and weights.argmax() == 90
    errors = np.zeros((2, 181, 8))
    errors[:, np.abs(lat) <= 30] = 1
    assert latitude_weighted_mse(errors, 0 * errors, lat) == pytest.approx(0.5, abs=0.01)  # half of the globe
    u = torch.from_numpy(errors).requires_grad_()
    latitude_weighted_mse(u, torch.zeros_like(u), lat).backward()
    assert torch.allclose(u.grad, 2 * u * torch.from_numpy(weights)[:, None] / u.numel())
    there = xr.DataArray(errors, dims=["time", "lat", "lon"])
    assert latitude_weighted_mse(there, 0 * errors, lat) == latitude_weighted_mse(errors, 0 * errors, lat)
    with pytest.raises(TransduceError, match="there are 3 latitudes; expected"):
        latitude_weighted_mse(errors, errors, [1, 2, 3])


def arco():
    """Two days as ARCO-ERA5 has them: hourly, from the north, longitudes from 0, and much else."""
    made = dataset(times=48, lat=(90.0, 0.0, -90.0), lon=(0.0, 90.0, 180.0, 270.0), t="2m_temperature", msl="surface_pressure")
    made = made.assign_coords(time=np.datetime64("2016-01-01", "ns") + np.arange(48) * np.timedelta64(1, "h"))
    made = made.assign(temperature=made["2m_temperature"].expand_dims(level=2), mean_sea_level_pressure=made.surface_pressure)
    return made.rename(lat="latitude", lon="longitude")


def test_the_public_copy_is_read_at_noon(monkeypatch):
    asked = {}
    monkeypatch.setattr(xr, "open_zarr", lambda store, **options: asked.update(options, store=store) or arco())
    fields = open_climate(era5_online("2016-01-01", "2016-01-02"))
    assert asked == {"store": era5.ARCO, "chunks": None, "storage_options": {"token": "anon"}}
    assert [str(t) for t in fields.time] == ["2016-01-01T12:00:00", "2016-01-02T12:00:00"] and fields.lon[0] == -180
    assert len(open_climate(era5_online("2016-01-02", "2016-01-02", hour=6))) == 1


def test_a_year_is_fetched_once(tmp_path, monkeypatch):
    asked = []

    class Client:
        def retrieve(self, name, request, target):
            asked.append((name, request))
            times = dataset(times=3, start="2016-01-01T12", t="t2m", msl="sp").rename(time="valid_time", lat="latitude", lon="longitude")
            times.assign_coords(number=0, expver=("valid_time", ["0001"] * 3)).to_netcdf(target, engine="h5netcdf")

    monkeypatch.setitem(sys.modules, "cdsapi", types.SimpleNamespace(Client=Client))
    for _ in range(2):
        path = download_era5(2016, tmp_path / "era5_2016.nc")
    ((name, request),) = asked
    assert name == "reanalysis-era5-single-levels" and request["time"] == ["12:00"] and request["variable"] == era5.VARIABLES
    assert request["year"] == ["2016"] and len(request["month"]) == 12 and len(request["day"]) == 31
    assert len(open_climate(path)) == 3 and [p.name for p in tmp_path.iterdir()] == ["era5_2016.nc"]


def test_downloads_that_fail_say_what_they_need(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cdsapi", None)
    with pytest.raises(TransduceError, match="pip install cdsapi"):
        download_era5(2016, tmp_path / "a.nc")

    def fail(*_, **__):
        raise ImportError("Please install gcsfs to access Google Storage")

    monkeypatch.setattr(xr, "open_zarr", fail)
    with pytest.raises(TransduceError, match=r"Please install gcsfs .*pip install gcsfs"):
        era5_online("2016-01-01", "2016-01-02")


REAL_FILES = {
    "era5_surface_2025_11_11.nc": "t2m -> sp, 24 steps of 1 h from 2025-11-11T00 to 2025-11-11T23, 181 x 360",
    "ncep_r1_npac_monthly_t_slp_1948-2025.nc": "t -> slp, 930 steps of 1 M from 1948-01 to 2025-06, 21 x 53",
    "ncep_r1_djf_t_slp_1949-2010.nc": "t -> slp, 62 steps of 1 Y from 1949 to 2010, 73 x 144",
    "ncep_r1_monthly_t_slp.nc": "t -> slp_eof20, 783 steps of 1 M from 1948-01 to 2013-03, 73 x 144",
}


@pytest.mark.parametrize(("name", "said"), REAL_FILES.items())
def test_real_files_are_read(name, said):
    fields = open_climate(*real(name))
    assert repr(fields) == f"ClimateFields({said})" and fields.gaps() == []
    assert (
        fields.units == ("K", "Pa") and fields.v.min() > 180 and fields.v.max() < 330 and 40_000 < fields.u.min() < fields.u.max() < 110_000
    )


def test_era5_at_noon_keeps_its_places():
    (path,) = real("era5_surface_2025_11_11.nc")
    fields = open_climate(path).at_hour(12)
    with xr.open_dataset(path) as stored:
        for lat, lon in ((90, 0), (-33, 151), (40, 254), (0, 180)):
            y, x = int(np.flatnonzero(fields.lat == lat)[0]), int(np.flatnonzero((fields.lon - lon) % 360 == 0)[0])
            assert fields.v[0, y, x] == stored.t2m.sel(latitude=lat, longitude=lon)[12] and len(fields) == 1
    square = regridded(fields, np.linspace(90, -90, 72), np.arange(-180, 180, 5.0))
    assert square.v.shape == (1, 72, 72) and square.v[0, 0].std() < 1e-3  # at the pole all longitudes are one place


def test_the_pacific_is_not_cut_at_the_date_line():
    fields = open_climate(*real("ncep_r1_npac_monthly_t_slp_1948-2025.nc"))
    assert fields.lon[0] == 120 and fields.lon[-1] == 250 and (np.diff(fields.lon) == 2.5).all()


def test_european_days_give_the_known_errors_of_their_context():
    """The mean of the 15 context days: 78.4 hPa^2 for the week before; 84.3 for 365 days before, 83.9 for the same date a year before."""
    fields = open_climate(*real("eraint_europe_daily_t850.nc", "eraint_europe_daily_mslp.nc"))
    assert repr(fields) == "ClimateFields(t -> msl, 4018 steps of 1 D from 2000-01-01 to 2010-12-31, 11 x 13)" and fields.gaps() == []
    test = fields.select(slice("2007", "2010"))
    for window, error in ((previous_week, 78.39), (previous_year, 83.89)):
        mean = np.stack([fields.u[window(fields, date)].mean(0) for date in test.time])
        assert latitude_weighted_mse(mean / 100, test.u / 100, fields.lat) == pytest.approx(error, abs=0.01)


def test_european_days_have_another_variable():
    fields = open_climate(*real("eraint_europe_daily_t850.nc", "eraint_europe_daily_z500.nc"), u="z")
    assert fields.names == ("t", "z") and fields.units == ("K", "m**2 s**-2")
