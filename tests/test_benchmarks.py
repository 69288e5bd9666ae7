"""The benchmark's smoke test: one command, every line, rows on disk."""

import json
import subprocess
import sys
from pathlib import Path


def test_one_command_times_everything(tmp_path):
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks.speed", "--quick", "--out", str(tmp_path)]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    result = json.loads((tmp_path / "speed.json").read_text())
    assert {"command", "seed", "versions", "machine"} <= set(result)
    whats = [row["what"] for row in result["rows"]]
    for expected in ("regression, n = 50", "once conditioned", "training step", "regression, n = 10", "one example less"):
        assert any(expected in what for what in whats) and expected in run.stdout
    assert {row["model"] for row in result["rows"]} == {"adr", "adr-softmax"}
    assert any("FNO" in row["beside"] for row in result["rows"])
    assert all(row["ours"] > 0 for row in result["rows"])
    assert any(row["asked"] == "<= 3" and row["ratio"] > 0.5 for row in result["rows"])
