"""`transduce inspect`: what files hold, and a command that works."""

import shlex

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from conftest import fails, run
from format_samples import PAIRS_OF, WRITERS, U, V, X, frame
from scipy.io import savemat

from transduce import domains
from transduce.storage import write_arrays


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def inspect(*files):
    result = run("inspect", *files)
    assert result.exit_code == 0, result.output
    return result.stdout


def paste(said):
    """Run the command that was printed, by a model that is quick."""
    words = shlex.split(said.splitlines()[-1])
    assert words[:2] == ["transduce", "regress"], said
    result = run(*words[1:], "--model", "linear-ridge")
    assert result.exit_code == 0, result.output
    return words, result.stdout


@pytest.mark.parametrize("name", PAIRS_OF)
def test_the_command_works_for_every_format(name, tmp_path):
    WRITERS[name](tmp_path / name)
    said = inspect(name)
    assert "(6, 8) examples, points" in said and "400 to 435, uneven" in said
    words, report = paste(said)
    assert words[-1] == "--report" and "baselines" in report


@pytest.mark.parametrize("name", PAIRS_OF)
def test_with_queries(name, tmp_path):
    WRITERS[name](tmp_path / name)
    write_arrays("new.csv", {"signal": V[:3]})
    words, _ = paste(inspect(name, "new.csv"))
    assert words[-3:-1] == ["--out", "answers.csv"]
    assert len(pd.read_csv("answers.csv")) == 3
    assert "answers1.csv" in inspect(name, "new.csv")


def test_inputs_and_outputs(tmp_path):
    np.save("v.npy", V)
    np.save("u.npy", U)
    assert "No command yet: v.npy has one variable" in inspect("v.npy")
    words, _ = paste(inspect("v.npy", "u.npy"))
    assert words[2:6] == ["--examples", "v.npy", "--outputs", "u.npy"]
    np.save("u.npy", U[:4, :5])
    assert "No command yet" in inspect("v.npy", "u.npy")


def test_units_gaps_and_labels():
    table = frame().rename(columns=lambda name: f"{name} (degC)")
    table.iloc[2, 3] = None
    table.insert(0, "day", list("abcdef"))
    table.to_csv("a b.csv", index=False)
    said = inspect("a b.csv")
    assert "degC" in said and "1 missing in 1 of 6 rows" in said
    assert "'day' labels the rows of a b.csv" in said
    words, _ = paste(said)
    assert words[2:-1] == ["--examples", "a b.csv", "--missing", "drop"]


def test_units_of_netcdf():
    u = xr.DataArray(U, {"x": X}, ["time", "x"], "u", {"units": "hPa"})
    write_arrays("a.nc", {"v": u, "u": u})
    said = inspect("a.nc")
    assert "hPa, grid 400 to 435, uneven" in said
    paste(said)


def test_functions_in_columns():
    savemat("a.mat", {"a": V[:, :7].T, "b": U[:, :7].T, "x": X[:7]})
    said = inspect("a.mat")
    assert "(7, 6) points, examples" in said and "check that v and u are right" in said
    words, _ = paste(said)
    assert words[4:9] == ["--v", "a", "--u", "b", "--columns"]


def test_what_cannot_be_inspected(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    (tmp_path / "b.mat").write_bytes(b"MATLAB 5.0 MAT-file")
    assert "expected one of" in fails("inspect", "a.xlsx")
    assert "truncated or damaged" in fails("inspect", "b.mat")
    assert "there is no file" in fails("inspect", "c.csv")
    assert "expected one, or two" in fails("inspect", "a.csv", "b.csv", "c.csv")


def test_report_needs_no_queries():
    frame().to_csv("a.csv", index=False)
    assert "given together" in fails("regress", "--examples", "a.csv")
    assert "given together" in fails("regress", "--examples", "a.csv", "--queries", "a.csv")


def test_positions_in_structs():
    savemat("a.mat", {"data": {"v": U, "u": U, "x": X}})
    model, domain = domains.opened("rbf")
    np.testing.assert_allclose(domain.read_examples(model, "a.mat").v.grid.x, X)
    said = run("inspect", "a.mat").stdout
    assert "data.x" in said and "grid 400 to 435" in said


def test_inspect_of_columns_without_positions():
    """Functions in columns are smooth from row to row."""
    smooth = np.cumsum(np.cumsum(np.random.default_rng(0).normal(size=(40, 15)), 0), 0)
    savemat("a.mat", {"v": smooth, "u": 2 * smooth})
    said = run("inspect", "a.mat").stdout
    assert "--columns" in said.splitlines()[-1] and "check that" in said
    savemat("a.mat", {"v": smooth.T, "u": 2 * smooth.T})
    assert "--columns" not in run("inspect", "a.mat").stdout


def test_inspect_of_complex_numbers():
    np.savez("a.npz", v=V, u=U, z=V + 1j * U, zero=np.zeros(3, complex))
    said = run("inspect", "a.npz").stdout
    assert said.count("complex numbers") == 2 and "categor" not in said


def test_queries_without_the_parameters_of_the_pairs():
    np.savez("par.npz", v=V, u=U, parameters=V[:, :2])
    np.savez("parq.npz", v=V[:3])
    assert "No command yet: queries came without parameters" in inspect("par.npz", "parq.npz")
    np.savez("parq.npz", v=V[:3], parameters=V[:3, :2])
    words = shlex.split(inspect("par.npz", "parq.npz").splitlines()[-1])
    assert run(*words[1:], "--model", "general").exit_code == 0


def test_inspect_of_empty_arrays():
    np.savez("a.npz", v=np.empty((0, 5)), u=np.empty((0, 5)), w=np.empty(0))
    result = run("inspect", "a.npz")
    assert result.exit_code == 0 and "no values" in result.stdout
    savemat("a.mat", {"v": U, "u": U, "none": np.empty((0, 0))})
    assert "no values" in run("inspect", "a.mat").stdout
