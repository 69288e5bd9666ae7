"""Generation: the bytes depend on the request alone, not on workers or on being killed; the store
is what the family draws."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
import xarray as xr

from transduce.families import AdvectionDiffusionReaction
from transduce.generation import Request, generate
from transduce.random_fields import generator_for
from transduce.storage import StoredFamily
from transduce.types import TransduceError

FAMILY = AdvectionDiffusionReaction(k_max=0.1)


def contents(store):
    return {str(p.relative_to(store)): p.read_bytes() for p in store.rglob("*") if p.is_file()}


def start(out, *options):
    """`transduce generate` in a process of its own: 40 operators in as many blocks."""
    command = [
        sys.executable,
        "-m",
        "transduce",
        "generate",
        "adr",
        "--operators",
        "40",
        "--examples",
        "2",
        "--k-max",
        "0.1",
    ]
    return subprocess.Popen(
        [*command, "--out", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return output, errors


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """What one worker writes, uninterrupted."""
    out = tmp_path_factory.mktemp("one") / "adr.zarr"
    output, errors = finish(start(out, "--workers", "1"))
    assert "40 operators of 2 examples" in output
    assert "40 of 40 operators" in errors
    assert "\x1b" not in errors
    return out


def test_two_workers_write_the_same_bytes(store, tmp_path):
    finish(start(tmp_path / "adr.zarr", "--workers", "2"))
    assert contents(tmp_path / "adr.zarr") == contents(store)


def test_killed_and_started_again_it_writes_the_same_bytes(store, tmp_path):
    process = start(tmp_path / "adr.zarr", "--workers", "1")
    done = tmp_path / "adr.zarr.partial" / "done"
    while not done.exists() or len(os.listdir(done)) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finished = os.listdir(done)
    assert 3 <= len(finished) < 40
    shard = f"u/c/{finished[0]}/0/0"
    written = (done.parent / "store" / shard).stat().st_mtime_ns
    assert not (tmp_path / "adr.zarr").exists()
    (
        done.parent / "store" / "u" / "c" / "0.abc.partial"
    ).touch()  # what zarr leaves of a chunk half written
    finish(start(tmp_path / "adr.zarr", "--workers", "1"))
    assert (tmp_path / "adr.zarr" / shard).stat().st_mtime_ns == written
    assert contents(tmp_path / "adr.zarr") == contents(store)
    assert os.listdir(tmp_path) == ["adr.zarr"]


def test_the_store_is_what_the_family_draws(store):
    dataset = xr.open_zarr(store, consolidated=False)
    assert dict(dataset.sizes) == {"operator": 40, "example": 2, "x": 101}
    assert {
        name: str(dataset[name].dtype) for name in ("v", "u", "delta", "nu", "k", "redrawn")
    } == {
        "v": "float32",
        "u": "float32",
        "delta": "float64",
        "nu": "float64",
        "k": "float64",
        "redrawn": "int64",
    }
    np.testing.assert_allclose(dataset.x, np.linspace(0, 1, 101), atol=1e-15)
    for i in (0, 17, 39):
        generator = generator_for("train", 0, i)
        O = FAMILY.sample_operator(generator)
        pairs = FAMILY.sample_pairs(O, 2, generator)
        np.testing.assert_allclose(dataset.u[i], pairs.u, rtol=0, atol=1e-5)
        np.testing.assert_allclose(dataset.delta[i], O.delta[::4], rtol=0, atol=1e-8)
        assert float(dataset.k[i]) == O.k
    assert int(dataset.redrawn.min()) >= 0


def test_the_store_says_what_it_is(store):
    attributes = xr.open_zarr(store, consolidated=False).attrs
    expected = {
        "family": "AdvectionDiffusionReaction",
        "k_max": 0.1,
        "length_scale": 0.2,
        "t": 1.0,
        "split": "train",
        "seed": 0,
    }
    assert expected.items() <= attributes.items()
    assert {"transduce_version", "torch_version", "numpy_version"} <= attributes.keys()
    assert str(store.parent).encode() not in b"".join(contents(store).values())


def test_the_store_is_a_family(store):
    task = StoredFamily(store).sample_task(1, 1, generator_for("train", 0))
    assert task.examples.x is None
    assert task.queries.u.shape == (1, 101)


def test_a_time_of_its_own_for_each_operator(tmp_path):
    generate(AdvectionDiffusionReaction(t=(0.3, 1.0)), tmp_path / "a.zarr", 2, 1, workers=1)
    times = xr.open_zarr(tmp_path / "a.zarr", consolidated=False).t
    assert 0.3 < times.min() < times.max() < 1.0


def test_redrawn_solutions_are_counted_for_each_operator(tmp_path):
    family = AdvectionDiffusionReaction(k_max=1.0)
    generate(family, tmp_path / "a.zarr", 3, 20, workers=1)
    drawn = [AdvectionDiffusionReaction(k_max=1.0) for _ in range(3)]
    for i, fresh in enumerate(drawn):
        generator = generator_for("train", 0, i)
        fresh.sample_pairs(fresh.sample_operator(generator), 20, generator)
    assert xr.open_zarr(tmp_path / "a.zarr", consolidated=False).redrawn.values.tolist() == [
        fresh.redrawn for fresh in drawn
    ]
    assert sum(fresh.redrawn for fresh in drawn) > 0
    assert family.redrawn == 0


@pytest.mark.parametrize("operators", [1, 40, 64, 65, 500, 10**5])
def test_blocks_cover_the_operators_once(operators):
    request = Request(FAMILY, operators, 1, 0, "train")
    blocks = request.blocks
    assert [i for block in blocks for i in request.members(block)] == list(range(operators))
    assert len(blocks) <= max(64, operators // 64 + 1)


def test_splits_and_seeds_draw_other_operators(tmp_path):
    for name, options in {"a": {}, "b": {"split": "test"}, "c": {"seed": 1}}.items():
        generate(FAMILY, tmp_path / f"{name}.zarr", 1, 1, workers=1, **options)
    k = {float(xr.open_zarr(tmp_path / f"{name}.zarr", consolidated=False).k[0]) for name in "abc"}
    assert len(k) == 3


def test_threads_are_given_back(tmp_path):
    before = torch.get_num_threads()
    generate(FAMILY, tmp_path / "a.zarr", 1, 1, workers=1)
    assert torch.get_num_threads() == before


def test_a_cluster_by_its_address(tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        generate(FAMILY, tmp_path / "a.zarr", 2, 1, scheduler=cluster.scheduler_address)
    generate(FAMILY, tmp_path / "b.zarr", 2, 1, workers=1)
    assert contents(tmp_path / "a.zarr") == contents(tmp_path / "b.zarr")


def test_no_cluster_at_the_address(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(TransduceError, match="no dask scheduler answers at 'nowhere://a'"):
        generate(FAMILY, tmp_path / "a.zarr", 2, 1, scheduler="nowhere://a")


def test_without_dask_it_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(TransduceError, match=r"pip install 'transduce\[train\]'"):
        generate(FAMILY, tmp_path / "a.zarr", 2, 1, workers=2)
    generate(FAMILY, tmp_path / "a.zarr", 2, 1, workers=1)


def test_an_unfinished_store_of_another_request(tmp_path):
    unfinished = tmp_path / "a.zarr.partial"
    (unfinished / "store").mkdir(parents=True)
    (unfinished / "request.json").write_text(
        json.dumps({**Request(FAMILY, 1, 1, 0, "train").record(), "seed": 7})
    )
    with pytest.raises(
        TransduceError, match=r"something else \(seed 7 there and 0 here\).*force=True"
    ):
        generate(FAMILY, tmp_path / "a.zarr", 1, 1, workers=1)
    generate(FAMILY, tmp_path / "a.zarr", 1, 1, workers=1, force=True)
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_options_are_given_by_name(tmp_path):
    with pytest.raises(TypeError, match="positional arguments"):
        generate(FAMILY, tmp_path / "a.zarr", 1, 1, 0, "train")


def test_nothing_is_overwritten_without_force(tmp_path):
    generate(FAMILY, tmp_path / "a.zarr", 1, 1, workers=1)
    with pytest.raises(TransduceError, match="exists already"):
        generate(FAMILY, tmp_path / "a.zarr", 1, 2, workers=1)
    assert StoredFamily(tmp_path / "a.zarr").v.shape[1] == 1
    generate(FAMILY, tmp_path / "a.zarr", 1, 2, workers=1, force=True)
    assert StoredFamily(tmp_path / "a.zarr").v.shape[1] == 2


def test_bad_requests(tmp_path):
    for arguments, message in {
        ("a.zarr", 0, 1, "train"): "0 operators of 1 examples",
        ("a.zarr", 1, 1, "exam"): "split='exam'; expected one of train, validation, test",
        ("a.npz", 1, 1, "train"): "expected one of .zarr",
        ("missing/a.zarr", 1, 1, "train"): "missing is not a folder",
    }.items():
        name, operators, examples, split = arguments
        with pytest.raises(TransduceError, match=message):
            generate(FAMILY, tmp_path / name, operators, examples, split=split)
    assert os.listdir(tmp_path) == []
