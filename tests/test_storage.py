"""Storage: what is written is what is read, in every format; a target is whole or untouched;
damaged files say so."""

import h5py
import numpy as np
import pytest
import torch
import xarray as xr
import zarr

from transduce.random_fields import generator_for
from transduce.storage import (
    StoredFamily,
    check_writable,
    read_examples,
    read_functions,
    read_variable,
    write_arrays,
)
from transduce.types import TransduceError

SUFFIXES = [".npz", ".nc", ".h5", ".hdf5", ".zarr"]
RNG = np.random.default_rng(0)
V, U = RNG.standard_normal((6, 17)).astype(np.float32), RNG.standard_normal((6, 9))
SENSORS = np.sort(RNG.uniform(size=17))


@pytest.fixture(params=SUFFIXES)
def path(request, tmp_path):
    return tmp_path / f"pairs{request.param}"


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_round_trip(path):
    write_arrays(path, {"v": V, "u": torch.from_numpy(U)})
    examples = read_examples(path)
    assert examples.x is None
    assert examples.v.dtype == np.float32
    np.testing.assert_array_equal(examples.v, V)
    np.testing.assert_array_equal(examples.u, U)
    np.testing.assert_array_equal(read_variable(path, "u"), U)


def test_variables_by_other_names(path):
    write_arrays(path, {"initial": V, "final": U[:, :5], "where": SENSORS})
    examples = read_examples(path, v="initial", u="final", x="where")
    np.testing.assert_array_equal(examples.x, SENSORS)
    np.testing.assert_array_equal(examples.u, U[:, :5])


def test_scattered_sensors_survive(path):
    write_arrays(path, {"v": V, "u": V, "x": SENSORS})
    np.testing.assert_array_equal(read_examples(path).x, SENSORS)
    np.testing.assert_array_equal(read_functions(path)[1], SENSORS)


@pytest.mark.parametrize(
    "x",
    [
        np.linspace(0, 1, 17),
        np.arange(17) / 17,
        np.linspace(0, 1, 17, dtype=np.float32),
        np.arange(17),
    ],
)
@pytest.mark.parametrize("suffix", [".nc", ".h5", ".zarr"])
def test_the_coordinate_of_a_uniform_grid_is_not_sensors(tmp_path, suffix, x):
    v = xr.DataArray(V, dims=("n", "x"), coords={"x": x})
    write_arrays(tmp_path / f"a{suffix}", {"v": v, "u": v})
    assert read_examples(tmp_path / f"a{suffix}").x is None
    np.testing.assert_array_equal(read_functions(tmp_path / f"a{suffix}", keep_uniform=True)[1], x)
    write_arrays(
        tmp_path / f"b{suffix}", {"v": v.assign_coords(x=x[::-1]), "u": v.assign_coords(x=x[::-1])}
    )
    np.testing.assert_array_equal(read_examples(tmp_path / f"b{suffix}").x, x[::-1])


def test_x_of_an_npz_is_always_sensors(tmp_path):
    np.savez(tmp_path / "a.npz", v=V, u=V, x=np.linspace(0, 1, 17))
    assert read_examples(tmp_path / "a.npz").x is not None


def test_files_of_other_programs(tmp_path):
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file["v"], file["u"] = V, V
    for version in (2, 3):
        group = zarr.open_group(tmp_path / f"plain{version}.zarr", mode="w", zarr_format=version)
        group["v"] = V
        group["u"] = V
    xr.Dataset({"v": (("n", "x"), V), "u": (("n", "x"), V)}).to_netcdf(
        tmp_path / "classic.nc", engine="scipy"
    )
    for name in ("plain.h5", "plain2.zarr", "plain3.zarr", "classic.nc"):
        np.testing.assert_array_equal(read_examples(tmp_path / name).u, V)


def test_xarray_keeps_its_dimensions_coordinates_and_attributes(tmp_path):
    u = xr.DataArray(V, dims=("run", "x"), coords={"x": np.linspace(0, 1, 17), "run": np.arange(6)})
    for suffix in (".nc", ".zarr"):
        write_arrays(tmp_path / f"u{suffix}", {"u": u}, attrs={"model": "adr"})
        assert read_variable(tmp_path / f"u{suffix}", "u").equals(u)
    assert xr.open_dataset(tmp_path / "u.nc").attrs == {"model": "adr"}
    assert xr.open_zarr(tmp_path / "u.zarr", consolidated=False).attrs == {"model": "adr"}


def test_nothing_is_overwritten_without_force(path):
    write_arrays(path, {"v": V})
    with pytest.raises(TransduceError, match=r"exists already\. Give another path, or force=True"):
        write_arrays(path, {"v": U})
    np.testing.assert_array_equal(read_variable(path, "v"), V)
    write_arrays(path, {"v": U}, force=True)
    np.testing.assert_array_equal(read_variable(path, "v"), U)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_failed_write_leaves_the_old_file_whole(path, monkeypatch):
    write_arrays(path, {"v": V})
    before = files(path.parent)
    disk_full = OSError(28, "No space left on device")

    def fail(*args, **kwargs):
        raise disk_full

    for target in ("numpy.savez", "xarray.Dataset.to_netcdf", "xarray.Dataset.to_zarr"):
        monkeypatch.setattr(target, fail)
    with pytest.raises(TransduceError, match=r"could not be written.*No space left"):
        write_arrays(path, {"v": U}, force=True)
    assert files(path.parent) == before


def test_a_failed_rename_leaves_the_old_store_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.zarr"
    write_arrays(path, {"v": V})
    before, rename = files(tmp_path), __import__("os").rename

    def fail_for_the_new(source, target):
        if str(target) == str(path) and not str(source).endswith(".old"):
            raise OSError("interrupted")
        rename(source, target)

    monkeypatch.setattr("os.rename", fail_for_the_new)
    with pytest.raises(TransduceError, match="interrupted"):
        write_arrays(path, {"v": U}, force=True)
    assert files(tmp_path) == before


def test_targets_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "thesis.zarr").mkdir()
    (tmp_path / "thesis.zarr" / "chapter").write_text("")
    for target, message in {
        "u.xlsx": r"'.xlsx'; expected one of .npz, .nc, .h5, .hdf5, .zarr",
        "missing/u.npz": "missing is not a folder",
        "file/u.npz": "file is not a folder",
        "thesis.zarr": "folder of other things",
    }.items():
        with pytest.raises(TransduceError, match=message):
            check_writable(tmp_path / target, force=True)
    with pytest.raises(TransduceError, match=r"expected one of .json"):
        check_writable(tmp_path / "u.npz", suffixes=(".json",))


def test_a_missing_file(path):
    with pytest.raises(TransduceError, match="there is no file"):
        read_examples(path)


def test_an_unknown_suffix(tmp_path):
    with pytest.raises(
        TransduceError, match=r"'.xlsx'; expected one of .npz, .nc, .h5, .hdf5, .zarr"
    ):
        read_examples(tmp_path / "a.xlsx")


def test_a_missing_variable(path):
    write_arrays(path, {"v": V, "y": U})
    with pytest.raises(TransduceError, match="no variable 'u'; it has v, y"):
        read_examples(path)
    with pytest.raises(TransduceError, match="no variable 'where'"):
        read_examples(path, u="y", x="where")


@pytest.mark.parametrize("keep", [0, 4, 0.5, 0.95])
def test_a_truncated_file(path, keep):
    write_arrays(path, {"v": V, "u": V})
    inside = (
        max((p for p in path.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
        if path.is_dir()
        else path
    )
    whole = inside.read_bytes()
    inside.write_bytes(whole[: keep if keep > 1 else int(keep * len(whole))])
    with pytest.raises(TransduceError, match=r"truncated|damaged"):
        read_examples(path)


def test_another_format_than_the_suffix_says(path):
    for suffix in SUFFIXES:
        source = path.with_name(f"other{suffix}")
        write_arrays(source, {"v": V, "u": V}, force=True)
        target = source.rename(path.with_name(f"renamed_{suffix[1:]}{path.suffix}"))
        if suffix == path.suffix or {suffix, path.suffix} <= {".nc", ".h5", ".hdf5"}:
            assert len(read_examples(target)) == 6
        else:
            with pytest.raises(TransduceError, match="by its suffix, but it is"):
                read_examples(target)


def test_pickles_are_not_read(tmp_path):
    np.savez(tmp_path / "a.npz", v=np.array([{"a": 1}, None], dtype=object), u=V)
    with pytest.raises(TransduceError, match=r"Python objects.*pickle"):
        read_examples(tmp_path / "a.npz")


def test_a_stored_family_splits_the_examples_of_one_operator(path):
    operators, examples = 3, 8
    label = 100 * np.arange(operators)[:, None, None] + np.arange(examples)[:, None] + np.zeros(5)
    write_arrays(path, {"v": label, "u": -label})
    family = StoredFamily(path)
    assert len(family) == operators
    assert family.v.dtype == torch.float32
    seen = set()
    for seed in range(20):
        task = family.sample_task(5, 3, generator_for("train", seed))
        assert torch.equal(task.examples.u, -task.examples.v)
        drawn = torch.cat([task.examples.v, task.queries.v])[:, 0]
        assert len({int(value) // 100 for value in drawn}) == 1
        assert len(set(drawn.tolist())) == 8
        seen.add(int(drawn[0]) // 100)
        again = family.sample_task(5, 3, generator_for("train", seed))
        assert torch.equal(again.queries.v, task.queries.v)
    assert seen == {0, 1, 2}
    with pytest.raises(
        TransduceError, match=r"n = 6 examples and 3 queries need 9 pairs; .* holds 8"
    ):
        family.sample_task(6, 3, generator_for("train", 0))


def test_held_out_operators_are_in_one_part_only(tmp_path):
    label = np.arange(40)[:, None, None] + np.zeros((40, 3, 5))
    write_arrays(tmp_path / "a.npz", {"v": label, "u": label})
    rest, held = StoredFamily(tmp_path / "a.npz").hold_out(0.05)
    assert set(rest.v[:, 0, 0].tolist()) == set(range(38))
    assert set(
        held.sample_task(2, 1, generator_for("train", i)).queries.v[0, 0].item() for i in range(20)
    ) == {38, 39}
    with pytest.raises(TransduceError, match=r"holds 1 operator\(s\), too few"):
        held._part(slice(1)).hold_out(0.5)


def test_a_stored_family_of_the_wrong_shape(tmp_path):
    write_arrays(tmp_path / "a.npz", {"v": V, "u": V})
    with pytest.raises(
        TransduceError, match=r"shape \(6, 17\); expected \(operator, example, \*grid\)"
    ):
        StoredFamily(tmp_path / "a.npz")
    write_arrays(tmp_path / "b.npz", {"v": np.zeros((3, 4, 5)), "u": np.zeros((3, 2, 5))})
    with pytest.raises(TransduceError, match="same numbers of operators and of examples"):
        StoredFamily(tmp_path / "b.npz")
    write_arrays(tmp_path / "c.npz", {"v": np.full((3, 4, 5), np.nan), "u": np.zeros((3, 4, 5))})
    with pytest.raises(TransduceError, match=r"c.npz: v.*not finite"):
        StoredFamily(tmp_path / "c.npz")


def test_the_first_operators_and_examples_of_a_family(tmp_path):
    v = np.arange(5 * 4 * 3, dtype=np.float32).reshape(5, 4, 3)
    np.savez(tmp_path / "f.npz", v=v, u=-v)
    few = StoredFamily(tmp_path / "f.npz").first(2, 3)
    assert len(few) == 2 and np.array_equal(few.v, v[:2, :3]) and np.array_equal(few.u, -v[:2, :3])
