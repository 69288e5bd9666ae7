"""The example of docs/own_family.md: its solver is right, the page shows it as it is, and it runs
from nothing to errors and figures."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "examples" / "kuramoto_sivashinsky.py"


@pytest.fixture(scope="module")
def ks():
    spec = importlib.util.spec_from_file_location("kuramoto_sivashinsky", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_the_example(ks):
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own_family.md").read_text(), re.S)
    parts = [
        part
        for block in shown
        for part in re.findall(r"^(?:@dataclass|def ).*?(?=\n\n\n|\Z)", block, re.S | re.M)
    ]
    assert len(parts) == 4
    for part in parts:
        assert part.strip() in SCRIPT.read_text()


def test_the_solver_agrees_with_differences_in_x(ks):
    """Differences of second order on two grids, extrapolated, and another way of stepping."""
    L, nu, t = 20.0, 0.9, 1.0

    def wave(n):
        return np.sin(2 * np.pi * np.arange(n) / n) + 0.5 * np.cos(6 * np.pi * np.arange(n) / n)

    def by_differences(n):
        h = L / n

        def second(s):
            return (np.roll(s, -1) - 2 * s + np.roll(s, 1)) / h**2

        def slope(_, s):
            return (
                (np.roll(s**2, 1) - np.roll(s**2, -1)) / (4 * h)
                - second(s)
                - nu * second(second(s))
            )

        return solve_ivp(slope, (0, t), wave(n), method="LSODA", rtol=1e-9, atol=1e-10).y[:, -1][
            :: n // 64
        ]

    coarse, fine = by_differences(128), by_differences(256)
    ours = ks.solve(torch.from_numpy(wave(64))[None], L, nu, t)[0].numpy()
    assert np.abs(ours - (4 * fine - coarse) / 3).max() < 2e-3
    assert np.abs(ours - wave(64)).max() > 0.3


def test_it_runs_from_nothing_to_errors_and_figures(ks, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["kuramoto_sivashinsky.py"])
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(ks, "SIZES", [5])
    out, results = tmp_path / "runs", tmp_path / "results"
    ks.main(out, operators=4, steps=2, unseen=1, results=results)
    rows = json.loads((results / "kuramoto_sivashinsky.json").read_text())["rows"]
    assert {row["regressor"] for row in rows} == {
        "ks",
        "kernel-ridge",
        "identity",
        "local-kernel-ridge",
    }
    assert {path.name for path in out.iterdir()} >= {
        "tasks.zarr",
        "checkpoint.pt",
        "ks.safetensors",
    }
    assert len(list(results.glob("*.png"))) == 2
