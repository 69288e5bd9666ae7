"""Every kind of input, read into float64 arrays with grids, and given back."""

import subprocess
import sys
import warnings
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.inputs import Grid, read_pairs, read_query

N, P = 12, 16
V = np.random.default_rng(0).standard_normal((N, P))
U = V[:, :10] ** 2
X = np.linspace(0.0, 1.0, P) ** 2


@pytest.fixture(autouse=True)
def no_warnings():
    """Good input gives no warning, unless a test expects one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def days(count, start="2020-03-01"):
    return np.datetime64(start) + np.arange(count)


KINDS = {
    "float64": V,
    "byte-swapped": V.astype(">f8"),
    "not contiguous": np.repeat(V, 2, axis=1)[:, ::2],
    "read only": np.frombuffer(V.tobytes()).reshape(V.shape),
    "lists": V.tolist(),
    "list of arrays": list(V),
    "tuple of tensors": tuple(torch.from_numpy(V)),
    "decimals": [[Decimal(float(value)) for value in row] for row in V],
    "matrix": np.asmatrix(V),
    "masked, nothing masked": np.ma.MaskedArray(V),
    "tensor": torch.from_numpy(V),
    "frame": pd.DataFrame(V),
    "frame, nullable": pd.DataFrame(V).astype("Float64"),
    "frame, names": pd.DataFrame(V, columns=[f"c{i}" for i in range(P)]),
    "frame of objects": pd.DataFrame(V).astype(object),
    "data array": xr.DataArray(V),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_as_the_same_numbers(kind):
    pairs = read_pairs(KINDS[kind], U)
    assert pairs.v.values.shape == (N, 1, P) and pairs.v.array.dtype == np.float64
    np.testing.assert_allclose(pairs.v.array[:, 0], V, rtol=1e-15)
    np.testing.assert_array_equal(pairs.v.grid.unit, np.linspace(0, 1, P))
    assert isinstance(pairs.v.values, torch.Tensor) == ("tensor" in kind)


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "i4", "f2", "f4", "f8", "g", ">f4"])
def test_every_dtype_is_read_and_answers_are_float32_or_float64(dtype):
    given = (V * 10).astype(dtype)
    pairs = read_pairs(V, given)
    np.testing.assert_array_equal(pairs.u.array[:, 0], given.astype(float))
    answer = pairs.u.restore(pairs.u.values)
    assert answer.dtype == (np.float32 if dtype.endswith("f4") else np.float64)


@pytest.mark.parametrize(
    ("dtype", "answers"),
    [("float16", "float64"), ("bfloat16", "float64"), ("int32", "float64"), ("float32",) * 2],
)
def test_dtypes_of_tensors(dtype, answers):
    u = torch.ones(N, P, dtype=getattr(torch, dtype))
    pairs = read_pairs(V, u)
    assert pairs.u.restore(np.ones((2, 1, P))).dtype == getattr(torch, answers)


@pytest.mark.parametrize(
    ("shape", "options", "kind", "channels", "points"),
    [
        ((N, 8), {}, "grid", 1, 8),
        ((N, 7), {}, "numbers", 1, 7),
        ((N, 7), {"x_v": np.arange(7)}, "grid", 1, 7),
        ((N, 2), {"x_v": [0, 3]}, "grid", 1, 2),
        ((N, 1), {}, "numbers", 1, 1),
        ((N,), {}, "numbers", 1, 1),
        ((N, 7, 50), {}, "grid", 7, 50),
        ((N, 1, 50), {}, "grid", 1, 50),
        ((N, 2, 3), {}, "numbers", 1, 6),
        ((N, 2, 3), {"x_v": [1, 2, 4]}, "grid", 2, 3),
        ((N, 2, 3), {"channels": 2}, "grid", 2, 3),
        ((N, 5, 1), {}, "numbers", 1, 5),
        ((N, 8, 50), {}, "field", 1, 400),
        ((N, 12, 50), {"channels": 12}, "grid", 12, 50),
        ((N, 12, 50), {"channels": True}, "grid", 12, 50),
        ((N, 12, 50), {"channels": np.int64(12), "x_v": np.arange(50)}, "grid", 12, 50),
        ((N, 5, 40), {"channels": 1}, "field", 1, 200),
        ((N, 5, 40), {"channels": False}, "field", 1, 200),
        ((N, 3, 9, 9), {}, "field", 3, 81),
        ((N, 3, 9, 9), {"channels": False}, "field", 1, 243),
        ((N, 9, 9, 9), {}, "field", 1, 729),
        ((N, 3, 9, 9), {"channels": 3}, "field", 3, 81),
        ((N, 6000), {}, "grid", 1, 6000),
    ],
)
def test_shapes(shape, options, kind, channels, points):
    v = np.random.default_rng(0).standard_normal(shape)
    pairs = read_pairs(v, U, **options)
    layout = pairs.v.layout
    assert (layout.kind, layout.channels, layout.points) == (kind, channels, points)
    assert pairs.v.values.shape == (N, channels, points)
    assert (layout.grid is not None) == (kind == "grid")
    assert bool(layout.axes) == (kind == "field" and points != 243 and points != 729)
    np.testing.assert_array_equal(pairs.v.restore(pairs.v.values), v)
    query = read_query(pairs, v[:3])
    assert query.same_grid and query.v.values.shape == (3, channels, points)
    assert ("6000 points" in " ".join(pairs.notes)) == (points == 6000)


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30, unique=True),
    st.floats(1e-3, 1e3),
    st.floats(-1e3, 1e3),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_an_affine_change_of_x_changes_nothing(x, scale, shift, descending):
    x = np.unique(np.round(x, 3))
    if len(x) < 2:
        return
    grid, other = Grid.of(x), Grid.of((scale * x + shift)[:: -1 if descending else 1])
    np.testing.assert_allclose(grid.unit, other.unit, atol=1e-6)
    assert other.flipped == descending
    assert grid.unit[0] == 0 and grid.unit[-1] == 1 and (np.diff(grid.unit) > 0).all()
    np.testing.assert_allclose(grid.from_unit(grid.unit), x, atol=1e-9)
    np.testing.assert_allclose(grid.to_unit(x), grid.unit, atol=1e-9)


@pytest.mark.parametrize(
    "x",
    [
        np.linspace(3, 9, P).astype("f4"),
        np.arange(P) * 3,
        np.arange(P, dtype="u1"),
        1_700_000_000_000_000_000 + 10**9 * np.arange(P),
        days(P),
        days(P).astype("datetime64[ns]"),
        np.arange(P).astype("timedelta64[h]"),
        [str(i / 10) for i in range(P)],
        [str(day) for day in days(P)],
        [date(2021, 1, 1 + i) for i in range(P)],
        [datetime(2021, 1, 1, i) for i in range(P)],
        pd.date_range("2020", periods=P, tz="Europe/Berlin"),
        pd.period_range("2020-01-01", periods=P, freq="D"),
        torch.linspace(-1, 1, P),
        xr.DataArray(np.arange(P) / 7),
        range(P),
        [Decimal(i) for i in range(P)],
    ],
    ids=lambda x: type(x).__name__,
)
def test_positions_of_every_kind(x):
    grid = read_pairs(V, U, x_v=x).v.grid
    np.testing.assert_array_equal(grid.unit, np.linspace(0, 1, P))
    assert grid.uniform and not grid.flipped and grid.given
    assert grid.at(x).same_as(grid)
    finer = grid.resampled(2 * P - 1)
    np.testing.assert_allclose(grid.to_unit(finer.x), finer.unit, atol=1e-6)


def test_x_belongs_to_whichever_it_fits():
    assert read_pairs(V, V, x=X).u.grid.same_as(Grid.of(X))
    assert read_pairs(V, U[:, 0], x=X).u.layout.kind == "numbers"
    pairs = read_pairs(V[:, :3], V, x=X)
    assert pairs.v.layout.kind == "numbers" and pairs.u.grid.same_as(Grid.of(X))
    pairs = read_pairs(V, np.ones((N, P, P)) * V[:, :1, None], x=X)
    assert pairs.u.layout.kind == "field" and "channels=16" in pairs.notes[0]


def test_descending_grids_are_reversed_and_restored():
    pairs = read_pairs(V, U, x_v=X[::-1], x_u=np.arange(10)[::-1])
    np.testing.assert_array_equal(pairs.v.values[:, 0], V[:, ::-1])
    np.testing.assert_allclose(pairs.v.grid.unit, X)
    np.testing.assert_array_equal(pairs.u.restore(pairs.u.values), U)
    with pytest.warns(UserWarning, match="on the whole interval"):
        coarse = read_query(pairs, V[:2, :8][:, ::-1], x=X[:8])
    assert not coarse.same_grid and not coarse.v.grid.flipped
    np.testing.assert_allclose(coarse.v.grid.unit, X[:8], atol=1e-12)


def test_frames_keep_columns_and_index():
    v = pd.DataFrame(V, columns=[f"{x:.4f}" for x in X], index=[f"s{i}" for i in range(N)])
    u = pd.DataFrame(U.astype("f4"), columns=pd.Index(days(10)[::-1], name="day"), index=v.index)
    pairs = read_pairs(v, u)
    np.testing.assert_allclose(pairs.v.grid.unit, X, atol=1e-4)
    assert pairs.u.grid.flipped
    query = read_query(pairs, v.iloc[[4, 2]])
    pd.testing.assert_frame_equal(pairs.u.restore(pairs.u.values[[4, 2]], query.v), u.iloc[[4, 2]])
    other = pairs.u.restore(np.ones((2, 1, 3)), query.v, pairs.u.grid.at(days(3)))
    assert list(other.columns) == list(days(3).astype("M8[s]")) and list(other.index) == [
        "s4",
        "s2",
    ]
    assert read_query(pairs, V[:1]).same_grid  # an array of as many points


def test_series_are_numbers():
    u = pd.Series(U[:, 0], name="drag", index=list("abcdefghijkl"))
    pairs = read_pairs(V, u)
    pd.testing.assert_series_equal(pairs.u.restore(pairs.u.values, pairs.u), u)
    assert read_pairs(u, u).v.values.shape == (N, 1, 1)
    assert read_query(read_pairs(u, u), u.iloc[:3]).v.values.shape == (3, 1, 1)


def test_data_arrays_keep_dims_coordinates_name_and_attributes():
    coords = {
        "time": days(N),
        "x": X[::-1],
        "height": 2.0,
        "place": ("x", list("abcdefghijklmnop")),
    }
    u = xr.DataArray(V, coords, ("time", "x"), "pressure", {"units": "Pa"})
    pairs = read_pairs(u * 2, u)
    assert pairs.u.grid.flipped
    query = read_query(pairs, (u * 3).isel(time=[5, 1]))
    answer = pairs.u.restore(pairs.u.values[[5, 1]], query.v)
    xr.testing.assert_identical(answer, u.isel(time=[5, 1]))
    plain = pairs.u.restore(pairs.u.values[:2], read_query(pairs, V[:2]).v)
    assert plain.dims == ("time", "x") and "time" not in plain.coords
    finer = pairs.u.restore(np.ones((2, 1, 5)), query.v, pairs.u.grid.at(X[:5]))
    assert finer.sizes == {"time": 2, "x": 5} and "place" not in finer.coords
    field = xr.DataArray(np.ones((N, 9, 10)) * V[:, :1, None], {"lat": range(9)}, ("t", "lat", "l"))
    pairs = read_pairs(field, field)
    xr.testing.assert_identical(pairs.u.restore(pairs.u.values), field)


def test_gradients_flow_through_tensors():
    v = torch.from_numpy(V).float().requires_grad_()
    u = torch.from_numpy(U).float()
    pairs = read_pairs(v, u, x_v=X[::-1].copy())
    assert pairs.v.values.dtype == torch.float64
    query = read_query(pairs, v[:2])
    answer = pairs.u.restore(2 * query.v.values[..., :10], query.v)
    assert answer.dtype == torch.float32
    answer.sum().backward()
    np.testing.assert_array_equal(v.grad[:2, 6:], 2.0)
    numpy_pairs = read_pairs(V, V)
    query = read_query(numpy_pairs, v[:2])
    assert numpy_pairs.u.restore(query.v.values, query.v).requires_grad


def test_numpy_is_read_without_torch_pandas_or_xarray():
    code = (
        "import sys, numpy as np; from transduce.inputs import read_pairs, read_query\n"
        "v = np.random.default_rng(0).standard_normal((9, 9)); pairs = read_pairs(v, v)\n"
        "pairs.u.restore(read_query(pairs, v).v.values)\n"
        "assert not {'torch', 'pandas', 'xarray'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
