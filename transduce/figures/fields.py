"""Predictions over the truth, from arrays.

Functions of x are on a uniform grid of [0, 1] with both ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from ..metrics import relative_squared_errors
from ..report import number
from ..types import Array, Task, to_tensor
from .style import DASHED, Look, dark, drawing, looks


def prediction_over_truth(
    task: Task,
    predictions: Mapping[str, Array],
    path: Any,
    count: int = 4,
    bands: Mapping[str, tuple[Array, Array]] | None = None,
) -> None:
    """Draw the first `count` queries of a task, above, and predictions of their images over the
    truth, below.

    Functions have one variable and one channel. The examples are thin lines. Above each panel of
    images stands the relative squared error of each prediction.

    Args:
        task: examples and queries.
        predictions: of each regressor, at all queries.
        path: of the figure.
        count: number of queries.
        bands: lower and upper ends of some regressors' bands, which are shaded.
    """
    v, u = _values(task.queries.v), _values(task.queries.u)
    with drawing(path, (1.7 * count + 0.7, 4.6)) as figure:
        panels = figure.subplots(2, count, sharex=True, sharey="row", squeeze=False)
        for query, (above, below) in enumerate(panels.T):
            for axes, f in ((above, task.examples.v), (below, task.examples.u)):
                _lines(axes, _values(f), color="0.87", linewidth=0.4, rasterized=True)
            _lines(above, v[query : query + 1], color="black", linewidth=1.4)
            _lines(
                below, u[query : query + 1], color="black", linewidth=3.4, alpha=0.4, label="truth"
            )
            errors = []
            for place, (name, look) in enumerate(looks(list(predictions)).items()):
                u_hat = _values(predictions[name])
                _prediction(below, u_hat[query], look, first=place == 0)
                errors.append((float(relative_squared_errors(u_hat, u)[query]), look.colour))
                if name in (bands or {}):
                    low, high = (_values(end)[query] for end in (bands or {})[name])
                    _band(below, low, high, look)
            _note(below, errors)
            above.set_title(f"query {query + 1}")
            unit_x(below)
        panels[0, 0].set_ylabel("v")
        panels[1, 0].set_ylabel("u = O(v)")
        handles, labels = panels[1, 0].get_legend_handles_labels()
        examples = matplotlib.lines.Line2D([], [], color="0.8", linewidth=0.8)
        labels = [*labels, f"{len(task.examples)} examples"]
        figure.legend(
            [*handles, examples], labels, loc="outside lower center", ncols=min(len(labels), count)
        )


def _prediction(axes: Axes, u_hat: np.ndarray, look: Look, first: bool) -> None:
    """One prediction; the first is drawn over the others."""
    style: dict[str, Any] = {"linewidth": 1.2}
    if first:
        style = {"linewidth": 1.7, "linestyle": DASHED, "zorder": 3}
    _lines(axes, u_hat[None], color=look.colour, label=look.label, **style)


def _band(axes: Axes, low: np.ndarray, high: np.ndarray, look: Look) -> None:
    x = np.linspace(0, 1, len(low))
    axes.fill_between(x, low, high, color=look.colour, alpha=0.25, linewidth=0)


def _lines(axes: Axes, f: np.ndarray, **style: Any) -> None:
    axes.plot(np.linspace(0, 1, f.shape[-1]), f.T, **style)


def _note(axes: Axes, errors: list[tuple[float, str]]) -> None:
    """Each prediction's relative squared error, in its own colour, above the panel."""
    for place, (error, colour) in enumerate(errors):
        x = (place + 0.5) / len(errors)
        axes.text(
            x,
            1.02,
            number(error),
            color=dark(colour),
            ha="center",
            va="bottom",
            transform=axes.transAxes,
        )


def unit_x(axes: Axes) -> None:
    axes.set(xlim=(0, 1), xlabel="x")
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])


def _values(f: Array) -> np.ndarray:
    return to_tensor(f, "f").detach().cpu().numpy()
