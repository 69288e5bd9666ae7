"""The published test functions, smoke tests of their benchmarks, and what committed rows say."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.studies import PROCESS, SPLITS, ratios
from benchmarks.study_functions import ANGLES, STUDIES
from benchmarks.suggestions import HORIZONS, REQUIRED, SUGGEST, VARIANCE, runs_needed, table

ROOT = Path(__file__).parents[1]


def test_functions_have_known_values():
    """Limits and conserved quantities that their sources state."""
    (arctangent,) = STUDIES["arctangent"].run(np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(arctangent, np.pi / 4 * np.cos(np.linspace(0, 2 * np.pi, 100)))
    (campbell,) = STUDIES["campbell"].run(np.array([[0.0, 1.0, 2.0, 3.0]]))
    np.testing.assert_allclose(campbell, 10 + 1 + 3)
    (line,) = STUDIES["campbell-line"].run(np.array([[1.0, 0, 2, 0, 0.5, 0, 0, 0]]))
    np.testing.assert_allclose(line, np.exp(-(ANGLES**2) / 60))
    velocity, field = STUDIES["hartmann"].run(np.array([[0.1, 1, 1, 1, 1e-3]]))[0]
    np.testing.assert_allclose(velocity, (1 - np.linspace(-1, 1, 100) ** 2) / 0.2, atol=1e-5)
    assert np.abs(field).max() < 1e-2
    prey, predators = STUDIES["lotka-volterra"].run(np.array([[1, 0.1, 0.075, 1.5, 10, 5]]))[0]
    first = 0.075 * prey - 1.5 * np.log(prey) + 0.1 * predators - np.log(predators)
    np.testing.assert_allclose(first, first[0], rtol=1e-6)


@pytest.mark.parametrize("name", ["studies", "suggestions"])
def test_one_command_measures_and_resumes(name, tmp_path):
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--only", "arctangent"]
    command += ["--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    for _ in range(2):
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        (path,) = (tmp_path / "out").glob("*.json")
        assert {"command", "seed", "versions", "machine", "required"} <= set(
            json.loads(path.read_text())
        )
        kept = (tmp_path / "work" / "measured.jsonl").read_text()
    assert kept.count("\n") == (2 if name == "studies" else 3)  # nothing was measured twice


def test_runs_needed_are_interpolated():
    assert runs_needed([10, 20, 30], [1.0, 0.1, 0.01], 0.1) == 20
    assert runs_needed([10, 20, 30], [1.0, 0.1, 0.01], 10**-1.5) == pytest.approx(25)
    assert runs_needed([10, 20], [1.0, 0.1], 0.05) == np.inf


def committed(name):
    return json.loads((ROOT / "results" / "studies" / f"{name}.json").read_text())["rows"]


@pytest.mark.results
def test_studies_are_as_accurate_as_required():
    rows = committed("accuracy")
    found = ratios(rows)
    assert len(found) == len(STUDIES) * len(SPLITS) and any(r["regressor"] == PROCESS for r in rows)
    logs = {name: np.log([found[name, n] for n in SPLITS]).mean() for name in STUDIES}
    assert np.mean(list(logs.values())) <= np.log(0.9)
    assert max(logs.values()) <= np.log(1.15)


@pytest.mark.results
def test_suggestions_need_fewer_runs_than_random_choice_and_the_largest_variance():
    *studies, median = table(committed("suggestions"))
    assert len(studies) == len(STUDIES)
    for n in HORIZONS:
        assert median[f"{SUGGEST} / {n}"] < 0.85 < median[f"{VARIANCE} / {n}"]
    assert median[f"{SUGGEST} / {HORIZONS[-1]}"] <= REQUIRED
