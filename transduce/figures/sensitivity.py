"""What matters: the share of the variation of u that each input explains, and where."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from .style import BLUE, drawing

MOST = 12  # inputs that are drawn


@runtime_checkable
class Sensitivity(Protocol):
    """What `O.sensitivity()` returns."""

    @property
    def names(self) -> Sequence[str]:
        """Of the inputs."""

    @property
    def shares(self) -> Float[np.ndarray, " inputs"]:
        """Of the variation of u that each input takes part in."""

    @property
    def effects(self) -> Float[np.ndarray, "inputs channels points"]:
        """Root mean square change of u, of each input at each point."""

    @property
    def x(self) -> np.ndarray | None:
        """Positions of the points of u; None if u are numbers."""


def sensitivity(S: Sensitivity, path: Path | str, xlabel: str = "x") -> None:
    """Draw one bar for each input, the largest first, and its effect at each point of u.

    Args:
        S: what `O.sensitivity()` returns.
        path: of the figure, without a suffix.
        xlabel: what the positions of u are, with their unit.
    """
    order = np.argsort(-S.shares)[:MOST]
    x = S.x if S.effects.shape[2] > 1 else None
    channels = 0 if x is None else S.effects.shape[1]
    height = 1.0 + 0.34 * len(order)
    with drawing(Path(path), (4.6 + 3.6 * channels, max(2.4, height))) as figure:
        axes = np.ravel(figure.subplots(1, 1 + channels, squeeze=False))
        _bars(axes[0], [S.names[j] for j in order], S.shares[order])
        if x is not None:
            for channel, panel in enumerate(axes[1:]):
                _map(panel, S.effects[order, channel], x, xlabel)
                panel.set_title("effect on u" + f"[{channel}]" * (channels > 1))


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
    axes: Axes, effects: Float[np.ndarray, "inputs points"], x: np.ndarray, xlabel: str
) -> None:
    edges = np.arange(len(effects) + 1) - 0.5
    middle = x[:-1] + (x[1:] - x[:-1]) / 2
    ends = np.concatenate([x[:1], middle, x[-1:]])
    drawn = axes.pcolormesh(ends, edges, effects, rasterized=True)
    axes.invert_yaxis()
    axes.set(xlabel=xlabel, yticks=[])
    assert axes.figure is not None
    axes.figure.colorbar(drawn, ax=axes, label="change, in units of u")
