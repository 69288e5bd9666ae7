"""benchmarks/wild.py on small folders: its metric, one run from files to figure, resuming, and
errors for files that cannot be read."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import wild_measuring
from benchmarks.wild_measuring import FIVE, Plan, applies, check_names, measure, measure_all
from benchmarks.wild_sets import (
    FAILED,
    PairSet,
    geometric_mean,
    load_set,
    load_sets,
    number_of_splits,
    ratio,
    relative_error,
    split,
)
from benchmarks.wild_tables import compared, per_set, summary, tables, with_ratios
from transduce.baselines import baseline
from transduce.types import ExampleSet, TransduceError

ROOT = Path(__file__).parents[1]


def pairs_of(name="set", n=40, points=16, measured=False, seed=0):
    """Pairs of a linear operator with a little noise."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(n, points)).cumsum(1)
    u = np.roll(v, 1, 1) / 2 + 0.01 * rng.normal(size=v.shape)
    return PairSet(name, v, u, None, None, measured, f"{name}{n}{seed}")


@pytest.fixture
def folder(tmp_path):
    """Three sets: equal points, unequal points, two channels; the first was measured."""
    found = tmp_path / "sets"
    found.mkdir()
    first, second = pairs_of(), pairs_of(points=21, seed=1)
    np.savez(found / "alike.npz", v=first.v, u=first.u, x=np.linspace(0, 1, 16))
    np.savez(found / "coarse.npz", v=second.v, u=second.u[:, ::2], xv=np.arange(21))
    np.savez(found / "two_channels.npz", v=np.stack([first.v, first.u], 1), u=first.u[:, None])
    (found / "measured.txt").write_text("alike\n")
    return found


def command(folder, tmp_path, *options):
    places = ["--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    return [sys.executable, "-m", "benchmarks.wild", str(folder), *places, *options]


def run(folder, tmp_path, *options):
    return subprocess.run(
        command(folder, tmp_path, *options), cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_error_is_relative_to_the_mean_of_the_examples():
    rng = np.random.default_rng(0)
    u, examples = rng.normal(size=(7, 5)), rng.normal(size=(4, 5))
    assert np.isclose(relative_error(np.tile(examples.mean(0), (7, 1)), u, examples), 1)
    assert relative_error(u, u, examples) == 0
    expected = ((u + 0.1 - u) ** 2).sum() / ((u - examples.mean(0)) ** 2).sum()
    assert np.isclose(relative_error((u + 0.1).ravel(), u, examples), expected)


def test_splits_are_permutations_with_the_split_as_seed():
    order = np.random.default_rng(2).permutation(500)
    examples, held = split(500, 20, 2)
    assert np.array_equal(examples, order[:20]) and np.array_equal(held, order[20:220])
    assert len(split(35, 20, 0)[1]) == 15
    assert [number_of_splits(rows, 3) for rows in (99, 100)] == [10, 3]
    assert number_of_splits(50, 12) == 12


def test_ratios_treat_small_errors_as_equal_and_failures_as_99():
    assert ratio(2e-7, 1e-12, 1e-6) == 1 and np.isclose(ratio(2e-7, 1e-12, 1e-10), 2000)
    assert ratio(None, 0.1, 1e-6) == ratio(float("nan"), 0.1, 1e-6) == FAILED == 99
    assert np.isclose(geometric_mean([0.0, 1.0]), 1e-7)


def test_a_measurement_is_the_geometric_mean_over_splits():
    pairs, errors = pairs_of(n=120), []
    for number in range(3):
        i = np.random.default_rng(number).permutation(120)
        O = baseline("rbf").regress(ExampleSet(pairs.v[i[:10]], pairs.u[i[:10]]))
        unit = np.square(pairs.u[i[10:]] - pairs.u[i[:10]].mean(0)).sum()
        errors.append(np.square(O(pairs.v[i[10:]]) - pairs.u[i[10:]]).sum() / unit)
    found = measure("rbf", pairs, 10, 3)
    assert np.allclose(found["errors"], errors) and found["failure"] is None
    assert np.isclose(found["error"], np.prod(errors) ** (1 / 3))


def test_the_best_is_of_the_five_alone():
    def row(name, error):
        return {"set": "a", "kind": "solver", "n": 5, "regressor": name, "error": error}

    errors = {"mean": 1.0, "linear": 0.2, "rbf": 0.4, "gaussian-process": 0.1, "general": 0.3}
    rows = with_ratios([row(*pair) for pair in errors.items()])
    assert {found["best"] for found in rows} == {"linear"}
    assert np.isclose(rows[-1]["ratio"], 1.5) and np.isclose(rows[3]["floored"], 0.5)
    (line,) = summary(rows, "general")
    assert (line["worst set"], line["within 1.1"], line["measured"]) == ("a", "0%", None)
    assert per_set(rows, "general", 5)[0]["which"] == "linear"
    assert compared(rows, ["gaussian-process"])[0]["solvers"] == pytest.approx(0.5)


def test_baselines_are_measured_where_they_apply():
    alike, coarse = pairs_of(n=120), pairs_of()
    coarse = PairSet("coarse", coarse.v, coarse.u[:, ::2], None, None, False, "")
    two = PairSet("two", alike.v[:, None], alike.u[:, None], None, None, False, "")
    for name in ("identity", "piecewise-direct-standardisation"):
        assert applies(name, alike, 5) and not applies(name, coarse, 5)
    assert applies("window", coarse, 5) and not applies("window", two, 5)
    assert applies("fno", alike, 50) and not applies("fno", alike, 20)
    assert not applies("fno", coarse, 50) and not applies("fno", two, 50)
    plan = Plan((5,), 1, ("rbf",), ("partial-least-squares", "rbf"))
    assert plan.regressors(alike, 5) == [*FIVE, "partial-least-squares"]


def test_a_model_is_called_through_regress_with_known_positions(monkeypatch):
    asked = []

    def regress(v, u, model, x_u=None):
        asked.append((model, len(v), x_u))
        return lambda q: q

    monkeypatch.setattr(wild_measuring.transduce, "regress", regress, raising=False)
    pairs = pairs_of()
    pairs = PairSet("a", pairs.v, pairs.v, None, np.arange(16), False, "")
    assert measure("general", pairs, 5, 1)["error"] == pytest.approx(1e-14)
    assert asked[0][:2] == ("general", 5) and np.array_equal(asked[0][2], np.arange(16))
    check_names(["general"], [])


def test_a_model_that_fails_is_recorded_and_counts_as_99(monkeypatch):
    def regress(v, u, model):
        raise RuntimeError("no memory left\nin line 2")

    monkeypatch.setattr(wild_measuring.transduce, "regress", regress, raising=False)
    found = measure("general", pairs_of(), 5, 1)
    assert found["error"] is None and found["failure"] == "RuntimeError: no memory left"


def test_names_are_checked_before_anything_is_measured():
    with pytest.raises(TransduceError, match="there is no model 'tarot'"):
        check_names(["tarot"], [])
    with pytest.raises(TransduceError, match="there is no baseline 'tarot'"):
        check_names(["rbf"], ["tarot"])


def test_one_command_measures_writes_and_draws(folder, tmp_path):
    options = ["--n", "5,10", "--splits", "1", "--model", "rbf", "--variants", "linear"]
    others = ["--baselines", "partial-least-squares,piecewise-direct-standardisation"]
    done = run(folder, tmp_path, *options, *others)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out" / "accuracy.json").read_text())
    assert {"command", "seed", "versions", "machine", "rows"} <= result.keys()
    rows = result["rows"]
    assert {row["set"]: row["kind"] for row in rows} == {
        "alike": "measured",
        "coarse": "solver",
        "two_channels": "solver",
    }
    assert {row["regressor"] for row in rows if row["set"] == "two_channels"} == {
        "mean",
        "linear",
        "rbf",
        "partial-least-squares",
    }
    assert all(row["splits"] == 10 and row["failure"] is None for row in rows)
    text = (tmp_path / "out" / "accuracy.md").read_text()
    assert text == tables(rows, ["rbf", "linear"], others[1].split(","))
    assert "Each set at n = 10" in text and "| alike | measured |" in text and "Variants" in text
    assert all((tmp_path / "out" / f"accuracy.{kind}").stat().st_size for kind in ("png", "svg"))
    assert "alike" in (tmp_path / "out" / "accuracy.svg").read_text() and "worst set" in done.stdout


def test_a_quick_run_of_the_command_measures_every_baseline(folder, tmp_path):
    done = run(folder, tmp_path, "--quick", "--model", "rbf")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "out" / "accuracy.json").read_text())["rows"]
    assert {row["n"] for row in rows} == {5, 20}
    names = {"gaussian-process", "partial-least-squares", "piecewise-direct-standardisation"}
    assert {row["regressor"] for row in rows} == {*FIVE, *names}
    assert all(row["failure"] is None for row in rows)


def test_a_quick_run_fits_networks_hardly(tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    pairs = pairs_of(n=120, points=33)
    np.savez(folder / "many.npz", v=pairs.v, u=pairs.u[:, ::2])
    found = load_sets(folder)
    plan = Plan((50,), 1, ("mean",), ("fno", "deeponet"), quick=True)
    rows = measure_all(found, plan, tmp_path / "work")
    errors = {row["regressor"]: row["error"] for row in rows}
    assert errors.keys() == {"mean", "linear", "rbf", "window", "fno", "deeponet"}
    assert all(np.isfinite(list(errors.values())))


def test_what_was_measured_is_not_measured_again(folder, tmp_path, monkeypatch):
    plan, measured = Plan((5,), 1, ("rbf",), ()), []
    real = wild_measuring.measure
    monkeypatch.setattr(
        wild_measuring, "measure", lambda *given: measured.append(given) or real(*given)
    )
    first = measure_all(load_sets(folder), plan, tmp_path)
    count = len(measured)
    assert measure_all(load_sets(folder), plan, tmp_path) == first and len(measured) == count
    pairs = pairs_of(seed=5)
    np.savez(folder / "alike.npz", v=pairs.v, u=pairs.u)  # another set of the same name
    assert measure_all(load_sets(folder), plan, tmp_path) != first
    assert {given[1].name for given in measured[count:]} == {"alike"}


def test_killed_with_9_and_started_again_it_resumes(folder, tmp_path):
    options = ["--n", "5,10,20", "--model", "rbf", "--baselines", "partial-least-squares"]
    kept = tmp_path / "work" / "measured.jsonl"
    with subprocess.Popen(
        command(folder, tmp_path, *options), cwd=ROOT, stderr=subprocess.DEVNULL
    ) as started:
        while not kept.exists() or kept.read_bytes().count(b"\n") < 5:
            assert started.poll() is None
            time.sleep(0.005)
        os.kill(started.pid, signal.SIGKILL)
    before = kept.read_bytes()
    kept.write_bytes(before + b'{"key": {"set": "al')  # a line that was being written
    again = run(folder, tmp_path, *options)
    assert again.returncode == 0, again.stderr
    assert kept.read_bytes().startswith(before)
    keys = [json.dumps(json.loads(line)["key"]) for line in _whole_lines(kept)]
    assert len(keys) == len(set(keys)) == again.stderr.count("a split") + before.count(b"\n")
    rows = json.loads((tmp_path / "out" / "accuracy.json").read_text())["rows"]
    whole = run(folder, tmp_path / "other", *options)
    assert whole.returncode == 0, whole.stderr
    other = json.loads((tmp_path / "other" / "out" / "accuracy.json").read_text())["rows"]
    assert [row["error"] for row in rows] == [row["error"] for row in other]


def _whole_lines(path):
    return [line for line in path.read_text().splitlines() if line.endswith("}")]


MALFORMED = {
    "not a npz": (b"hello", "could not be read"),
    "no u": ({"v": np.ones((20, 5))}, "has no array 'u'"),
    "objects": ({"v": np.array([None, "a"]), "u": np.ones((2, 5))}, "could not be read"),
    "words": ({"v": np.full((20, 5), "a"), "u": np.ones((20, 5))}, "dtype <U1; expected real"),
    "one axis": ({"v": np.ones(20), "u": np.ones(20)}, r"shape \(20,\)"),
    "rows": ({"v": np.ones((20, 5)), "u": np.ones((19, 5))}, "20 rows of v and 19 of u"),
    "nan": ({"v": np.ones((20, 5)), "u": np.full((20, 5), np.nan)}, "not finite in 20 of 20 rows"),
    "positions": (
        {"v": np.ones((20, 5)), "u": np.ones((20, 5)), "xv": np.arange(4)},
        r"xv has shape \(4,\) for 5 points",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files_are_refused_by_name(case, tmp_path):
    content, message = MALFORMED[case]
    path = tmp_path / "broken.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, **content)
    with pytest.raises(TransduceError, match=message) as raised:
        load_set(path)
    assert str(raised.value).startswith("broken.npz")


def test_the_command_says_what_is_wrong_without_a_traceback(folder, tmp_path):
    (folder / "zz.npz").write_bytes(b"PK")
    for options, message in (
        (["--model", "rbf"], "zz.npz could not be read"),
        (["--model", "tarot"], "there is no model 'tarot'"),
        (["--model", "rbf", "--only", "alike", "--n", "39"], "too few for n = 39"),
    ):
        done = run(folder, tmp_path, *options)
        assert done.returncode == 1 and done.stderr.startswith("error: ")
        assert message in done.stderr and "Traceback" not in done.stderr


def test_positions_and_kinds_are_read(folder):
    alike, coarse, two = load_sets(folder)
    assert (alike.kind, coarse.kind, two.kind) == ("measured", "solver", "solver")
    assert len(alike.x_v) == len(alike.x_u) == 16
    assert len(coarse.x_v) == 21 and coarse.x_u is None and two.x_v is None
    assert [pairs.name for pairs in load_sets(folder, ["coarse", "two"])] == [
        "coarse",
        "two_channels",
    ]


def test_the_default_folder_is_that_of_the_data(folder, tmp_path, monkeypatch):
    folder.rename(tmp_path / "wild")
    monkeypatch.setenv("TRANSDUCE_DATA", str(tmp_path))
    assert len(load_sets(None)) == 3
    monkeypatch.setattr("benchmarks.wild_sets.data_folders", lambda: [tmp_path / "empty"])
    with pytest.raises(TransduceError, match="set TRANSDUCE_DATA"):
        load_sets(None)
