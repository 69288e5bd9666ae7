"""Queries, answers with a band over the truth, and errors, from arrays in the user's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .style import DASHED, VERMILION, drawing, looks

FAINT = {"color": "0.86", "linewidth": 0.5, "rasterized": True}


def answers_with_band(
    examples: tuple[np.ndarray, np.ndarray],
    queries: tuple[np.ndarray, np.ndarray],
    predicted: tuple[np.ndarray, np.ndarray, np.ndarray],
    path: Any,
    *,
    x: tuple[np.ndarray, np.ndarray],
    titles: Sequence[str],
    labels: tuple[str, str] = ("v", "u"),
    x_label: str = "x",
    level: float = 0.9,
    others: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Draw queries, their answers with a band over the truth, and below these the errors, where the
    band should hold zero.

    Args:
        examples: v and u, shape (n, points), drawn as thin lines.
        queries: v and u, shape (m, points).
        predicted: mean, low and high at the queries.
        path: of the figure.
        x: positions of the points of v and of u.
        titles: one for each query.
        labels: of the axes of v and of u.
        x_label: of the axes of x.
        level: share of the values that the band is meant to hold.
        others: answers of baselines at the queries, whose errors are drawn.
    """
    count = len(titles)
    with drawing(path, (2.1 * count + 0.6, 5.8)) as figure:
        panels = figure.subplots(3, count, sharey="row", squeeze=False, height_ratios=(1, 1, 0.8))
        for k, (above, middle, below) in enumerate(panels.T):
            above.plot(x[0], examples[0].T, **FAINT)
            above.plot(x[0], queries[0][k], color="black", linewidth=1.6)
            above.set_title(titles[k])
            middle.plot(x[1], examples[1].T, **FAINT)
            for axes, zero in ((middle, 0 * queries[1][k]), (below, queries[1][k])):
                axes.plot(x[1], queries[1][k] - zero, color="black", linewidth=3.4, alpha=0.4)
                _answer(axes, x[1], *(part[k] - zero for part in predicted))
            for name, look in looks(list(others or {})).items():
                wrong = (others or {})[name][k] - queries[1][k]
                below.plot(x[1], wrong, color=look.colour, linewidth=1.2)
            above.tick_params(labelbottom=x[0] is not x[1])
            middle.tick_params(labelbottom=False)
            below.set_xlabel(x_label)
        for axes, label in zip(panels[:, 0], (*labels, "error"), strict=True):
            axes.set_ylabel(label)
        figure.align_ylabels(panels[:, 0])
        handles = _legend(len(examples[0]), level, list(others or {}))
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _answer(axes: Axes, x: np.ndarray, mean: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    axes.fill_between(x, low, high, color=VERMILION, alpha=0.25, linewidth=0)
    axes.plot(x, mean, color=VERMILION, linewidth=1.7, linestyle=DASHED, zorder=3)


def _legend(n: int, level: float, others: list[str]) -> list[Any]:
    """What each kind of line is."""
    styles = looks(others)
    return [
        Line2D([], [], color="0.7", linewidth=0.8, label=f"{n} examples"),
        Line2D([], [], color="black", linewidth=3.4, alpha=0.4, label="truth"),
        Line2D([], [], color=VERMILION, linewidth=1.7, linestyle=DASHED, label="prediction"),
        Patch(color=VERMILION, alpha=0.25, linewidth=0, label=f"{100 * level:g} % band"),
        *(
            Line2D([], [], color=look.colour, linewidth=1.2, label=look.label)
            for look in styles.values()
        ),
    ]
