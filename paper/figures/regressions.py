"""What many regressions say of each example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from transduce.figures.style import BLUE, VERMILION, drawing, looks, sized_ticks
from transduce.report import Row
from transduce.types import Array, to_tensor


def errors_of_examples(
    quantiles: Float[np.ndarray, "5 n"],
    outlier: Bool[np.ndarray, " n"],
    threshold: float,
    path: Any,
) -> None:
    """Draw the distribution of every example's error over all regressions that left it out, sorted,
    outliers apart (figure 5).

    Args:
        quantiles: of the relative error, at 5, 25, 50, 75 and 95 %.
        outlier: whether each example is one.
        threshold: an example whose error is above it is flagged.
        path: of the figure.
    """
    order = np.argsort(quantiles[2])
    place = np.arange(len(order))
    with drawing(path, (6.4, 3.4)) as figure:
        axes = figure.add_subplot()
        for chosen, colour, name in (
            (~outlier[order], BLUE, "same operator"),
            (outlier[order], VERMILION, "another viscosity"),
        ):
            lowest, low, middle, high, highest = quantiles[:, order[chosen]]
            axes.vlines(place[chosen], lowest, highest, color=colour, linewidth=1.0, alpha=0.5)
            axes.vlines(place[chosen], low, high, color=colour, linewidth=3.0)
            axes.plot(place[chosen], middle, "o", color=colour, markersize=2.5, label=name)
        axes.axhline(
            threshold, color="0.4", linewidth=1.0, linestyle="--", label="threshold of the mean"
        )
        axes.set(
            yscale="log",
            xlabel="examples, by their median",
            ylabel="relative error",
            xlim=(-1, len(order)),
        )
        axes.legend(loc="upper left")


def precision_and_recall(rows: Sequence[Row], path: Any) -> None:
    """Draw how many outliers are found, and how many of those found are some, against their
    distance and against their share.

    rows: {varied: "gap" or "share", t, gap, share, method, precision, recall}; the latest t is
    drawn."""
    rows = [row for row in rows if row["t"] == max(row["t"] for row in rows)]
    labels = {"gap": "$\\nu_2 - \\nu_1$", "share": "share of outliers"}
    held = {"gap": "share", "share": "gap"}
    panels = [
        (varied, value)
        for varied in labels
        for value in sorted({row[held[varied]] for row in rows if row["varied"] == varied})
    ]
    styles = looks([row["method"] for row in rows])
    with drawing(path, (2.9 * len(panels), 5.4)) as figure:
        columns = figure.subplots(2, len(panels), sharey=True, sharex="col", squeeze=False).T
        for (varied, value), column in zip(panels, columns, strict=True):
            for axes, measure in zip(column, ("precision", "recall"), strict=True):
                for name, look in styles.items():
                    own = [
                        row
                        for row in rows
                        if (row["varied"], row[held[varied]], row["method"])
                        == (varied, value, name)
                    ]
                    axes.plot(
                        [row[varied] for row in own],
                        [100 * row[measure] for row in own],
                        label=look.label,
                        **look.line,
                    )
                sized_ticks(axes, [row[varied] for row in own])
                axes.set_ylim(-4, 104)
            column[0].set_title(f"{labels[held[varied]]} = {value:g}")
            column[1].set_xlabel(labels[varied])
        columns[0][0].set_ylabel("precision, %")
        columns[0][1].set_ylabel("recall, %")
        figure.legend(
            *columns[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2
        )


def bands_about(panels: Mapping[str, Mapping[str, Array]], u: Array, path: Any) -> None:
    """Draw one function's bands about its answer, a panel for each kind of band: the error of the
    answer, and the band's ends less it.

    panels: {mean, low, high} of each kind. Functions are of one variable.
    """
    with drawing(path, (2.7 * len(panels) + 0.5, 2.8)) as figure:
        for axes, (name, ends) in zip(
            figure.subplots(1, len(panels), sharey=True, squeeze=False)[0],
            panels.items(),
            strict=True,
        ):
            mean, low, high, truth = (
                to_tensor(f, "f").numpy() for f in (ends["mean"], ends["low"], ends["high"], u)
            )
            x = np.linspace(0, 1, len(mean))
            axes.fill_between(
                x,
                low - mean,
                high - mean,
                color=VERMILION,
                alpha=0.25,
                linewidth=0,
                label="band of 90 %",
            )
            axes.plot(x, truth - mean, color="black", linewidth=1.4, label="truth")
            axes.set(title=name, xlabel="x", xlim=(0, 1))
            axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        figure.axes[0].set_ylabel("less the answer")
        figure.axes[0].legend(loc="upper left", fontsize=10)


def estimate_against_exact(pairs: Mapping[str, tuple[np.ndarray, np.ndarray]], path: Any) -> None:
    """Draw estimates over what they estimate, a panel for each name."""
    with drawing(path, (3.3 * len(pairs), 3.2)) as figure:
        for axes, (name, (exact, estimate)) in zip(
            figure.subplots(1, len(pairs), squeeze=False)[0], pairs.items(), strict=True
        ):
            axes.axline((0, 0), slope=1, color="0.8", linewidth=3, zorder=0)
            axes.plot(exact, estimate, "o", color=BLUE, markersize=4)
            axes.set(title=name, xlabel="left out")
            axes.ticklabel_format(style="sci", scilimits=(-2, 3))
        figure.axes[0].set_ylabel("influence")
