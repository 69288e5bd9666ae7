"""Functions and fields, from arrays: the operators and what they do, predictions over the truth,
Jacobians.

Functions of x are on a uniform grid of [0, 1] with both ends, in the units of the equation: x in
lengths of the domain, t in times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import QuadMesh
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm, Normalize

from transduce.figures.fields import unit_x
from transduce.figures.style import (
    BLUE,
    DASHED,
    VERMILION,
    dark,
    drawing,
    log_errors,
    looks,
    ramp,
)
from transduce.report import number

DIVERGING = "RdBu_r"


def state_evolution(fields: Sequence[Mapping[str, Any]], path: Any) -> None:
    """Draw s(x, t) for some operators and below each the squared error of every layer's estimate of
    s(., t) (figure 2, right).

    fields: {s: (times, points), t: (times,), layers: squared errors (depth, points), title} for
    each operator."""
    depth = len(fields[0]["layers"])
    largest = max(float(np.abs(field["s"]).max()) for field in fields)
    with drawing(path, (1.7 * len(fields) + 1.6, 4.6)) as figure:
        panels = figure.subplots(2, len(fields), sharex=True, sharey="row", squeeze=False)
        for field, (above, below) in zip(fields, panels.T, strict=True):
            image = _image(above, field["s"], field["t"], largest)
            above.set_title(field["title"])
            for errors, colour in zip(field["layers"], ramp(depth), strict=True):
                inner = np.asarray(errors)[1:-1]  # both ends are zero and have no logarithm
                below.plot(np.linspace(0, 1, len(errors))[1:-1], inner, color=colour, linewidth=1.4)
            log_errors(below, "")
            unit_x(below)
        panels[1, 0].set_ylim(
            bottom=np.quantile(
                np.concatenate([np.asarray(field["layers"])[:, 1:-1] for field in fields]), 0.02
            )
        )
        panels[0, 0].set_ylabel("t")
        panels[1, 0].set_ylabel("squared error\nread from layer $\\ell$")
        figure.colorbar(image, ax=panels[0], label="s(x, t)", aspect=12)
        shades = ScalarMappable(
            BoundaryNorm(np.arange(0.5, depth + 1), depth), ListedColormap(ramp(depth))
        )
        figure.colorbar(
            shades,
            ax=panels[1],
            label="layer $\\ell$",
            aspect=12,
            ticks=sorted({1, (depth + 1) // 2, depth}),
        )


def evolution_to(
    s: Float[np.ndarray, "operators times x"], t: Float[np.ndarray, " times"], path: Any
) -> None:
    """Draw s(x, t) of some operators beside each other, as images under one colour bar."""
    with drawing(path, (1.4 * len(s) + 1.4, 2.9)) as figure:
        panels = figure.subplots(1, len(s), sharex=True, sharey=True, squeeze=False)[0]
        for place, (axes, field) in enumerate(zip(panels, s, strict=True)):
            image = _image(axes, field, t, float(np.abs(s).max()))
            axes.set_title(f"operator {place + 1}")
            unit_x(axes)
        panels[0].set_ylabel("t")
        figure.colorbar(image, ax=panels, label="s(x, t)", aspect=16)


def rows_of_predictions(
    v: Float[np.ndarray, "m x"],
    u: Float[np.ndarray, "rows m x"],
    u_hat: Float[np.ndarray, "rows m x"],
    path: Any,
) -> None:
    """Draw what one model predicts for the same queries, a row for each operator it was conditioned
    on (figure 1)."""
    _function_rows(np.broadcast_to(v, u.shape), u, path, u_hat)


def meta_test_rows(
    v: Float[np.ndarray, "rows m x"], u: Float[np.ndarray, "rows m x"], path: Any
) -> None:
    """Draw functions and their images, a row for each operator."""
    _function_rows(v, u, path)


def _function_rows(
    v: np.ndarray, u: np.ndarray, path: Any, u_hat: np.ndarray | None = None
) -> None:
    rows, m, points = u.shape
    with drawing(path, (1.35 * m + 0.6, 1.25 * rows + 0.9)) as figure:
        panels = figure.subplots(
            rows, m, sharex=True, sharey=True if u_hat is None else "col", squeeze=False
        )
        x = np.linspace(0, 1, points)
        truth: dict[str, Any] = (
            {"color": BLUE, "linewidth": 1.8}
            if u_hat is None
            else {"color": "0.1", "linewidth": 3.4, "alpha": 0.4}
        )
        for place in np.ndindex(rows, m):
            axes: Any = panels[place]
            axes.axhline(0, color="0.85", linewidth=0.6)
            axes.plot(x, v[place], color="0.6", linewidth=1.0, label="v")
            axes.plot(x, u[place], label="u = O(v)", **truth)
            if u_hat is not None:
                axes.plot(
                    x,
                    u_hat[place],
                    color=VERMILION,
                    linewidth=1.6,
                    linestyle=DASHED,
                    label="predicted",
                )
        for j, axes in enumerate(panels[-1]):
            unit_x(axes)
            panels[0, j].set_title(f"{'function' if u_hat is None else 'query'} {j + 1}")
        for i, axes in enumerate(panels[:, 0]):
            axes.set_ylabel(f"operator {i + 1}")
        figure.legend(
            *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3
        )


def coefficient_samples(
    x: Float[np.ndarray, " x"],
    delta: Float[np.ndarray, "operators x"],
    nu: Float[np.ndarray, "operators x"],
    path: Any,
) -> None:
    """Draw delta(x) and nu(x) of some operators, each operator in one colour."""
    with drawing(path, (6.8, 3.0)) as figure:
        for axes, f, label in zip(
            figure.subplots(1, 2),
            (delta, nu),
            ("diffusion δ, length² / time", "advection \N{GREEK SMALL LETTER NU}, length / time"),
            strict=True,
        ):
            for values, colour in zip(f, ramp(len(f)), strict=True):
                axes.plot(x, values, color=colour, linewidth=1.6)
            axes.set_ylabel(label)
            axes.grid(axis="y")
            unit_x(axes)


def length_scales(
    x: Float[np.ndarray, " x"],
    fields_by_scale: Mapping[float, Float[np.ndarray, "samples x"]],
    path: Any,
) -> None:
    """Draw samples of a random field at each of some length scales, a panel for each."""
    with drawing(path, (2.2 * len(fields_by_scale) + 0.7, 2.6)) as figure:
        panels = figure.subplots(1, len(fields_by_scale), sharey=True, squeeze=False)[0]
        for axes, (scale, samples) in zip(panels, fields_by_scale.items(), strict=True):
            for values, colour in zip(samples, ramp(len(samples)), strict=True):
                axes.plot(x, values, color=colour, linewidth=1.4)
            axes.set_title(f"length scale {scale:g}")
            axes.grid(axis="y")
            unit_x(axes)
        panels[0].set_ylabel("random field")


def jacobians(
    matrices: Mapping[str, Float[np.ndarray, "modes modes"]],
    distances: Mapping[str, float],
    path: Any,
) -> None:
    """Draw |J| of each operator in sine modes, with its distance from the true one, and below it
    the gains |J_kk| over the true ones.

    The first of the matrices is the true solver's; the others are named by their regressor.
    """
    (truth, true), *_ = matrices.items()
    modes, largest = np.arange(1, len(true) + 1), float(np.abs(true).max())
    styles = looks([name for name in matrices if name != truth])
    columns = min(4, len(matrices))
    blocks = -(-len(matrices) // columns)
    with drawing(path, (1.6 * columns + 1.5, 3.8 * blocks)) as figure:
        panels = figure.subplots(2 * blocks, columns, sharex=True, sharey="row", squeeze=False)
        above, below = panels[::2].flatten(), panels[1::2].flatten()
        for (name, J), image, gains in zip(matrices.items(), above, below, strict=False):
            colour = "0.1" if name == truth else styles[name].colour
            label = (
                truth
                if name == truth
                else f"{styles[name].label}\ndistance {number(distances[name])}".replace(
                    " (", "\n("
                )
            )
            image.set_title(label, color=dark(colour))
            norm = LogNorm(1e-5 * largest, largest)
            shades = image.pcolormesh(
                modes, modes, np.abs(J).clip(min=1e-12), norm=norm, cmap="magma", rasterized=True
            )
            image.set(aspect="equal", ylim=(len(true) + 0.5, 0.5))
            gains.plot(modes, np.abs(true.diagonal()), color="0.1", alpha=0.4, linewidth=3.4)
            if name != truth:
                gains.plot(
                    modes, np.abs(J.diagonal()), color=colour, linewidth=1.6, linestyle=DASHED
                )
            log_errors(gains, "")
            gains.set(xlabel="mode in", ylim=(0.1 * np.abs(true.diagonal()).min(), 3 * largest))
            gains.tick_params(labelbottom=True)
        for axes in (*above[len(matrices) :], *below[len(matrices) :]):
            axes.remove()
        for first in range(blocks):
            panels[2 * first, 0].set_ylabel("mode out")
            panels[2 * first + 1, 0].set_ylabel("gain $|J_{kk}|$")
        figure.colorbar(shades, ax=panels[0], label="$|J_{kl}|$", aspect=12, extend="min")


def _image(
    axes: Axes, s: Float[np.ndarray, "times x"], t: Float[np.ndarray, " times"], largest: float
) -> QuadMesh:
    """s(x, t), x to the right and t upwards, blue below zero and red above."""
    x = np.linspace(0, 1, s.shape[-1])
    return axes.pcolormesh(
        x,
        t,
        s,
        norm=Normalize(-largest, largest),
        cmap=DIVERGING,
        shading="gouraud",
        rasterized=True,
    )
