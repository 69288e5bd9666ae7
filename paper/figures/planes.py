"""Vector fields in the plane, and their Fourier modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from transduce.figures.style import VERMILION, drawing
from transduce.report import number

from .fields import DIVERGING

COMPONENTS = ("$s_1$", "$s_2$")


def planes(fields: Sequence[Mapping[str, Any]], path: Any) -> None:
    """Draw initial and target field, estimate and absolute error, a row for each component of each
    field (figure 4).

    fields: {v, u, u_hat: (2, x, y), title, relative_mse}. Fields of a row share their colours;
    errors have their own."""
    rows = [(field, component) for field in fields for component in range(2)]
    with drawing(path, (9.2, 2.1 * len(rows) + 0.3)) as figure:
        panels = figure.subplots(len(rows), 4, squeeze=False)
        for (field, component), line in zip(rows, panels, strict=True):
            v, u, u_hat = (np.asarray(field[name])[component] for name in ("v", "u", "u_hat"))
            largest = max(np.abs(v).max(), np.abs(u).max())
            for axes, f in zip(line, (v, u, u_hat), strict=False):
                image = _square(axes, f, -largest, largest, DIVERGING)
            figure.colorbar(image, ax=line[:3], pad=0.01, aspect=14)
            error = np.abs(u_hat - u)
            figure.colorbar(
                _square(line[3], error, 0.0, error.max(), "viridis"),
                ax=line[3],
                pad=0.02,
                aspect=14,
            )
            line[0].set_ylabel(f"{field['title']}\n{COMPONENTS[component]}")
            line[2].set_xlabel(f"relative MSE {number(field['relative_mse'])}" if component else "")
        for axes, title in zip(
            panels[0], ("initial", "target", "estimate", "|error|"), strict=True
        ):
            axes.set_title(title)


def quadrants(spectrum: Float[np.ndarray, "rows columns"], kept: int, path: Any) -> None:
    """Draw the energy of the Fourier modes of a field, k_1 from below zero up and k_2 from zero,
    and the two blocks of `kept` x `kept` that are kept of it.

    spectrum: the logarithm to base 10 of the energy of each mode.
    """
    half = len(spectrum) // 2
    with drawing(path, (4.2, 5.2)) as figure:
        axes = figure.add_subplot()
        edges = (-0.5, spectrum.shape[1] - 0.5, -half - 0.5, half - 0.5)
        image = axes.imshow(
            spectrum,
            origin="lower",
            extent=edges,
            cmap="viridis",
            vmin=spectrum.max() - 14,
            aspect="equal",
        )
        for bottom in (-kept - 0.5, -0.5):
            axes.add_patch(
                Rectangle(
                    (-0.5, bottom), kept, kept, fill=False, edgecolor=VERMILION, linewidth=1.8
                )
            )
        axes.set(xlabel="$k_2$", ylabel="$k_1$")
        figure.colorbar(image, label="energy, powers of ten", aspect=24, extend="min")


def _square(axes: Axes, f: np.ndarray, low: float, high: float, cmap: str) -> Any:
    """One component, x to the right and y upwards."""
    axes.set(xticks=[], yticks=[])
    return axes.imshow(
        f.T, origin="lower", cmap=cmap, vmin=low, vmax=high, interpolation="bilinear"
    )
