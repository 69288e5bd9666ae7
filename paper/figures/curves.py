"""Errors against what they depend on, from rows: the number of examples, the depth, the time, the
distance from what was trained on.

A row's mean, low and high are the mean error and its 95 % interval. Rows whose error is None or not
finite are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transduce.figures.curves import SHADE, by_regressor, finite, known, line
from transduce.figures.labels import label_ends, label_points
from transduce.figures.style import (
    DASHED,
    DOTTED,
    Look,
    Number,
    drawing,
    log_errors,
    looks,
    ramp,
    sized_ticks,
)
from transduce.report import Row
from transduce.types import TransduceError

PAPER_ERROR = 2.39e-4  # the Transducer's at n = 50, table 1 of the paper


def training_curves(rows: Sequence[Row], path: Any) -> None:
    """Draw the validation error of each depth against steps of training, untied layers solid, tied
    ones dashed (figure 2, middle).

    rows: {depth, tied, step, error}.
    """
    with drawing(path, (4.6, 3.8)) as figure:
        axes = figure.add_subplot()
        log_errors(axes)
        axes.set(xscale="log", xlabel="steps of training")
        depths = sorted({row["depth"] for row in rows})
        ends = []
        for depth, colour in zip(depths, ramp(len(depths)), strict=True):
            for tied in (False, True):
                points = known(
                    [row for row in rows if row["depth"] == depth and row["tied"] == tied],
                    "step",
                    "error",
                )
                if points:
                    axes.plot(
                        *zip(*points, strict=True),
                        color=colour,
                        linestyle=DASHED if tied else "-",
                        linewidth=1.8,
                    )
                    name = f"{depth} layer{'s' if depth > 1 else ''}{', tied' if tied else ''}"
                    ends.append((*points[-1], name, colour))
        label_ends(axes, ends)


def sweep(rows: Sequence[Row], path: Any, trained: Mapping[str, Any]) -> None:
    """Draw the error of each regressor as one thing moves away from what was trained on, a panel
    for each thing (figure 3).

    Args:
        rows: {sweep, value, regressor, mean, low, high}; values are numbers, or names.
        path: of the figure.
        trained: for some sweeps, the value in meta-training or the two ends of its range.
    """
    names = list(dict.fromkeys(row["sweep"] for row in rows))
    columns = min(2, len(names))
    lines = -(-len(names) // columns)
    with drawing(path, (3.4 * columns, 2.9 * lines + 0.9)) as figure:
        panels = figure.subplots(lines, columns, squeeze=False, sharey=True)
        for name, axes in zip(names, panels.flat, strict=False):
            _sweep_panel(
                axes,
                [row for row in rows if row["sweep"] == name],
                looks([row["regressor"] for row in rows]),
                trained.get(name),
            )
            axes.set_xlabel(name)
        for axes in panels.flat[len(names) :]:
            axes.remove()
        for axes in panels[:, 1:].flat:
            axes.set_ylabel("")
        _named_below(figure, ncols=2)


def _sweep_panel(axes: Axes, rows: Sequence[Row], styles: Mapping[str, Look], trained: Any) -> None:
    values = list(dict.fromkeys(row["value"] for row in rows))
    log_errors(axes)
    if any(isinstance(value, str) for value in values):
        _categories(axes, rows, values, styles)
        if trained is not None:
            place = values.index(trained)
            axes.axvspan(place - 0.45, place + 0.45, label="as trained", **SHADE)
        return
    _wide_ticks(axes, values)
    for name, own in by_regressor(rows).items():
        line(axes, own, "value", styles[name])
    left, right = axes.get_xlim()
    if isinstance(trained, tuple | list):
        axes.axvspan(max(trained[0], left), trained[1], label="as trained", **SHADE)
    elif trained is not None:
        axes.axvline(trained, color="0.82", linewidth=5, zorder=-1, label="as trained")
    axes.set_xlim(left, right)


def _categories(
    axes: Axes, rows: Sequence[Row], values: Sequence[str], styles: Mapping[str, Look]
) -> None:
    """A group of points for each name, the regressors beside each other in it."""
    groups = by_regressor(rows)
    offsets = np.linspace(-0.32, 0.32, len(groups)) if len(groups) > 1 else np.zeros(1)
    for offset, (name, own) in zip(offsets, groups.items(), strict=True):
        look = styles[name]
        own = [row for row in own if finite(row["mean"])]
        means = np.array([row["mean"] for row in own])
        bars = (
            np.array([[row["mean"] - row["low"], row["high"] - row["mean"]] for row in own])
            .reshape(-1, 2)
            .T.clip(min=0)
        )
        style = look.line | {
            "linestyle": "none",
            "label": look.label,
            "markersize": 3.6 + look.width,
        }
        axes.errorbar(
            [values.index(row["value"]) + offset for row in own],
            means,
            bars,
            elinewidth=1.0,
            **style,
        )
    axes.set_xticks(range(len(values)), [value.replace(" ", "\n") for value in values])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(values) - 0.5)


def panels_beside(figure: Figure, rows: Sequence[Row], by: str, x: str) -> list[Axes]:
    """Draw the means of each regressor against x, a panel for each value of `by`, the regressors
    named below; the panels.

    rows: {regressor, mean, low, high} and what `by` and `x` name.
    """
    names, styles = (
        list(dict.fromkeys(row[by] for row in rows)),
        looks([row["regressor"] for row in rows]),
    )
    panels = list(figure.subplots(1, len(names), sharey=True, squeeze=False)[0])
    for axes, name in zip(panels, names, strict=True):
        own = [row for row in rows if row[by] == name]
        for regressor, look in styles.items():
            line(axes, [row for row in own if row["regressor"] == regressor], x, look)
        _wide_ticks(axes, [row[x] for row in own])
        axes.set_title(name)
        axes.grid(axis="y")
    _named_below(figure, ncols=round(figure.get_figwidth() / 2.4))
    return panels


def _wide_ticks(axes: Axes, values: Sequence[Number]) -> None:
    """A logarithmic x, if the values span a power of ten."""
    if min(values) > 0 and max(values) >= 10 * min(values):
        sized_ticks(axes, values)


def _named_below(figure: Figure, ncols: int) -> None:
    """Name the lines of all panels below them, each once."""
    handles = {
        str(handle.get_label()): handle
        for axes in figure.axes
        for handle in axes.get_legend_handles_labels()[0]
    }
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=ncols)


def operators_needed(rows: Sequence[Row], path: Any) -> None:
    """Draw the error of each regressor against the number of operators it was meta-trained on, a
    line style for each n.

    rows: {regressor, operators, n, mean, low, high}.
    """
    sizes = sorted({row["n"] for row in rows})
    if len(sizes) > 3:
        raise TransduceError(
            f"rows hold {len(sizes)} numbers of examples n, {sizes}; expected at most 3. Draw the "
            "others in another figure."
        )
    with drawing(path, (4.9, 3.8)) as figure:
        axes = figure.add_subplot()
        log_errors(axes)
        sized_ticks(axes, [row["operators"] for row in rows])
        axes.set_xlabel("training operators")
        styles, ends = looks([row["regressor"] for row in rows]), []
        for name, own in by_regressor(rows).items():
            for n, linestyle in zip(sizes, ("-", DASHED, DOTTED), strict=False):
                look = Look(
                    styles[name].label,
                    styles[name].colour,
                    styles[name].marker,
                    linestyle,
                    styles[name].width,
                )
                chosen = [row for row in own if row["n"] == n]
                ends += line(
                    axes,
                    chosen,
                    "operators",
                    look,
                    f"{look.label}\nn = {n}" if len(sizes) > 1 else look.label,
                )
        label_ends(axes, ends)


def accuracy_against_time(rows: Sequence[Row], path: Any) -> None:
    """Draw the mean error of each regressor against the seconds of a regression (table 1): best is
    at the lower left.

    rows: {regressor, seconds, mean}, one for each regressor.
    """
    with drawing(path, (5.2, 4.4)) as figure:
        axes = figure.add_subplot()
        log_errors(axes)
        axes.set(xscale="log", xlabel="time of a regression, seconds")
        axes.grid(axis="x")
        points = []
        for name, look in looks([row["regressor"] for row in rows]).items():
            point = known([row for row in rows if row["regressor"] == name], "seconds", "mean")
            if point:
                axes.plot(*point[0], **look.line | {"markersize": 6 + look.width})
                points.append((*point[0], look.label, look.colour))
        axes.margins(0.1, 0.08)
        label_points(axes, points)


def error_over_training(
    rows: Sequence[Row],
    path: Any,
    target: float | None = None,
    measure: str = "relative MSE at n = 50",
) -> None:
    """Draw the validation error of each model against its seconds of training, with a line at the
    error to reach.

    Args:
        rows: {model, seconds, error}.
        path: of the figure, without a suffix.
        target: the error to reach; None for no line.
        measure: what the errors are.
    """
    with drawing(path, (4.9, 3.8)) as figure:
        axes = figure.add_subplot()
        log_errors(axes, measure)
        axes.set(xscale="log", xlabel="time of training, seconds")
        if target:
            axes.axhline(target, color="0.35", linestyle=DASHED, linewidth=1.2)
        ends = []
        for name, look in looks([row["model"] for row in rows]).items():
            points = known([row for row in rows if row["model"] == name], "seconds", "error")
            if points:
                axes.plot(*zip(*points, strict=True), **look.line | {"marker": ""})
                ends.append((*points[-1], look.label, look.colour))
        if target:
            ends.append((axes.get_xlim()[1], target, "the paper", "0.35"))
        label_ends(axes, ends)
