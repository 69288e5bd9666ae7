"""The figure of benchmarks/rollouts.py: truth, rollout, error and band, and errors by step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transduce.figures import COLOURS, drawing
from transduce.report import Row

TITLES = {"st_kdv_cos": "Korteweg-de Vries", "st_ks_pdefind": "Kuramoto-Sivashinsky"}
REGRESSORS = ("ours", "identity", "dynamic modes", "window")
LEAST, MOST = 1e-17, 1e3  # of errors that are drawn
PARTS = ("truth", "rollout", "log10 |error|", "log10 half band")


class Shown:
    """One rollout.

    Args:
        name: of the set.
        x: positions.
        truth, made, low, high: states by step, (steps, points).
    """

    def __init__(
        self,
        name: str,
        x: np.ndarray,
        truth: np.ndarray,
        made: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
    ):
        self.name, self.x, self.truth, self.made = name, x, truth, made
        self.error, self.half = np.abs(made - truth), (high - low) / 2


def draw(rows: Sequence[Row], shown: Sequence[Shown], path: Path) -> None:
    """One line of panels for each rollout: four maps and the errors of all regressors."""
    with drawing(path, (13.5, 2.9 * len(shown))) as figure:
        axes = figure.subplots(len(shown), len(PARTS) + 1, squeeze=False)
        for line, each in zip(axes, shown, strict=True):
            _maps(figure, line[:-1], each)
            _errors(line[-1], [row for row in rows if row["set"] == each.name])
        for panel, title in zip(axes[0], (*PARTS, "error by step"), strict=True):
            panel.set_title(title)


def _maps(figure: Figure, axes: Sequence[Axes], each: Shown) -> None:
    """Truth, rollout, error and band over x and steps."""
    small = [np.log10(np.maximum(f, 1e-12)) for f in (each.error, each.half)]
    steps = np.arange(1, len(each.truth) + 1)
    size = float(np.abs(each.truth).max())
    ends: dict[str, Any] = {"vmin": min(f.min() for f in small), "vmax": max(map(np.max, small))}
    for k, (panel, f) in enumerate(zip(axes, (each.truth, each.made, *small), strict=True)):
        limits = {"vmin": -size, "vmax": size, "cmap": "RdBu_r"} if k < 2 else ends
        drawn = panel.pcolormesh(each.x, steps, f, rasterized=True, **limits)
        panel.set(xlabel="x", ylabel="step" if k == 0 else "")
        if k in (1, 3):
            figure.colorbar(drawn, ax=panel)
    axes[0].annotate(
        TITLES.get(each.name, each.name), (-0.45, 0.5), xycoords="axes fraction", rotation=90,
        ha="center", va="center",
    )  # fmt: skip


def _errors(axes: Axes, rows: Sequence[Row]) -> None:
    """Errors of all regressors by step, at the largest stride."""
    stride = max(row["stride"] for row in rows)
    found = {row["regressor"]: row["by step"] for row in rows if row["stride"] == stride}
    for name, colour in zip(REGRESSORS, COLOURS, strict=False):
        errors = np.clip(found[name], LEAST, MOST)
        steps = np.arange(1, len(errors) + 1)
        axes.plot(steps, errors, color=colour, label=name)
    axes.set(yscale="log", xlabel="step")
    axes.legend(fontsize=8, loc="center right")
