"""Errors against the number of examples, from rows.

A row's mean, low and high are the mean error and its 95 % interval. Rows whose error is None or not
finite are left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from ..report import Row
from .labels import End, label_ends
from .style import Look, Number, drawing, log_errors, looks, sized_ticks

SHADE: dict[str, Any] = {"color": "0.93", "zorder": -1, "linewidth": 0}


def error_against_n(
    rows: Sequence[Row], path: Any, trained_range: tuple[int, int] | None = None
) -> None:
    """Draw the mean error of each regressor against the number of examples, the n of meta-training
    shaded (figure 2, left).

    rows: {regressor, n, mean, low, high}.
    """
    with drawing(path, (4.9, 4.2)) as figure:
        axes = figure.add_subplot()
        log_errors(axes)
        sizes = [row["n"] for row in rows]
        sized_ticks(axes, sizes)
        axes.set(xlabel="examples n", xlim=(min(sizes) / 1.25, 1.25 * max(sizes)))
        if trained_range:
            axes.axvspan(*trained_range, **SHADE)
            axes.annotate(
                "n as trained", (0, 0), (5, 5), "axes fraction", "offset points", color="0.45"
            )
        styles = looks([row["regressor"] for row in rows])
        label_ends(
            axes,
            [
                end
                for name, own in by_regressor(rows).items()
                for end in line(axes, own, "n", styles[name])
            ],
        )


def line(
    axes: Axes, rows: Sequence[Row], x: str, look: Look, label: str | None = None
) -> list[End]:
    """Draw the means of the rows over their 95 % interval; where the line ends, for
    `label_ends`."""
    rows = sorted((row for row in rows if finite(row["mean"])), key=lambda row: row[x])
    if not rows:
        return []
    places = [row[x] for row in rows]
    axes.fill_between(
        places,
        [row["low"] for row in rows],
        [row["high"] for row in rows],
        color=look.colour,
        alpha=0.15,
        linewidth=0,
    )
    axes.plot(places, [row["mean"] for row in rows], label=look.label, **look.line)
    return [(places[-1], rows[-1]["mean"], label or look.label, look.colour)]


def by_regressor(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["regressor"], []).append(row)
    return groups


def known(rows: Sequence[Row], x: str, y: str) -> list[tuple[Number, Number]]:
    """The finite points (x, y) of the rows, from left to right."""
    return sorted((row[x], row[y]) for row in rows if finite(row[y]))


def finite(value: Number | None) -> bool:
    return value is not None and math.isfinite(value)
