"""What matters: the share of the variation of u that each input explains, and where."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from .style import BLUE, drawing

MOST = 12  # inputs that are drawn


def sensitivity(
    names: Sequence[str],
    shares: Float[np.ndarray, " inputs"],
    effects: Float[np.ndarray, "inputs channels points"],
    path: Path | str,
    x: Float[np.ndarray, " points"] | None = None,
    x_label: str = "x",
) -> None:
    """Draw one bar for each input, the largest first, and its effect at each point of u.

    Args:
        names: of the inputs.
        shares: of the variation of u that each takes part in.
        effects: root mean square change of u, of each input at each point.
        path: of the figure, without a suffix.
        x: positions of the points of u; None if u are numbers.
        x_label: what x is, with its unit.
    """
    order = np.argsort(-np.asarray(shares))[:MOST]
    curves = x is not None and effects.shape[2] > 1
    channels = effects.shape[1] if curves else 0
    height = 1.0 + 0.34 * len(order)
    with drawing(Path(path), (4.6 + 3.6 * channels, max(2.4, height))) as figure:
        axes = np.ravel(figure.subplots(1, 1 + channels, squeeze=False))
        _bars(axes[0], [names[j] for j in order], np.asarray(shares)[order])
        for channel in range(channels):
            assert x is not None
            _map(axes[1 + channel], effects[order, channel], np.asarray(x), x_label)
            axes[1 + channel].set_title("effect on u" + f"[{channel}]" * (channels > 1))


def _bars(axes: Axes, names: Sequence[str], shares: Float[np.ndarray, " inputs"]) -> None:
    places = np.arange(len(names))
    axes.barh(places, shares, color=BLUE, height=0.7)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set(xlabel="share of the variation of u", xlim=(0, max(1.0, 1.15 * shares.max())))
    for place, share in zip(places, shares, strict=True):
        axes.annotate(
            f"{share:.0%}", (share, place), (3, 0), textcoords="offset points", va="center"
        )


def _map(
    axes: Axes, effects: Float[np.ndarray, "inputs points"], x: np.ndarray, x_label: str
) -> None:
    edges = np.arange(len(effects) + 1) - 0.5
    middle = x[:-1] + (x[1:] - x[:-1]) / 2
    ends = np.concatenate([x[:1], middle, x[-1:]])
    drawn = axes.pcolormesh(ends, edges, effects, rasterized=True)
    axes.invert_yaxis()
    axes.set(xlabel=x_label, yticks=[])
    assert axes.figure is not None
    axes.figure.colorbar(drawn, ax=axes, label="change, in units of u")
