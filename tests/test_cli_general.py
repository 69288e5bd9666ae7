"""`transduce regress` with the general model: files in any units and on any grids, with bands, and
baselines in its place."""

import numpy as np
import pytest
import xarray as xr
from conftest import fails, run

import transduce
from transduce.storage import read_variable, write_arrays

RNG = np.random.default_rng(0)


def curves(n, x, seed=0):
    """Sums of four waves over the interval of x."""
    unit = (x - min(x)) / np.ptp(x)
    waves = np.sin(np.pi * np.arange(1, 5)[:, None] * unit)
    return np.random.default_rng(seed).normal(size=(n, 4)) @ waves


X = np.linspace(400.0, 700.0, 24)
V, QUERIES = curves(12, X), curves(3, X, seed=1)
U, TRUTH = (300 + 5 * np.gradient(f, X, axis=1) + f**2 for f in (V, QUERIES))


@pytest.fixture
def regress(tmp_path):
    """Regress from arrays in files: what was said, and the path of the answers."""

    def call(pairs, queries, *more, suffix=".npz"):
        write_arrays(tmp_path / f"pairs{suffix}", pairs, force=True)
        write_arrays(tmp_path / f"v{suffix}", queries, force=True)
        names = {"examples": "pairs", "queries": "v", "out": "u"}
        files = [part for flag, name in names.items()
                 for part in (f"--{flag}", tmp_path / f"{name}{suffix}")]  # fmt: skip
        result = run("regress", *files, *more, "--force")
        assert result.exit_code == 0, result.output
        return result.stdout, tmp_path / f"u{suffix}"

    return call


def relative(answer, truth):
    return np.square(answer - truth).sum() / np.square(truth - U.mean(0)).sum()


@pytest.mark.parametrize("suffix", [".npz", ".nc", ".h5", ".zarr"])
def test_the_default_model_takes_files_in_any_units(regress, suffix):
    said, out = regress({"v": V, "u": U, "x": X}, {"v": QUERIES}, "--band", 0.9, suffix=suffix)
    (line,) = said.splitlines()
    assert line.startswith("general: n = 12 examples, 3 queries")
    assert "expected error" in line and "best baseline: " in line
    u, low, high, x = (np.asarray(read_variable(out, name)) for name in
                       ("u", "u_low", "u_high", "x_u"))  # fmt: skip
    expected = transduce.regress(V, U, x=X).predict(QUERIES, band=0.9)
    for read, array in zip((u, low, high), expected, strict=True):
        np.testing.assert_allclose(read, array, rtol=1e-9)
    np.testing.assert_array_equal(x, X)
    assert relative(u, TRUTH) < 0.5 and (low <= u).all() and (u <= high).all()


@pytest.mark.parametrize("suffix", [".npz", ".nc"])
@pytest.mark.parametrize("names", [("x_v", "x_u"), ("xv", "xu")])
def test_v_and_u_may_have_their_own_grids(regress, suffix, names):
    """Descending and uneven positions, other points of queries, and --at."""
    x_v = 1e4 / np.linspace(4.0, 9.0, 20)
    x_u = np.array([0.0, 1, 3, 6, 10, 15, 21, 28, 36])
    v, u, asked = curves(10, x_v), curves(10, x_u), curves(2, x_v[2:], seed=1)
    _, out = regress({"v": v, "u": u, names[0]: x_v, names[1]: x_u},
                     {"v": asked, names[0]: x_v[2:]}, "--at", 5, suffix=suffix)  # fmt: skip
    O = transduce.regress(v, u, x_v=x_v, x_u=x_u)
    np.testing.assert_allclose(read_variable(out, "u"), O(asked, x=x_v[2:], at=5), rtol=1e-9)
    np.testing.assert_allclose(read_variable(out, "x_u"), np.linspace(0, 36, 5))


def test_coordinates_of_a_file_are_positions(regress):
    pairs = {
        "v": xr.DataArray(V, dims=("run", "nm"), coords={"nm": X}),
        "u": xr.DataArray(U, dims=("run", "x"), coords={"x": X[::-1]}),
    }
    asked = xr.DataArray(QUERIES, dims=("day", "nm"), coords={"day": [5, 6, 9], "nm": X})
    _, out = regress(pairs, {"v": asked}, "--band", 0.8, suffix=".nc")
    answer = read_variable(out, "u")
    assert answer.dims == ("day", "x") and answer.day.values.tolist() == [5, 6, 9]
    np.testing.assert_array_equal(answer.x, X[::-1])
    expected = transduce.regress(V, U, x_v=X, x_u=X[::-1])(QUERIES)
    np.testing.assert_allclose(answer, expected, rtol=1e-9)


def test_channels_and_parameters(regress):
    v, p = np.stack([V, V[::-1]], 1), RNG.uniform(size=(12, 2))
    u = V + V[::-1] * p[:, :1]
    asked, q = np.stack([QUERIES, QUERIES[::-1]], 1), RNG.uniform(size=(3, 2))
    _, out = regress({"v": v, "u": u, "x": X, "parameters": p}, {"v": asked, "parameters": q})
    expected = transduce.regress(v, u, x=X, parameters=p)(asked, parameters=q)
    np.testing.assert_allclose(read_variable(out, "u"), expected, rtol=1e-9)


def test_tables_of_numbers(regress):
    v = RNG.normal(size=(20, 3))
    _, out = regress({"v": v, "u": v[:, 0] * v[:, 1]}, {"v": v[:2]}, "--band", 0.5)
    assert read_variable(out, "u").shape == read_variable(out, "u_high").shape == (2,)


@pytest.mark.parametrize("model", ["rbf", "linear", "mean"])
def test_baselines_by_name(regress, model):
    said, out = regress(
        {"v": V, "u": U, "x": X}, {"v": QUERIES}, "--model", model, "--band", 0.9, "--report"
    )
    expected = transduce.regress(V, U, x=X, model=model).predict(QUERIES, band=0.9)
    for name, array in zip(("u", "u_low", "u_high"), expected, strict=True):
        np.testing.assert_allclose(read_variable(out, name), array, rtol=1e-9)
    assert said.startswith(f"{model}: n = 12 examples") and "expected error" in said


def test_groups_of_a_file_are_left_out_whole(regress):
    pairs = {"v": V, "u": U, "x": X, "groups": np.repeat(["a", "b", "c", "d"], 3)}
    said, _ = regress(pairs, {"v": QUERIES}, "--report")
    assert "baselines, leave-group-out: mean" in said


def test_pairs_with_missing_values_are_dropped_on_request(regress):
    u = U.copy()
    u[4, 7] = np.nan
    said, _ = regress({"v": V, "u": u, "x": X}, {"v": QUERIES}, "--missing", "drop")
    assert said.startswith("general: n = 11 examples")


def test_models_of_families_have_bands_and_reports(regress):
    x = np.linspace(0, 1, 101)
    pairs = {"v": curves(10, x), "u": 0.5 * curves(10, x)}
    said, out = regress(pairs, {"v": curves(2, x, 1)}, "--model", "adr", "--band", 0.9, "--report")
    assert read_variable(out, "u_low").shape == (2, 101)
    assert "model 'adr'" in said and "baselines, leave-one-out: mean" in said


def test_the_report_is_printed_below_the_line(regress):
    said, _ = regress({"v": V, "u": U, "x": X}, {"v": QUERIES}, "--report")
    assert "\n".join(said.splitlines()[1:]) == str(transduce.regress(V, U, x=X).report())


def test_what_does_not_fit_is_said(tmp_path):
    pairs, queries = tmp_path / "pairs.npz", tmp_path / "v.npz"
    write_arrays(queries, {"v": QUERIES})
    files = ("regress", "--examples", pairs, "--queries", queries, "--out", tmp_path / "u.npz")
    for arrays, more, message in [
        ({"v": V, "u": U, "x": X[:-1]}, (), "x holds 23 positions"),
        ({"v": V, "u": U[:-1]}, (), "v holds 12 functions and u 11"),
        ({"v": V, "u": np.where(U > 300, np.nan, U)}, (), "missing or infinite values"),
        ({"v": V, "u": U}, ("--x", "nm"), "has no variable 'nm'"),
        ({"v": V}, (), "has no variable 'u'; it has v"),
        ({"v": V, "u": U}, ("--band", 1.5), "band=1.5; expected a share"),
        ({"v": V, "u": U, "parameters": V[:, 0]}, (), "queries came without parameters"),
        ({"v": V, "u": U}, ("--model", "atlantis"), "no model is called 'atlantis'"),
        ({"v": V, "u": U, "parameters": V[:, 0]}, ("--model", "rbf"), "model='general'"),
    ]:
        write_arrays(pairs, arrays, force=True)
        assert message in fails(*files, *more), message


UNEVEN = 400 + 300 * np.linspace(0, 1, 101) ** 1.1


@pytest.mark.parametrize("suffix", [".npz", ".nc"])
@pytest.mark.parametrize("x", [np.linspace(400, 700, 101), UNEVEN, UNEVEN[::-1].copy()])
def test_models_of_families_take_positions_in_any_units_as_python_does(regress, suffix, x):
    unit = np.abs(x - x[0]) / 300
    waves = np.sin(np.pi * np.arange(1, 5)[:, None] * unit)
    v, asked = RNG.normal(size=(13, 4)) @ waves, RNG.normal(size=(2, 4)) @ waves
    v, asked = (f / np.abs(f).max() for f in (v, asked))
    u = 0.5 * v
    _, out = regress(
        {"v": v, "u": u, "x": x}, {"v": asked, "x": x}, "--model", "adr", "--band", 0.9,
        suffix=suffix,
    )  # fmt: skip
    O = transduce.regress(v, u, x=x, model="adr")
    for name, expected in zip(("u", "u_low", "u_high"), O.predict(asked, x=x), strict=True):
        np.testing.assert_allclose(read_variable(out, name), expected, rtol=1e-5, atol=1e-6)
    if suffix == ".npz":
        np.testing.assert_array_equal(read_variable(out, "x_u"), x)


def test_parameters_of_a_file_are_exported(tmp_path):
    parameters = RNG.normal(size=(12, 2))
    write_arrays(tmp_path / "pairs.npz", {"v": V, "u": U, "x": X, "parameters": parameters})
    files = ("--examples", tmp_path / "pairs.npz", "--out", tmp_path / "operator.onnx")
    result = run("export", "--model", "general", *files)
    assert result.exit_code == 0, result.output
    assert "v (m, 24), parameters (m, 2) -> u (m, 24)" in result.stdout
