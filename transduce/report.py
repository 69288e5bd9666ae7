"""Rows -> tables and figures. Nothing here touches a model: numbers come as rows, functions as arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator
from rich.table import Table

from .files import replacing
from .metrics import relative_squared_errors
from .types import Array, Task, to_tensor

Row = dict[str, Any]

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito: told apart by all eyes
MARKERS = "osD^vP"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "transduce",
}


def number(value: Any) -> str:
    """A number as a table shows it: 4.6e-3, 0.52, 12.3, 50.

    >>> number(0.00456)
    '4.6e-3'
    """
    if not isinstance(value, float):
        return str(value)
    if value == 0 or 0.1 <= abs(value) < 999.5:
        return f"{value:.3g}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def markdown_table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table, a column for each key of the first."""
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *([number(row[column]) for column in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def rich_table(rows: Sequence[Row], title: str | None = None) -> Table:
    """The rows as a table for the terminal, a column for each key of the first."""
    table = Table(title=title)
    for column, value in rows[0].items():
        table.add_column(str(column), justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*(number(row[column]) for column in rows[0]))
    return table


def by_regressor(rows: Sequence[Row], value: str = "mean") -> list[Row]:
    """One row for each regressor (and condition, if they have one) with a column for each n, from `summarise`d rows."""
    lines: dict[tuple[str, ...], Row] = {}
    for row in rows:
        labels: Row = {key: row[key] for key in ("condition", "regressor") if key in row}
        lines.setdefault(tuple(labels.values()), labels)[f"n = {row['n']}"] = row[value]
    return list(lines.values())


def write_rows(path: Any, rows: Sequence[Row], **about: Any) -> None:
    """Write rows as JSON, with what `about` says of them: the command, the seed, versions, the machine."""
    with replacing(path) as partial:
        partial.write_text(json.dumps({**about, "rows": list(rows)}, indent=1) + "\n")


def results_table(result: Mapping[str, Any]) -> str:
    """The Markdown table of a results file: mean / median, regressors by n, where it holds evaluations, else its rows as they are."""
    rows = result["rows"]
    if "regressor" not in rows[0]:
        return markdown_table([{key: value for key, value in row.items() if not isinstance(value, list)} for row in rows])
    return markdown_table(by_regressor([row | {"both": f"{number(row['mean'])} / {number(row['median'])}"} for row in rows], "both"))


def error_against_n(summaries: Mapping[str, Sequence[Row]], path: Any, trained_range: tuple[int, int] | None = None) -> None:
    """Draw the `summarise`d error of each regressor against the number of examples, as .png and .svg beside each other.

    Lines are means with their 95 % interval, dots medians; the numbers of examples seen in meta-training are shaded.
    """
    with drawing(path, (5.2, 3.6)) as figure:
        axes = figure.add_subplot()
        for (name, rows), colour, marker in zip(summaries.items(), COLOURS, MARKERS, strict=False):
            n = [row["n"] for row in rows]
            axes.fill_between(n, [row["low"] for row in rows], [row["high"] for row in rows], color=colour, alpha=0.18, linewidth=0)
            axes.plot(n, [row["mean"] for row in rows], color=colour, marker=marker, markersize=4, linewidth=1.5, label=name)
            axes.plot(n, [row["median"] for row in rows], color=colour, linestyle=":", linewidth=1.2)
        axes.plot([], [], color="0.35", linestyle=":", linewidth=1.2, label="median")
        if trained_range:
            axes.axvspan(*trained_range, color="0.93", zorder=-1, linewidth=0, label="n in meta-training")
        ticks = sorted({row["n"] for rows in summaries.values() for row in rows})
        axes.set(xscale="log", yscale="log", xlabel="examples n", ylabel="relative MSE of unseen functions")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(ticks, [str(n) for n in ticks])
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(axis="y", color="0.9", linewidth=0.5)
        axes.legend()


def error_against_time(curves: Mapping[str, Sequence[Row]], path: Any) -> None:
    """Draw the validation error of each training against its seconds, as .png and .svg; the first is drawn thick."""
    with drawing(path, (6.4, 3.8)) as figure:
        axes = figure.add_subplot()
        for place, (name, points) in enumerate(curves.items()):
            style: dict[str, Any] = {
                "color": COLOURS[place % len(COLOURS)],
                "linestyle": ("-", "--", ":")[place // len(COLOURS)],
                "linewidth": 1.2 if place else 2.4,
            }
            known = [point for point in points if point["error"] is not None]
            label = f"{name} ({number(known[-1]['error'])})"
            axes.plot([point["seconds"] for point in known], [point["error"] for point in known], label=label, **style)
        axes.set(xscale="log", yscale="log", xlabel="seconds of training", ylabel="relative MSE at n = 50")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(color="0.9", linewidth=0.5)
        figure.legend(loc="outside right center", fontsize=8)


def prediction_over_truth(
    task: Task, predictions: Mapping[str, Array], path: Any, count: int = 4, bands: Mapping[str, tuple[Array, Array]] | None = None
) -> None:
    """Draw the first `count` queries of a task, above, and predictions of their images over the truth, below, as .png and .svg.

    The examples are thin lines; above each panel of images stands every prediction's relative squared error. bands: the lower and
    upper ends of some predictions' bands, shaded. Functions are of one variable and one channel.
    """
    v, u = _values(task.queries.v), _values(task.queries.u)
    with drawing(path, (2.3 * count, 4.0)) as figure:
        panels = figure.subplots(2, count, sharex=True, sharey="row", squeeze=False)
        for query, (above, below) in enumerate(panels.T):
            for axes, f in ((above, task.examples.v), (below, task.examples.u)):
                _lines(axes, _values(f), color="0.87", linewidth=0.4, rasterized=True)
            _lines(above, v[query : query + 1], color="black", linewidth=1.2)
            _lines(below, u[query : query + 1], color="black", linewidth=2.6, alpha=0.45, label="truth")
            errors = []
            for (name, u_hat), colour in zip(predictions.items(), COLOURS, strict=False):
                _lines(below, _values(u_hat)[query : query + 1], color=colour, linewidth=1.2, linestyle=(0, (4, 1.5)), label=name)
                errors.append((float(relative_squared_errors(_values(u_hat), u)[query]), colour))
                if name in (bands or {}):
                    low, high = (_values(end)[query] for end in (bands or {})[name])
                    below.fill_between(np.linspace(0, 1, len(low)), low, high, color=colour, alpha=0.25, linewidth=0)
            _note(below, errors)
            above.set_title(f"query {query + 1}", fontsize=9)
            below.set_xlabel("x")
        panels[0, 0].set_ylabel("v")
        panels[1, 0].set_ylabel("u = O(v)")
        handles, labels = panels[1, 0].get_legend_handles_labels()
        examples = matplotlib.lines.Line2D([], [], color="0.8", linewidth=0.8)
        figure.legend([*handles, examples], [*labels, f"{len(task.examples)} examples"], loc="outside lower center", ncols=len(handles) + 1)


def _lines(axes: Axes, f: np.ndarray, **style: Any) -> None:
    axes.plot(np.linspace(0, 1, f.shape[-1]), f.T, **style)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])


def _note(axes: Axes, errors: list[tuple[float, str]]) -> None:
    """Each prediction's relative squared error, in its own colour, above the panel."""
    for place, (error, colour) in enumerate(errors):
        x = (place + 0.5) / len(errors)
        axes.text(x, 1.02, number(error), color=colour, fontsize=8, ha="center", va="bottom", transform=axes.transAxes)


def _values(f: Array) -> np.ndarray:
    return to_tensor(f, "f").detach().cpu().numpy()


@contextmanager
def drawing(path: Any, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure in the house style, written as path.png and path.svg, each whole or not at all."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        for suffix, options in ((".png", {"dpi": 200}), (".svg", {"metadata": {"Date": None}})):
            with replacing(Path(path).with_suffix(suffix)) as partial:
                figure.savefig(partial, **options)
