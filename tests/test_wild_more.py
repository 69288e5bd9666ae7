"""benchmarks/wild_self_knowledge.py, wild_ablations.py and general_adr.py in small: scores,
variants of the model, and one run of each command."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from regression_samples import operator, small_general, smooth

from benchmarks import wild_ablations as ablations
from benchmarks import wild_self_knowledge as knowledge
from benchmarks.general_adr import NestedTasks, table, verdicts
from benchmarks.wild_sets import PairSet
from transduce import Transducer
from transduce.evaluation import draw_tasks
from transduce.families import AdvectionDiffusionReaction
from transduce.kernels.catalogue import BASELINES
from transduce.kernels.general import CURVES
from transduce.random_fields import generator_for
from transduce.types import TransduceError

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path):
    """Two sets of 34 and 104 rows; the first was measured."""
    found = tmp_path / "sets"
    found.mkdir()
    for name, n in (("few", 34), ("many", 104)):
        v = smooth(n)
        np.savez(found / f"{name}.npz", v=v, u=operator(v))
    (found / "measured.txt").write_text("few\n")
    return found


def run(name, tmp_path, *options):
    places = ["--quick", "--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    return subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *map(str, options), *places],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def written(done, path):
    """What a command wrote, and its rows."""
    assert done.returncode == 0, done.stderr
    result = json.loads(path.read_text())
    assert {"command", "seed", "versions", "machine"} <= result.keys()
    assert path.with_suffix(".md").read_text().startswith(("|", "`"))
    return result, result["rows"]


def test_the_interval_score_adds_twenty_times_the_distance_of_values_outside():
    u, low, high = np.array([0.0, 1.0, 3.0]), np.array([-1.0, 2.0, 0.0]), np.array([1.0, 3.0, 2.5])
    assert np.isclose(knowledge.interval_score(u, low, high), (2 + (1 + 20) + (2.5 + 10)) / 3)


def test_the_best_constant_band_holds_as_many_values_as_asked():
    distances = np.random.default_rng(0).random((7, 9))
    for inside in (1, 20, 63):
        assert (distances <= knowledge.half_width(distances, inside)).sum() == inside
    assert knowledge.half_width(distances, 0) == 0


def test_reported_errors_below_the_floor_count_as_true():
    part = {"inside": 9, "values": 10, "score": 1.0, "constant": 2.0}
    rows = [part | {"reported": 1e-16, "true": 1e-11}, part | {"reported": 0.4, "true": 0.1}]
    found = knowledge.combined(rows)
    assert np.isclose(found["error_ratio"], 2) and found["score_ratio"] == 0.5
    assert found["coverage"] == 0.9


def test_the_summary_says_what_is_missed():
    def row(coverage, **others):
        known = {"inside": 100 * coverage, "values": 100, "score_ratio": 0.9, "error_ratio": 1.0}
        return {"n": 20, "coverage": coverage, "failure": None} | known | others

    (line,) = knowledge.summary([row(0.9)] * 10)
    assert line["missed"] == "none" and line[knowledge.COVERAGE] == pytest.approx(0.9)
    (line,) = knowledge.summary([row(0.9)] * 7 + [{"n": 20, "failure": "no memory left"}] * 3)
    assert line["missed"] == f"{knowledge.COVERED}, {knowledge.SHARPER}" and line["failed"] == 3
    (line,) = knowledge.summary([row(0.9, error_ratio=2.0)] * 3)
    assert line["missed"] == knowledge.HONEST
    assert knowledge.with_required([line])[-1][knowledge.HONEST] == "0.8 to 1.25"


def test_in_a_wrong_context_no_example_keeps_its_u():
    u = np.arange(30.0)[:, None]
    pairs = PairSet("a", u, u, None, None, False, "")
    examples = np.array([3, 8, 1, 20, 5])
    wrong = ablations.shuffled(pairs, examples, 0).u
    assert not (wrong[examples] == u[examples]).any()
    assert set(wrong[examples].ravel()) == set(u[examples].ravel())
    held = np.setdiff1d(np.arange(30), examples)
    assert np.array_equal(wrong[held], u[held]) and np.array_equal(pairs.u.ravel(), np.arange(30))


@pytest.fixture
def variants(tmp_path):
    """The variants of a small model of random weights, as they are read from their files."""
    T = small_general()
    with torch.no_grad():
        for parameter in T.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, dtype=parameter.dtype)
    T.save_pretrained(tmp_path / "small.safetensors")
    paths = ablations.saved_variants(str(tmp_path / "small.safetensors"), tmp_path / "variants")
    again = ablations.saved_variants(str(tmp_path / "small.safetensors"), tmp_path / "variants")
    assert paths == again and len(set(paths.values())) == len(paths)
    return {name: Transducer.from_pretrained(path) for name, path in paths.items()}


def test_variants_lack_what_they_are_named_after(variants):
    names = {name: set(ablations.stack_of(T).names) for name, T in variants.items()}
    missing = {name: names["complete"] - own for name, own in names.items()}
    assert missing["without corrections"] == set(CURVES.corrected)
    assert missing["without the read-out"] == {"readout", "readout, then rbf"}
    left_out = missing["without the baselines"]
    assert left_out >= set(BASELINES) - {"mean"} and "mean" in names["without the baselines"]
    assert left_out - set(BASELINES) == {
        name for name, (base, _) in CURVES.corrected.items() if base in BASELINES
    }
    trust = ablations.stack_of(variants["without the learned trust"]).trust
    silent = (*trust.out.parameters(), *trust.error.parameters(), trust.preference)
    assert not any(parameter.any() for parameter in silent)


def test_without_the_summary_z_is_zero_and_without_caution_all_queries_have_the_same_weights(
    variants,
):
    pairs = torch.randn(1, 3, 80, 9)
    summarise = [
        ablations.stack_of(variants[name]).readout.network.summarise
        for name in ("complete", "without the summary")
    ]
    assert [bool(part(pairs, torch.ones(1, 3)).any()) for part in summarise] == [True, False]
    residuals = torch.randn(1, 4, 6, 5, dtype=torch.float64)
    cautions = [
        ablations.stack_of(variants[name]).trust(residuals, torch.ones(1, 6), range(4)).caution
        for name in ("complete", "without caution")
    ]
    assert (cautions[0] > 0.01).all() and (cautions[1] < 1e-40).all()


def test_other_models_have_no_variants():
    with pytest.raises(TransduceError, match="not a general one"):
        ablations.stack_of(Transducer.from_pretrained("adr"))


def test_tasks_are_those_of_evaluate_with_the_first_of_their_examples():
    nested, expected = NestedTasks(6, 2), AdvectionDiffusionReaction()
    drawn = list(draw_tasks(expected, 6, 3, 2, generator_for("test", 0)))
    for n in (6, 2):
        found = list(nested.tasks(n, 3, 2, generator_for("test", 0)))
        for (number, seed, task), (_, other, whole) in zip(found, drawn, strict=True):
            assert seed == other and len(task.examples) == n and number < 2
            assert torch.equal(task.examples.u, whole.examples.u[:n])
            assert torch.equal(task.queries.u, whole.queries.u)


def test_requirements_on_adr():
    means = {"general": 0.02, "kernel-ridge": 0.04, "adr": 0.001}
    rows = [{"regressor": name, "n": 50, "mean": mean} for name, mean in means.items()]
    (line,) = lines = table(rows)
    assert line["general / kernel ridge"] == 0.5 and line["general / adr"] == pytest.approx(20)
    assert all(verdicts(lines).values()) and len(verdicts(lines)) == 2
    assert not any(verdicts([line | {"general / kernel ridge": 2, "general / adr": 31}]).values())
    assert len(verdicts([line | {"n": 10}])) == 1


@pytest.mark.slow
def test_self_knowledge_is_measured_once(folder, tmp_path):
    done = run("wild_self_knowledge", tmp_path, folder)
    result, rows = written(done, tmp_path / "out" / "self_knowledge.json")
    assert [(row["set"], row["n"], row["splits"]) for row in rows] == [
        ("few", 20, 10),
        ("many", 20, 1),
    ]
    assert all(row["failure"] is None and 0 < row["coverage"] <= 1 for row in rows)
    assert "| required |" in done.stdout and result["summary"][0]["sets"] == 2
    again = run("wild_self_knowledge", tmp_path, folder)
    assert again.stderr == "" and again.stdout == done.stdout


@pytest.mark.slow
def test_every_variant_is_measured_once(folder, tmp_path):
    done = run("wild_ablations", tmp_path, folder)
    result, rows = written(done, tmp_path / "out" / "ablations.json")
    own = [row for row in rows if row["regressor"].startswith(("complete", "without", "wrong"))]
    assert len(own) == 2 * 8 and all(row["failure"] is None and row["splits"] == 1 for row in own)
    assert result["wrong context is worse"] and "| wrong context | 10 |" in done.stdout
    again = run("wild_ablations", tmp_path, folder)
    assert again.stderr == "" and again.stdout == done.stdout


@pytest.mark.slow
def test_the_general_model_on_adr_is_measured_once(tmp_path):
    options = ["--operators", 2, "--only", "5,50"]
    done = run("general_adr", tmp_path, *options)
    _, rows = written(done, tmp_path / "out" / "adr.json")
    names = ("general", "kernel-ridge", "adr")
    assert [(row["regressor"], row["n"]) for row in rows] == [
        (k, n) for k in names for n in (5, 50)
    ]
    assert all(row["operators"] == 2 and row["functions"] == 100 for row in rows)
    assert "general <= kernel ridge at every n" in done.stdout
    again = run("general_adr", tmp_path, *options)
    assert again.stderr == "" and again.stdout == done.stdout
    wrong = run("general_adr", tmp_path, "--only", "7")
    assert wrong.returncode == 1 and wrong.stderr.startswith("error: --only names 7; expected")
