"""Days of weather through a model of their region: `transduce regress` on files as they are
downloaded, and the same from Python."""

import numpy as np
import pytest
import torch
import xarray as xr
from climate_samples import real
from conftest import fails, run

from paper.models.memory import remember
from transduce import ExampleSet, TransduceError, models
from transduce.domains.climate import regress_climate
from transduce.families import open_climate, open_inputs, regridded
from transduce.spaces import Patches, Region

LAT, LON = (60.0, 50.0, 40.0), (-10.0, 0.0, 10.0, 20.0)


def days(times, seed, lat=LAT, lon=LON, start="2001-01-01T12"):
    """Temperatures, and pressures that follow from them."""
    t = 280 + 8 * np.random.default_rng(seed).standard_normal((times, len(lat), len(lon)))
    p = 101_000 + 60 * np.roll(t - 280, 1, 2) + 3 * (t - 280) ** 2
    time = np.datetime64(start, "ns") + np.arange(times) * np.timedelta64(1, "D")
    axes = ("time", "lat", "lon")
    fields = {
        "t": (axes, t.astype(np.float32), {"units": "K"}),
        "msl": (axes, p.astype(np.float32), {"units": "Pa"}),
    }
    return xr.Dataset(fields, {"time": time, "lat": np.array(lat), "lon": np.array(lon)})


DAYS, TODAY = days(8, 1), days(2, 2, start="2001-02-01T12")[["t"]]


def made(examples, lat=LAT, lon=LON):
    """An untrained model that has seen these and remembers some."""
    torch.manual_seed(0)
    T = models.region(Region(lat, lon), Region(lat, lon)).eval()
    v, u = (torch.from_numpy(f) for f in (examples.t.values, examples.msl.values))
    T.V.measure(v)
    T.U.measure(u)
    return remember(T, ExampleSet(v[:20], u[:20]))


@pytest.fixture
def T():
    return made(days(100, 0))


@pytest.fixture
def asked(T, tmp_path):
    """The arguments of `regress`, as a function of what its files hold."""
    T.save_pretrained(tmp_path / "tiny.safetensors")

    def arguments(examples=DAYS, queries=TODAY):
        for name, stored in (("days.nc", examples), ("today.nc", queries)):
            stored.to_netcdf(tmp_path / name, engine="h5netcdf")
        files = (
            "--examples",
            tmp_path / "days.nc",
            "--queries",
            tmp_path / "today.nc",
            "--out",
            tmp_path / "pressure.nc",
        )
        return ("regress", "--model", tmp_path / "tiny.safetensors", *files)

    return arguments


def answered(path):
    with xr.open_dataset(
        path, **({"engine": "zarr", "consolidated": False} if path.is_dir() else {})
    ) as stored:
        return stored.load()


def expected(T, examples=DAYS, queries=TODAY):
    return T.regress(ExampleSet(examples.t.values, examples.msl.values))(queries.t.values)


@pytest.mark.parametrize("name", ["pressure.nc", "pressure.h5", "pressure.zarr"])
def test_the_command_answers_with_times_places_and_units(asked, T, tmp_path, name):
    result = run(*asked(), "--out", tmp_path / name)
    assert result.exit_code == 0, result.output
    assert "n = 8 examples, 2 queries" in result.stdout and result.stdout.endswith(
        f"written to {tmp_path / name}\n"
    )
    stored = answered(tmp_path / name)
    msl = stored.msl
    assert (
        msl.dims == ("time", "lat", "lon")
        and msl.attrs["units"] == "Pa"
        and msl.lat.attrs["units"] == "degrees_north"
    )
    assert (
        (msl.time.values == TODAY.time.values).all()
        and tuple(msl.lat.values) == LAT
        and tuple(msl.lon.values) == LON
    )
    assert stored.attrs["model"] == "tiny" and stored.attrs["examples"] == 8
    np.testing.assert_allclose(msl, expected(T), rtol=1e-6)


FORMS = {
    "0-360": lambda d: d.assign_coords(lon=d.lon % 360),
    "0-360 sorted": lambda d: d.assign_coords(lon=d.lon % 360).sortby("lon"),
    "south first": lambda d: d.isel(lat=slice(None, None, -1)),
    "axes": lambda d: d.transpose("lon", "time", "lat"),
    "names": lambda d: d.rename(time="valid_time", lat="latitude", lon="longitude").assign_coords(
        number=0
    ),
    "level": lambda d: d.assign(t=d.t.expand_dims(level=[850.0], axis=1)),
    "degC": lambda d: d.assign(t=(d.t - 273.15).assign_attrs(units="degC")),
    "others": lambda d: d.assign(d2m=d.t - 5),
    "mixed times": lambda d: d.isel(time=np.roll(np.arange(d.sizes["time"]), 1)),
    "wider": lambda d: d.pad(lat=1, lon=1, mode="edge").assign_coords(
        lat=[70.0, *LAT, 30.0], lon=[-20.0, *LON, 30.0]
    ),
}


@pytest.mark.parametrize("of_queries", [False, True], ids=["examples", "queries"])
@pytest.mark.parametrize("change", FORMS.values(), ids=FORMS)
def test_files_of_any_form_are_answered_alike(asked, T, tmp_path, change, of_queries):
    result = run(*asked(queries=change(TODAY)) if of_queries else asked(change(DAYS)))
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(answered(tmp_path / "pressure.nc").msl, expected(T), rtol=1e-5)


def test_pressure_in_other_units(asked, T, tmp_path):
    assert run(*asked(DAYS.assign(msl=(DAYS.msl / 100).assign_attrs(units="hPa")))).exit_code == 0
    np.testing.assert_allclose(answered(tmp_path / "pressure.nc").msl, expected(T), rtol=1e-5)


def test_finer_grids_are_interpolated(asked, T, tmp_path):
    lat, lon = np.arange(65, 34, -2.5), np.arange(-15, 26, 2.5)
    fine, today = days(8, 3, lat, lon), days(1, 4, lat, lon)[["t"]]
    assert run(*asked(fine, today)).exit_code == 0
    at = {"lat": list(LAT), "lon": list(LON)}
    np.testing.assert_allclose(
        answered(tmp_path / "pressure.nc").msl, expected(T, fine.sel(at), today.sel(at)), rtol=1e-6
    )
    off = {"lat": fine.lat + 1, "lon": fine.lon - 1}
    fields = regridded(open_climate(fine.assign_coords(off)), LAT, LON)
    answer = regress_climate(
        T, open_climate(fine.assign_coords(off)), fine.assign_coords(off).t[:1]
    )
    np.testing.assert_allclose(
        answer, T.regress(ExampleSet(fields.v, fields.u))(fields.v[:1]), rtol=1e-6
    )


def test_several_files_and_zarr_stores(asked, T, tmp_path):
    arguments = asked()
    DAYS[["t"]].to_netcdf(tmp_path / "t.nc", engine="h5netcdf")
    DAYS[["msl"]].to_netcdf(tmp_path / "msl.nc", engine="h5netcdf")
    DAYS.to_zarr(tmp_path / "days.zarr", zarr_format=3, consolidated=False)
    DAYS.to_netcdf(tmp_path / "a,b.nc", engine="h5netcdf")
    for examples in (
        f"{tmp_path / 't.nc'},{tmp_path / 'msl.nc'}",
        tmp_path / "days.zarr",
        tmp_path / "a,b.nc",
    ):
        assert run(*arguments, "--examples", examples, "--force").exit_code == 0
        np.testing.assert_allclose(answered(tmp_path / "pressure.nc").msl, expected(T), rtol=1e-6)
    assert f"there is no file {tmp_path / 'none.nc'};" in fails(
        *arguments, "--examples", f"{tmp_path / 't.nc'},{tmp_path / 'none.nc'}", "--force"
    )


def test_a_day_that_stands_alone(asked, T, tmp_path):
    assert run(*asked(queries=TODAY.isel(time=1))).exit_code == 0
    stored = answered(tmp_path / "pressure.nc").msl
    assert (stored.time.values == TODAY.time.values[1:]).all()
    np.testing.assert_allclose(stored, expected(T)[1:], rtol=1e-6)


def test_variables_of_other_names(asked, T, tmp_path):
    arguments = asked(
        DAYS.assign(t2m=DAYS.t.roll(time=1), sp=DAYS.msl.roll(time=1)),
        TODAY.assign(t2m=TODAY.t.roll(time=1)),
    )
    assert "t and t2m could each be v; expected one. Say which: v='t' (--v t)" in fails(*arguments)
    assert "msl and sp could each be u" in fails(*arguments, "--v", "t")
    assert run(*arguments, "--v", "t", "--u", "msl").exit_code == 0
    np.testing.assert_allclose(answered(tmp_path / "pressure.nc").msl, expected(T), rtol=1e-6)


def test_examples_may_have_holes(asked, T, tmp_path):
    some = DAYS.isel(time=[0, 1, 4, 7])
    assert run(*asked(some)).exit_code == 0
    np.testing.assert_allclose(answered(tmp_path / "pressure.nc").msl, expected(T, some), rtol=1e-6)


def spoilt(name, value, dataset):
    """With this value at one place."""
    changed = dataset.copy(deep=True)
    changed[name][1, 2, 0] = value
    return changed


def stated(dataset, name, units):
    return dataset.assign({name: dataset[name].assign_attrs(units=units)})


BAD_EXAMPLES = {
    "no pressure": (DAYS[["t"]], "days.nc: no variable sp or ps or"),
    "no temperature": (DAYS[["msl"]], "for v; there is msl. Give the file that has it"),
    "unknown units": (
        stated(DAYS, "msl", "furlongs"),
        "has units 'furlongs'; expected Pa, hPa or mbar",
    ),
    "no units": (
        stated(DAYS, "t", ""),
        "has units ''; expected K or degC. Say what they are: units={'t': 'K'} to open_climate, "
        "or the attr",
    ),
    "false units": (
        stated(DAYS, "msl", "hPa"),
        "the examples' u are about 1.011e+07, what this model was trained on about 1.012e+05, and "
        "18709 standard dev",
    ),
    "a day twice": (
        DAYS.isel(time=[0, 1, 1, 2]),
        "has 2001-01-02T12:00:00 more than once (1 times are repeats)",
    ),
    "not finite": (
        spoilt("msl", np.nan, DAYS),
        "msl in FOLDER/days.nc is nan on 2001-01-02T12:00:00 at latitude 40, longitude -10",
    ),
    "too few latitudes": (
        DAYS.isel(lat=[0, 1]),
        "the examples' v do not cover the region of this model, 60 to 40 N and -10 to 20 E: "
        "latitude 40 (1 of 3)",
    ),
    "no dates": (DAYS.assign_coords(time=np.arange(8)), "times of type int64; expected dates"),
}
BAD_QUERIES = {
    "no temperature": (DAYS[["msl"]], "today.nc: no variable t for v; there is msl"),
    "of another height": (TODAY.rename(t="t2m"), "today.nc: no variable t for v; there is t2m"),
    "unknown units": (stated(TODAY, "t", "furlongs"), "has units 'furlongs'; expected K or degC"),
    "false units": (
        stated(TODAY, "t", "degC"),
        "the queries are about 553.4, what this model was trained on about 279.7, and 35 standard "
        "dev",
    ),
    "no time": (
        TODAY.isel(time=0, drop=True),
        "expected also, with coordinates, time or valid_time or year. Say when it was: "
        "dataset.expand_dims",
    ),
    "a day twice": (TODAY.isel(time=[0, 0]), "has 2001-02-01T12:00:00 more than once"),
    "infinite": (
        spoilt("t", np.inf, TODAY),
        "t in FOLDER/today.nc is inf on 2001-02-02T12:00:00 at latitude 40, longitude -10",
    ),
    "too few longitudes": (
        TODAY.isel(lon=[1, 2, 3]),
        "60 to 40 N and -10 to 20 E: longitude -10 (1 of 4) is outside of the fields, which reach "
        "from 0 to 20",
    ),
    "one longitude": (TODAY.isel(lon=[1]), "fields of shape (2, 3, 1)"),
}


@pytest.mark.parametrize(("examples", "said"), BAD_EXAMPLES.values(), ids=BAD_EXAMPLES)
def test_bad_examples(asked, tmp_path, examples, said):
    assert said.replace("FOLDER", str(tmp_path)) in fails(*asked(examples))
    assert not (tmp_path / "pressure.nc").exists()


@pytest.mark.parametrize(("queries", "said"), BAD_QUERIES.values(), ids=BAD_QUERIES)
def test_bad_queries(asked, tmp_path, queries, said):
    assert said.replace("FOLDER", str(tmp_path)) in fails(*asked(queries=queries))
    assert not (tmp_path / "pressure.nc").exists()


def test_an_output_that_exists_is_replaced_only_with_force(asked, tmp_path):
    (tmp_path / "pressure.nc").write_text("precious")
    assert "exists already" in fails(*asked())
    assert (tmp_path / "pressure.nc").read_text() == "precious"
    assert run(*asked(), "--force").exit_code == 0
    assert answered(tmp_path / "pressure.nc").msl.shape == (2, 3, 4)


def test_a_region_has_its_own_grid_and_files_have_coordinates(asked, tmp_path):
    assert "--at was given to a model of a region, whose grid is 3 x 4. Leave it out." in fails(
        *asked(), "--at", 5
    )
    assert "--x was given to a model of a region" in fails(*asked(), "--x", "lon")
    np.savez(tmp_path / "days.npz", v=DAYS.t, u=DAYS.msl)
    assert "expected a NetCDF file or a Zarr store" in fails(
        *asked(), "--examples", tmp_path / "days.npz"
    )


def test_the_same_from_python(T):
    answer = regress_climate(T, open_climate(DAYS), open_inputs(TODAY))
    np.testing.assert_allclose(answer, expected(T), rtol=1e-6)
    xr.testing.assert_identical(
        answer, regress_climate(T, open_climate(DAYS), TODAY.t.isel(lat=slice(None, None, -1)))
    )
    with pytest.raises(
        TransduceError, match=r"a model from Patches to .* expected one of a region"
    ):
        regress_climate(
            models.softmax(Patches(2, 4), Patches(2, 4), depth=1), open_climate(DAYS), TODAY.t
        )


def test_inputs_alone_are_those_that_come_with_outputs():
    fields, v = open_climate(DAYS), open_inputs(DAYS)
    xr.testing.assert_identical(v, fields.to_xarray(fields.v, of="v"))
    with pytest.raises(TransduceError, match="no file was given"):
        open_inputs()


def test_arrays_of_xarray_keep_their_coordinates(T):
    answer = T.regress(ExampleSet(DAYS.t, DAYS.msl))(TODAY.t)
    assert (
        answer.name == "msl"
        and answer.attrs["units"] == "Pa"
        and answer.dims == ("time", "lat", "lon")
    )
    xr.testing.assert_equal(
        answer.drop_attrs(), regress_climate(T, open_climate(DAYS), TODAY.t).drop_attrs()
    )


@pytest.fixture
def europe(tmp_path):
    """Real days of both variables, and a model of them in a file."""
    files = real("eraint_europe_daily_t850.nc", "eraint_europe_daily_mslp.nc")
    with xr.open_dataset(files[0]) as t, xr.open_dataset(files[1]) as p:
        both = xr.merge([t, p]).load()
    T = made(
        both.sel(time="2005").astype(np.float32),
        both.latitude.values.tolist(),
        both.longitude.values.tolist(),
    )
    T.save_pretrained(tmp_path / "europe.safetensors")
    return both, T


def test_real_days(europe, tmp_path):
    both, T = europe
    both.sel(time=slice("2009-02-15", "2009-03-01")).to_netcdf(
        tmp_path / "days.nc", engine="h5netcdf"
    )
    both[["t"]].sel(time="2009-03-08").to_netcdf(tmp_path / "today.nc", engine="h5netcdf")
    files = (
        "--examples",
        tmp_path / "days.nc",
        "--queries",
        tmp_path / "today.nc",
        "--out",
        tmp_path / "pressure.nc",
    )
    result = run("regress", "--model", tmp_path / "europe.safetensors", *files)
    assert result.exit_code == 0, result.output
    fields = open_climate(both)
    window, today = fields.select(slice("2009-02-15", "2009-03-01")), fields.select("2009-03-08")
    stored = answered(tmp_path / "pressure.nc").msl
    assert (
        len(window) == 15
        and stored.shape == (1, 11, 13)
        and (stored.time.values == today.time).all()
    )
    np.testing.assert_allclose(
        stored, T.regress(ExampleSet(window.v, window.u))(today.v), rtol=1e-6
    )


def test_pressure_at_the_surface_is_not_taken_for_that_at_sea_level(europe, tmp_path):
    (era5,) = real("era5_surface_2025_11_11.nc")
    files = ("--examples", era5, "--queries", era5, "--out", tmp_path / "pressure.nc")
    assert "the examples' u are about 9.8" in fails(
        "regress", "--model", tmp_path / "europe.safetensors", *files
    )
