"""Queries in another order, on rounded positions, or with points that are only numbered."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner

import transduce
from transduce.cli import app
from transduce.inputs.grids import Grid
from transduce.types import TransduceError

LATITUDES, LONGITUDES = np.linspace(30, 60, 10), np.linspace(0, 40, 12)


def walks(n, *shape):
    f = np.random.default_rng(0).standard_normal((n, *shape))
    for axis in range(1, f.ndim):
        f = f.cumsum(axis)
    return f


def fields(values):
    coordinates = {"lat": LATITUDES, "lon": LONGITUDES}
    return xr.DataArray(values, coordinates, ("run", "lat", "lon"))


@pytest.fixture(scope="module")
def of_fields():
    v = walks(14, 10, 12)
    return transduce.regress(fields(v), fields(np.roll(v, 2, 1) * LATITUDES[:, None]), model="rbf")


@pytest.mark.parametrize(
    "changed",
    [
        lambda q: q.transpose("run", "lon", "lat"),
        lambda q: q.transpose("lat", "run", "lon"),
        lambda q: q.isel(lat=slice(None, None, -1)),
        lambda q: q.isel(lon=slice(None, None, -1)).rename(run="day"),
        lambda q: q.isel(lat=np.random.default_rng(1).permutation(10)),
    ],
    ids=["transposed", "rows last", "descending", "renamed rows", "shuffled"],
)
def test_fields_are_read_by_dimension_and_coordinate(of_fields, changed):
    q = fields(walks(3, 10, 12))
    expected, found = of_fields(q), of_fields(changed(q))
    assert found.dims[1:] == ("lat", "lon")
    assert np.array_equal(found.lat, LATITUDES) and np.array_equal(found, expected)


def test_fields_at_other_coordinates_are_refused(of_fields):
    q = fields(walks(3, 10, 12))
    with pytest.raises(TransduceError, match=r"lat of v runs from 130\.0 to 160\.0.*Interpolate"):
        of_fields(q.assign_coords(lat=q.lat + 100))
    assert np.array_equal(of_fields(q.drop_vars("lat")), of_fields(q))


def test_curves_are_transposed_by_name():
    t = np.linspace(0, 1, 12)
    v = xr.DataArray(walks(12, 12), {"t": t}, ("run", "t"))
    O = transduce.regress(v, v**2, model="rbf")
    assert np.array_equal(O(v.transpose("t", "run")), O(v))


@pytest.mark.parametrize("decimals", [5, 4, 3])
@pytest.mark.parametrize("unit", [1.0, 1e-6, 100.0])
def test_rounded_positions_are_even(decimals, unit):
    x = np.arange(64) / 64
    rounded = unit * np.round(x, decimals)
    assert Grid.of(rounded).uniform and Grid.of(rounded[::-1]).uniform
    assert Grid.of(rounded).at(unit * x).same_as(Grid.of(rounded))
    assert Grid.of(unit * x).at(rounded).same_as(Grid.of(unit * x))


def test_uneven_positions_stay_uneven():
    x = np.arange(64) / 64
    moved = x.copy()
    moved[20] += 0.002
    for positions in (np.round(x, 2), np.round(moved, 4), [*range(20), 20.05], [0, 0.1, 0.21, 0.3]):
        assert not Grid.of(np.unique(positions)).uniform


@pytest.mark.parametrize("kind", ["lists", "from 0", "from 1"])
def test_numbered_points_of_queries_are_those_of_the_examples(tmp_path, kind):
    x = np.linspace(0, 2, 30)
    v = walks(24, 30)
    u = v.cumsum(1)
    names = [f"{name}_{at:.3f}" for name in "vu" for at in x]
    pd.DataFrame(np.hstack([v, u])[:20], columns=names).to_parquet(tmp_path / "pairs.parquet")
    if kind == "lists":
        queries = tmp_path / "q.parquet"
        pd.DataFrame({"v": list(v[20:])}).to_parquet(queries)
    else:
        queries, first = tmp_path / "q.csv", int(kind[-1])
        numbered = [f"v_{k + first}" for k in range(30)]
        pd.DataFrame(v[20:], columns=numbered).to_csv(queries, index=False)
    out = tmp_path / "u.npy"
    given = {"--examples": tmp_path / "pairs.parquet", "--queries": queries, "--out": out}
    words = [str(word) for pair in given.items() for word in pair]
    result = CliRunner().invoke(app, ["regress", *words], catch_exceptions=False)
    assert result.exit_code == 0 and "v of the queries has points numbered from" in result.stderr
    assert np.abs(np.load(out) - u[20:]).max() < 0.05 * np.abs(u).max()
