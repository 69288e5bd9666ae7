"""Climate fields from files: whatever form these have, one comes out, and answers go back;
downloads, real files, and bad ones."""

import sys
import types

import numpy as np
import pytest
import torch
import xarray as xr
from climate_samples import daily, days, on, real, same

from transduce import TransduceError
from transduce.families import (
    ClimateFields,
    download_era5,
    era5,
    era5_online,
    open_climate,
    regridded,
)
from transduce.families.climate_grids import eastward


def dataset(
    times=6, lat=(50.0, 47.5, 45.0), lon=(-5.0, -2.5, 0.0, 2.5), start="2001-01-01T12", **names
):
    """t in kelvin and msl in pascal, daily."""
    values = np.random.default_rng(0).standard_normal((2, times, len(lat), len(lon)))
    time = np.datetime64(start, "ns") + np.arange(times) * np.timedelta64(1, "D")
    t, p = 280 + 10 * values[0], 1e5 + 1e3 * values[1]
    made = xr.Dataset(
        {
            "t": (("time", "lat", "lon"), t, {"units": "K"}),
            "msl": (("time", "lat", "lon"), p, {"units": "Pa"}),
        },
        {"time": time, "lat": np.array(lat), "lon": np.array(lon)},
    )
    return made.rename(names)


def test_files_come_back_as_they_were_written(tmp_path):
    made = dataset()
    made.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    made.to_netcdf(tmp_path / "b.nc", engine="scipy", format="NETCDF3_64BIT")
    made.to_zarr(tmp_path / "c.zarr", zarr_format=3, consolidated=False)
    for name in ("a.nc", "b.nc", "c.zarr"):
        fields = open_climate(tmp_path / name)
        assert (fields.v == made.t.values.astype(np.float32)).all() and (
            fields.u == made.msl.values.astype(np.float32)
        ).all()
        assert (
            (fields.time == made.time.values).all()
            and fields.names == ("t", "msl")
            and fields.units == ("K", "Pa")
        )
        assert (
            repr(fields)
            == "ClimateFields(t -> msl, 6 steps of 1 D from 2001-01-01 to 2001-01-06, 3 x 4)"
            and len(fields) == 6
        )


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
        lambda d: d.rename(time="valid_time", lat="latitude", lon="longitude").assign_coords(
            number=0
        ),
        lambda d: d.assign(
            t=(d.t - 273.15).assign_attrs(units="degC"), msl=(d.msl / 100).assign_attrs(units="hPa")
        ),
        lambda d: d.assign(
            t=(d.t - 273.15).assign_attrs(units="degrees Celsius"),
            msl=(d.msl / 100).assign_attrs(units="millibars"),
        ),
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
            made[[name]].isel(time=steps).to_netcdf(
                tmp_path / f"{name}{part}.nc", engine="h5netcdf"
            )
    assert same(open_climate(*sorted(tmp_path.glob("*.nc"))), open_climate(made))
    assert same(
        open_climate(made.isel(time=slice(5)), made.isel(time=slice(5, None))), open_climate(made)
    )


def test_lists_of_files_are_as_files_one_by_one(tmp_path):
    made = dataset(times=10)
    for part, steps in enumerate((slice(6, None), slice(6))):
        made.isel(time=steps).to_netcdf(tmp_path / f"{part}.nc", engine="h5netcdf")
    files = sorted(tmp_path.glob("*.nc"))
    assert same(open_climate(files), open_climate(made)) and same(
        open_climate(tuple(map(str, files))), open_climate(made)
    )
    assert same(open_climate([made[["t"]]], [made[["msl"]]]), open_climate(made))


def test_times_of_only_one_variable_are_left_out_with_a_warning():
    made = dataset()
    with pytest.warns(
        UserWarning,
        match=(
            "3 times that only one of t in a dataset and msl in a dataset has were "
            "left out; 3 remain"
        ),
    ):
        fields = open_climate(
            made[["t"]].isel(time=slice(4)),
            made[["msl"]].isel(time=slice(1, None)).isel(time=[0, 1, 2, 3, 4]),
        )
    assert same(fields, open_climate(made)[1:4])
    with pytest.raises(TransduceError, match="no time is in both"):
        open_climate(made[["t"]].isel(time=slice(3)), made[["msl"]].isel(time=slice(3, None)))


def test_longitudes_have_one_convention():
    """Neighbours in the array are neighbours on the globe, and the first is in [-180, 180)."""
    globe = np.arange(0, 360, 30.0)
    assert (
        eastward(globe)[0].tolist()
        == eastward(globe - 180)[0].tolist()
        == np.arange(-180, 180, 30.0).tolist()
    )
    pacific = np.arange(120, 251, 10.0)
    for lon in (pacific, (pacific + 180) % 360 - 180, pacific[::-1]):
        found, stood = eastward(lon)
        assert found.tolist() == pacific.tolist() and ((lon[stood] - found) % 360 == 0).all()
    # A seam that is given twice.
    assert eastward([0.0, 90.0, 180.0, 270.0, 360.0])[0].tolist() == [
        -180,
        -90,
        0,
        90,
    ]
    assert eastward([-170.0, 170.0])[0].tolist() == [170, 190]


def test_years_are_times():
    made = dataset().assign_coords(time=np.arange(1990, 1996)).rename(time="year")
    fields = open_climate(made)
    assert fields.step == (1, "Y") and fields.time.astype("datetime64[Y]").astype(str).tolist() == [
        str(y) for y in range(1990, 1996)
    ]


def test_variables_of_other_kinds_are_named_and_keep_their_units():
    made = dataset(msl="z")
    made.z.attrs["units"] = "m**2 s**-2"
    fields = open_climate(made, u="z")
    assert (
        fields.units == ("K", "m**2 s**-2") and (fields.u == made.z.values.astype(np.float32)).all()
    )
    assert open_climate(dataset(), v="msl", u="t").units == ("Pa", "K")


def test_units_may_be_told():
    made = dataset()
    made["t"] = (made.t - 273.15).drop_attrs()
    assert same(open_climate(made, units={"t": "C"}), open_climate(dataset()))
    with pytest.raises(
        TransduceError,
        match=r"t in a dataset has units ''; expected K or degC. .*units=\{'t': 'K'\}",
    ):
        open_climate(made)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda d: d.drop_vars("msl"),
            r"no variable sp or .* for u; there is t\. Give the file that has it",
        ),
        (
            lambda d: d.assign(t2m=d.t),
            r"t and t2m could each be v; expected one. Say which: v='t' \(--v t\)",
        ),
        (lambda d: d.assign(t=d.t.assign_attrs(units="Pa")), "has units 'Pa'; expected K or degC"),
        (
            lambda d: d.assign(msl=d.msl.assign_attrs(units="furlongs")),
            "has units 'furlongs'; expected Pa, hPa or mbar",
        ),
        (
            lambda d: d.rename(lat="y"),
            "dimensions time, y, lon; expected also, with coordinates, lat or latitude",
        ),
        (
            lambda d: d.drop_vars("time"),
            "expected also, with coordinates, time or valid_time or year",
        ),
        (lambda d: d.assign_coords(time=np.arange(6)), "times of type int64; expected dates"),
        (lambda d: xr.concat([d, d], "level"), r"2 places along level; .*dataset\.isel\(level=0\)"),
        (
            lambda d: d.isel(time=[0, 1, 2, 2, 3, 3]),
            r"has 2001-01-03T12:00:00 more than once \(2 times are repeats\)",
        ),
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
    with pytest.raises(
        TransduceError,
        match=(
            r"nan on 2001-01-05T12:00:00 at latitude 47.5, longitude 0 \(2 of 72 "
            r"values are not finite\)"
        ),
    ):
        open_climate(made)


def test_grids_that_differ_are_an_error():
    made = dataset()
    for other in (made.isel(lat=slice(2)), made.assign_coords(lon=made.lon + 0.5)):
        with pytest.raises(TransduceError, match="expected one grid"):
            open_climate(made[["t"]], other[["msl"]])


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(TransduceError, match="there is no file"):
        open_climate(tmp_path / "none.nc")
    for nothing in ([], [[]]):
        with pytest.raises(TransduceError, match="no file was given"):
            open_climate(*nothing)
    for source, kind in (
        (7, "int"),
        (dataset().t, "DataArray"),
        (tmp_path.glob("*.nc"), "generator"),
    ):
        with pytest.raises(
            TransduceError,
            match=f"of type {kind}; expected the path of a NetCDF file .* or a list of these",
        ):
            open_climate(source)
    (tmp_path / "bad.nc").write_bytes(b"not NetCDF")
    with pytest.raises(
        TransduceError, match=r"bad.nc cannot be read .*; expected a NetCDF file or a Zarr store"
    ):
        open_climate(tmp_path / "bad.nc")


def test_fields_that_do_not_fit():
    fields = daily("2001-01-01", "2001-01-05")
    for change, said in (
        ({"u": fields.u[1:]}, "expected \\(time, lat, lon\\) of both"),
        ({"time": fields.time[::-1]}, "time is out of order"),
        ({"lat": fields.lat[::-1]}, "lat is out of order"),
    ):
        with pytest.raises(TransduceError, match=said):
            ClimateFields(
                **{name: getattr(fields, name) for name in ("v", "u", "time", "lat", "lon")}
                | change
            )


def test_dates_and_hours_are_selected():
    fields = daily("2000-12-01", "2002-02-01")
    assert (
        len(fields.select("2001-02")) == 28
        and len(fields.select(slice("2001", "2001-06-10"))) == 161
    )
    assert days(fields.select(slice(None, "2000-12-02")), slice(None)) == [
        "2000-12-01",
        "2000-12-02",
    ]
    for dates in ("2005", slice("1990", "1991"), "no date"):
        with pytest.raises(
            TransduceError, match=r"no times in .*; expected some of 2000-12-01 to 2002-01-31"
        ):
            fields.select(dates)
    hourly = on(np.datetime64("2001-01-01", "s") + np.arange(0, 96, 6) * np.timedelta64(1, "h"))
    noon = hourly.at_hour(12)
    assert (
        hourly.step == (6, "h")
        and noon.step == (1, "D")
        and noon.v[:, 0, 0].tolist() == [2, 6, 10, 14]
    )
    with pytest.raises(
        TransduceError, match="no times at 3 h; expected one of the hours 0, 6, 12, 18"
    ):
        hourly.at_hour(3)


def test_gaps_are_counted_in_steps():
    fields = daily("2001-01-01", "2001-03-01", drop=["2001-01-04", "2001-01-05", "2001-02-10"])
    assert [(str(g.after)[:10], str(g.before)[:10], g.missing) for g in fields.gaps()] == [
        ("2001-01-03", "2001-01-06", 2),
        ("2001-02-09", "2001-02-11", 1),
    ]
    months = on(np.delete(np.arange("1999-01", "2005-01", dtype="datetime64[M]"), [13, 14]))
    # Months of any length follow each other.
    assert months.step == (1, "M") and [g.missing for g in months.gaps()] == [2]
    assert on(np.arange("1999", "2005", dtype="datetime64[Y]")).gaps() == []
    seasons = on(np.arange("1999-03", "2005-03", 3, dtype="datetime64[M]"))
    assert seasons.step == (3, "M") and seasons.gaps() == []
    assert on(np.array(["2001-01-01"], dtype="datetime64[D]")).gaps() == []


def test_answers_go_back_with_coordinates_and_units(tmp_path):
    fields = open_climate(dataset())
    answers = fields.to_xarray(torch.from_numpy(fields.u[[1, 4]]).requires_grad_(), at=[1, 4])
    assert (
        answers.name == "msl"
        and answers.attrs["units"] == "Pa"
        and (answers.time.values == fields.time[[1, 4]]).all()
    )
    xr.Dataset(
        {"msl": fields.to_xarray(fields.u), "t": fields.to_xarray(fields.v, of="v")}
    ).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert same(open_climate(tmp_path / "a.nc"), fields)
    with pytest.raises(TransduceError, match=r"expected \(6, 3, 4\). Say with `at`"):
        fields.to_xarray(fields.u[:2])


def arco():
    """Two days as ARCO-ERA5 has them: hourly, from the north, longitudes from 0, and much else."""
    made = dataset(
        times=48,
        lat=(90.0, 0.0, -90.0),
        lon=(0.0, 90.0, 180.0, 270.0),
        t="2m_temperature",
        msl="surface_pressure",
    )
    made = made.assign_coords(
        time=np.datetime64("2016-01-01", "ns") + np.arange(48) * np.timedelta64(1, "h")
    )
    made = made.assign(
        temperature=made["2m_temperature"].expand_dims(level=2),
        mean_sea_level_pressure=made.surface_pressure,
    )
    return made.rename(lat="latitude", lon="longitude")


def test_the_public_copy_is_read_at_noon(monkeypatch):
    asked = {}
    monkeypatch.setattr(
        xr, "open_zarr", lambda store, **options: asked.update(options, store=store) or arco()
    )
    fields = open_climate(era5_online("2016-01-01", "2016-01-02"))
    assert asked == {"store": era5.ARCO, "chunks": None, "storage_options": {"token": "anon"}}
    assert [str(t) for t in fields.time] == [
        "2016-01-01T12:00:00",
        "2016-01-02T12:00:00",
    ] and fields.lon[0] == -180
    assert len(open_climate(era5_online("2016-01-02", "2016-01-02", hour=6))) == 1


def test_a_year_is_fetched_once(tmp_path, monkeypatch):
    asked = []

    class Client:
        def retrieve(self, name, request, target):
            asked.append((name, request))
            times = dataset(times=3, start="2016-01-01T12", t="t2m", msl="sp").rename(
                time="valid_time", lat="latitude", lon="longitude"
            )
            times.assign_coords(number=0, expver=("valid_time", ["0001"] * 3)).to_netcdf(
                target, engine="h5netcdf"
            )

    monkeypatch.setitem(sys.modules, "cdsapi", types.SimpleNamespace(Client=Client))
    for _ in range(2):
        path = download_era5(2016, tmp_path / "era5_2016.nc")
    ((name, request),) = asked
    assert (
        name == "reanalysis-era5-single-levels"
        and request["time"] == ["12:00"]
        and request["variable"] == era5.VARIABLES
    )
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
    "era5_surface_2025_11_11.nc": (
        "t2m -> sp, 24 steps of 1 h from 2025-11-11T00 to 2025-11-11T23, 181 x 360"
    ),
    "ncep_r1_npac_monthly_t_slp_1948-2025.nc": (
        "t -> slp, 930 steps of 1 M from 1948-01 to 2025-06, 21 x 53"
    ),
    "ncep_r1_djf_t_slp_1949-2010.nc": "t -> slp, 62 steps of 1 Y from 1949 to 2010, 73 x 144",
    "ncep_r1_monthly_t_slp.nc": (
        "t -> slp_eof20, 783 steps of 1 M from 1948-01 to 2013-03, 73 x 144"
    ),
}


@pytest.mark.parametrize(("name", "said"), REAL_FILES.items())
def test_real_files_are_read(name, said):
    fields = open_climate(*real(name))
    assert repr(fields) == f"ClimateFields({said})" and fields.gaps() == []
    assert (
        fields.units == ("K", "Pa")
        and fields.v.min() > 180
        and fields.v.max() < 330
        and 40_000 < fields.u.min() < fields.u.max() < 110_000
    )


def test_era5_at_noon_keeps_its_places():
    (path,) = real("era5_surface_2025_11_11.nc")
    fields = open_climate(path).at_hour(12)
    with xr.open_dataset(path) as stored:
        for lat, lon in ((90, 0), (-33, 151), (40, 254), (0, 180)):
            y, x = (
                int(np.flatnonzero(fields.lat == lat)[0]),
                int(np.flatnonzero((fields.lon - lon) % 360 == 0)[0]),
            )
            assert (
                fields.v[0, y, x] == stored.t2m.sel(latitude=lat, longitude=lon)[12]
                and len(fields) == 1
            )
    square = regridded(fields, np.linspace(90, -90, 72), np.arange(-180, 180, 5.0))
    # At the pole all longitudes are one place.
    assert square.v.shape == (1, 72, 72) and square.v[0, 0].std() < 1e-3


def test_the_pacific_is_not_cut_at_the_date_line():
    fields = open_climate(*real("ncep_r1_npac_monthly_t_slp_1948-2025.nc"))
    assert fields.lon[0] == 120 and fields.lon[-1] == 250 and (np.diff(fields.lon) == 2.5).all()


def test_european_days_have_another_variable():
    fields = open_climate(
        *real("eraint_europe_daily_t850.nc", "eraint_europe_daily_z500.nc"), u="z"
    )
    assert fields.names == ("t", "z") and fields.units == ("K", "m**2 s**-2")
