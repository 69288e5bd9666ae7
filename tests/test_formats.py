"""Files that other programs write: round trips, files of third parties, and files as found."""

from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
import rdata
import scipy
import sklearn
import vega_datasets
import xarray as xr
from conftest import fails, run
from format_samples import PAIRS_OF, WRITERS, U, V, X, write_mat_73
from scipy.io import loadmat, savemat

from transduce.storage import opened, read_examples, read_functions, read_variable, write_arrays
from transduce.types import TransduceError

SUFFIXES = [".csv", ".tsv", ".txt", ".npz", ".mat", ".parquet", ".nc", ".h5", ".zarr"]
MATLAB = Path(scipy.__file__).parent / "io/matlab/tests/data"
R = Path(rdata.__file__).parent / "tests/data"
PARQUET = Path(pyarrow.__file__).parent / "tests/data/parquet"
SPATIAL = Path(scipy.__file__).parent / "spatial/tests/data"
SCIPY = Path(scipy.__file__).parent
SKLEARN = Path(sklearn.__file__).parent / "datasets/data"
NUMPY = Path(np.__file__).parent / "lib/tests/data"
VEGA = Path(vega_datasets.__file__).parent / "_data"


@pytest.mark.parametrize("name", PAIRS_OF)
def test_pairs_of_other_programs(name, tmp_path):
    WRITERS[name](tmp_path / name)
    examples = read_examples(tmp_path / name)
    np.testing.assert_allclose(examples.v, V, rtol=1e-15)
    np.testing.assert_allclose(examples.u, U, rtol=1e-15)
    np.testing.assert_allclose(examples.x, X)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read(suffix, tmp_path):
    labels = {"run": ["a", "b", "c", "d", "e", "f"], "nm": X}
    u = xr.DataArray(U, labels, ["run", "nm"], "u")
    write_arrays(tmp_path / f"u{suffix}", {"u": u, "u_low": u - 1})
    with opened(tmp_path / f"u{suffix}") as file:
        for name, expected in {"u": U, "u_low": U - 1}.items():
            np.testing.assert_array_equal(np.asarray(file.fetch(name)), expected)
        if file.layout:
            read = file.fetch("u")
            assert read.coords["run"].values.tolist() == labels["run"]
            np.testing.assert_array_equal(read.coords[read.dims[-1]], X)
    assert [path.name for path in tmp_path.iterdir()] == [f"u{suffix}"]


@pytest.mark.parametrize("suffix", [*SUFFIXES[:6], ".npy"])
def test_numbers_and_single_rows(suffix, tmp_path):
    for array in (U[:, 0], U[:1], U[:, :1]):
        write_arrays(tmp_path / f"u{suffix}", {"u": array}, force=True)
        with opened(tmp_path / f"u{suffix}") as file:
            (name,) = (one.name for one in file.candidates())
            assert np.asarray(file.fetch(name)).ravel().tolist() == array.ravel().tolist()


def test_what_a_format_cannot_hold(tmp_path):
    with pytest.raises(TransduceError, match=r"\(2, 3, 4\), which is no table.*Write .npz"):
        write_arrays(tmp_path / "u.csv", {"u": np.zeros((2, 3, 4))})
    with pytest.raises(TransduceError, match=r"u, u_low for an .npy.*leave out --band"):
        write_arrays(tmp_path / "u.npy", {"u": U, "u_low": U})
    with pytest.raises(TransduceError, match=r"ends in '.rda'; expected one of"):
        write_arrays(tmp_path / "u.rda", {"u": U})
    assert list(tmp_path.iterdir()) == []


THIRD_PARTIES = [  # file, variable, shape, first value
    (MATLAB / "testdouble_7.4_GLNX86.mat", "testdouble", (1, 9), 0.0),
    (MATLAB / "testmatrix_6.1_SOL2.mat", "testmatrix", (3, 5), 1.0),
    (MATLAB / "test3dmatrix_7.1_GLNX86.mat", "test3dmatrix", (2, 3, 4), 1.0),
    (MATLAB / "testhdf5_7.4_GLNX86.mat", "testdouble", (1, 9), 0.0),
    (R / "test_vector.rda", "test_vector", (3,), 1.0),
    (R / "test_dataframe.rds", "value", (3,), 1.0),
    (R / "generated/test_full_named_matrix__xdr__version_3.rda", "test_full_named_matrix",
     (2, 3), 1.0),
    (PARQUET / "v0.7.1.parquet", "carat", (10,), 0.23),
    (VEGA / "seattle-weather.csv", "temp_max", (1461,), 12.8),
    (VEGA / "us-employment.csv", "manufacturing", (120,), 14210.0),
    (SPATIAL / "iris.txt", "values", (150, 4), 5.1),
    (SKLEARN / "linnerud_exercise.csv", "Chins", (20,), 5.0),
    (SCIPY / "interpolate/tests/data/estimate_gradients_hang.npy", "values", (2225, 2), 0.0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "name", "shape", "first"), THIRD_PARTIES, ids=lambda case: getattr(case, "name", "")
)
def test_files_of_third_parties(path, name, shape, first):
    array = np.asarray(read_variable(path, name))
    assert array.shape == shape and array.ravel()[0] == pytest.approx(first)


PACKAGES = {  # a folder, how many files of a suffix it has, and how many of them hold real numbers
    "scipy": (MATLAB, ".mat", 110, 36),  # the others hold cells, structs, text, or are of version 4
    "rdata": (R, ".rda", 234, 106),
    "rdata's .rds": (R, ".rds", 349, 157),
    "arrow": (PARQUET, ".parquet", 4, 4),
    "vega": (VEGA, ".csv", 8, 8),
    "scipy's .txt": (SPATIAL, ".txt", 30, 30),
    "sklearn": (SKLEARN, ".csv", 5, 3),
    "scipy's .npy": (SCIPY, ".npy", 6, 5),
    "numpy": (NUMPY, ".npy", 5, 2),  # the others are pickles
}


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.filterwarnings("ignore")
def test_every_file_of_a_package_is_read_or_refused(package):
    folder, suffix, files, readable = PACKAGES[package]
    paths, read = sorted(folder.rglob(f"*{suffix}")), set()
    for path in paths:
        with suppress(TransduceError), opened(path) as file:
            for name in file.names:
                with suppress(TransduceError):
                    array = np.asarray(file.fetch(name))
                    read |= {path} if array.size and array.dtype.kind in "fiubU" else set()
    assert (len(paths), len(read)) == (files, readable)


@pytest.mark.filterwarnings("ignore")
def test_matlab_files_are_read_as_scipy_reads_them():
    equal = 0
    for path in sorted(MATLAB.glob("*_[567].*.mat")):
        with suppress(TransduceError), opened(path) as file:
            for name in file.names:
                struct, _, field = name.partition(".")
                array = file.fetch(name)
                known = loadmat(path)[struct]
                np.testing.assert_array_equal(array, known[field][0, 0] if field else known)
                equal += 1
    assert equal > 20


@pytest.mark.parametrize(
    ("file", "name", "message"),
    [
        ("testfunc_7.4_GLNX86.mat", "testfunc", "MATLAB class 'function'.*Save double"),
        ("testcell_7.4_GLNX86.mat", "testcell", r"'cell'.*Save cell2mat\(testcell\)"),
        ("testsparse_7.4_GLNX86.mat", "testsparse", r"'sparse'.*Save full\(testsparse\)"),
        ("testobject_7.4_GLNX86.mat", "testobject", "'object'.*Save double"),
        ("teststring_7.4_GLNX86.mat", "teststring", "'char'.*Name another variable"),
        ("testdouble_4.2c_SOL2.mat", "testdouble", "should be MATLAB 5.*-v7"),
    ],
)
def test_what_is_not_numbers_in_matlab(file, name, message):
    with pytest.raises(TransduceError, match=message):
        read_variable(MATLAB / file, name)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("test_function__xdr__version_3.rda", "unknown R class.*unclass"),
        ("test_s4__xdr__version_3.rda", "unknown R class|type SimpleNamespace"),
        ("test_altrep_wrap_real_class_attribute__xdr__version_3.rda", "unknown R class.*unclass"),
        ("test_expression__xdr__version_3.rda", "type RExpression; expected a vector"),
    ],
)
def test_what_is_not_numbers_in_r(file, message):
    path = R / "generated" / file
    with pytest.raises(TransduceError, match=message), opened(path) as opening:
        opening.fetch(opening.names[0])


def test_structs_and_columns_of_matlab(tmp_path):
    savemat(tmp_path / "s.mat", {"data": {"v": V, "u": U, "about": "text"}})
    np.testing.assert_array_equal(read_examples(tmp_path / "s.mat").u, U)
    write_mat_73(tmp_path / "t.mat", V.T, U.T)
    np.testing.assert_array_equal(read_examples(tmp_path / "t.mat", columns=True).u, U)


def test_a_scalar_of_matlab_73(tmp_path):
    path = tmp_path / "s.mat"
    write_mat_73(path)
    with h5py.File(path, "r+") as file:
        file["scalar"] = 3.0
        file["scalar"].attrs["MATLAB_class"] = np.bytes_("double")
    assert read_variable(path, "scalar").item() == 3.0


def test_lists_in_parquet(tmp_path):
    table = pyarrow.table({"v": V.tolist(), "u": U.tolist()})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    np.testing.assert_array_equal(read_examples(tmp_path / "a.parquet").v, V)
    ragged = pyarrow.table({"v": [[1.0, 2.0], [1.0]], "u": [1.0, 2.0]})
    pyarrow.parquet.write_table(ragged, tmp_path / "b.parquet")
    with pytest.raises(TransduceError, match=r"lists of unequal length.*Interpolate"):
        read_examples(tmp_path / "b.parquet")


def test_decimals_in_parquet(tmp_path):
    cells = [[Decimal(f"{cell:.3f}") for cell in column] for column in V.T]
    table = pyarrow.table({f"v_{j}": cells[j] for j in range(8)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    np.testing.assert_allclose(read_variable(tmp_path / "a.parquet", "v"), V, atol=1e-3)


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ([[[[1.0], [2.0]]]], ["v"], r"v in .* has lists of list<.*expected lists of numbers"),
        ([[["a", "b"]]], ["v"], r"v in .* has lists of string; expected lists of numbers"),
        ([[1.0], [2.0]], ["v", "v"], r"two columns called 'v'; expected a name for each. Rename"),
    ],
)
def test_what_is_not_read_in_parquet(columns, names, message, tmp_path):
    table = pyarrow.table([pyarrow.array(column) for column in columns], names=names)
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(TransduceError, match=message):
        read_variable(tmp_path / "a.parquet", "v")


def test_data_frames_of_r(tmp_path):
    frame = pd.DataFrame({"v.1": V[:, 0], "v.2": V[:, 1], "y": U[:, 0]})
    rdata.write_rda(tmp_path / "a.RData", {"d": frame})
    with opened(tmp_path / "a.RData") as file:
        assert file.columns == ("v", "y")
        np.testing.assert_array_equal(file.fetch("v"), V[:, :2])


def test_queries_may_be_called_anything(tmp_path):
    savemat(tmp_path / "q.mat", {"new": V})
    np.testing.assert_array_equal(read_functions(tmp_path / "q.mat")[0], V)
    np.testing.assert_array_equal(read_functions(tmp_path / "q.mat", v="temp")[0], V)
    savemat(tmp_path / "q.mat", {"new": V, "old": V})
    with pytest.raises(TransduceError, match=r"no variable called v; it has new \(6, 8\), old"):
        read_functions(tmp_path / "q.mat")


def test_several_candidates(tmp_path):
    savemat(tmp_path / "p.mat", {"a": V, "b": U, "note": "text", "c": X})
    files = ("--examples", tmp_path / "p.mat", "--queries", tmp_path / "p.mat")
    out = ("--out", tmp_path / "u.csv", "--model", "linear-ridge")
    said = fails("regress", *files, *out)
    assert "it has a (6, 8), b (6, 8), c (1, 8). Name them, like --v a --u b" in said
    assert run("regress", *files, *out, "--v", "a", "--u", "b").exit_code == 0


def test_positions_may_be_named_for_the_examples_alone(tmp_path):
    savemat(tmp_path / "p.mat", {"a": V, "b": U, "time": X**2})
    savemat(tmp_path / "q.mat", {"v": V})
    files = ("--examples", tmp_path / "p.mat", "--queries", tmp_path / "q.mat")
    names = ("--v", "a", "--u", "b", "--x", "time")
    result = run("regress", *files, *names, "--out", tmp_path / "u.csv", "--model", "rbf")
    assert result.exit_code == 0, result.output
    with opened(tmp_path / "u.csv") as file:
        np.testing.assert_allclose(file.fetch("x"), X**2)


@pytest.mark.parametrize("names", [("s.v", "s.u", "s.x"), ("v", "u", "x")])
def test_fields_of_structs_have_two_names(names, tmp_path):
    savemat(tmp_path / "p.mat", {"s": {"v": V, "u": U, "x": X**2}})
    options = [word for pair in zip(("--v", "--u", "--x"), names, strict=True) for word in pair]
    result = run("regress", "--examples", tmp_path / "p.mat", *options, "--report")
    assert result.exit_code == 0, result.output


def test_groups_of_hdf5_are_no_variables(tmp_path):
    with h5py.File(tmp_path / "g.h5", "w") as file:
        file["a/v"], file["a/u"] = V, U
    said = fails("regress", "--examples", tmp_path / "g.h5", "--report")
    assert "no arrays of numbers at its top level" in said


@pytest.mark.parametrize("name", ["v.csv", "v.npy", "v.mat", "v.parquet"])
def test_inputs_and_outputs_in_two_files(name, tmp_path):
    paths = [tmp_path / name, tmp_path / f"u{Path(name).suffix}"]
    for path, array in zip(paths, (V, U), strict=True):
        write_arrays(path, {"curves": array})
    files = ("--examples", paths[0], "--outputs", paths[1], "--queries", paths[0])
    result = run("regress", *files, "--out", tmp_path / "a.npy", "--model", "linear-ridge")
    assert result.exit_code == 0, result.output
    assert read_variable(tmp_path / "a.npy", "values").shape == U.shape
