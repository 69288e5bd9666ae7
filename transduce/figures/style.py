"""The house style: one colour, marker and name for each regressor, labels beside the lines they
name, files as .png and .svg.

Type is 12 pt on a panel 4.6 inches wide, which is 9 pt at half the width of a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from ..files import replacing
from ..types import TransduceError

# Okabe and Ito: told apart by all eyes.
COLOURS = (
    "#D55E00",
    "#0072B2",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelcolor": "0.15",
    "axes.edgecolor": "0.35",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "xtick.color": "0.35",
    "ytick.color": "0.35",
    "xtick.labelcolor": "0.15",
    "ytick.labelcolor": "0.15",
    "image.cmap": "viridis",
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",
    "svg.hashsalt": "transduce",
}
VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY = COLOURS


@dataclass(frozen=True)
class Look:
    """How a regressor is drawn and what it is called."""

    label: str
    colour: str
    marker: str
    linestyle: Any = "-"
    width: float = 1.4

    @property
    def shape(self) -> tuple[str, str, str]:
        """What tells it from others."""
        return self.colour, self.marker, str(self.linestyle)

    @property
    def line(self) -> dict[str, Any]:
        """Options for `Axes.plot`. A broken line has hollow markers."""
        face = self.colour if self.linestyle == "-" else "white"
        return {
            "color": self.colour,
            "marker": self.marker,
            "markersize": 3.2 + self.width,
            "markerfacecolor": face,
            "linestyle": self.linestyle,
            "linewidth": self.width,
            "zorder": 2 + self.width,
        }


Number = int | float

DASHED, DOTTED = (0, (4, 1.6)), (0, (1.2, 1.6))
LOOKS = {
    "adr": Look("ours (representer)", VERMILION, "o", width=2.8),
    "adr-softmax": Look("Transducer (softmax)", BLUE, "s", width=2.0),
    "burgers": Look("ours (prior)", VERMILION, "o", width=2.8),
    "burgers-softmax": Look("Transducer (softmax)", BLUE, "s", width=2.0),
    "images": Look("ours (convolutional)", VERMILION, "o", width=2.8),
    "images-softmax": Look("Transducer (softmax)", BLUE, "s", width=2.0),
    "climate-europe": Look("ours (remembering)", VERMILION, "o", width=2.8),
    "patches": Look("Transducer (patches)", BLUE, "s", width=2.0),
    "kernel-ridge": Look("kernel ridge (tuned)", GREEN, "D"),
    "fno": Look("FNO (tuned)", PURPLE, "^"),
    "deeponet": Look("DeepONet (tuned)", ORANGE, "v"),
    "gaussian-process": Look("Gaussian process", SKY, "P"),
    "linear-ridge": Look("linear ridge", "0.1", "X"),
    "kernel-ridge-paper": Look("kernel ridge (paper)", GREEN, "D", DASHED),
    "fno-paper": Look("FNO (paper)", PURPLE, "^", DASHED),
    "fno-stopped": Look("FNO (stopped)", PURPLE, "D", DASHED),
    "deeponet-paper": Look("DeepONet (paper)", ORANGE, "v", DASHED),
    "nearest-neighbours": Look("nearest neighbours", "0.35", "h", DASHED),
    "decision-tree": Look("decision tree", "0.55", "p", DASHED),
    "mean": Look("mean of examples", "0.35", "d", DOTTED),
    "identity": Look("identity", "0.6", "*", DOTTED),
    "adr-paper": Look("Transducer (paper)", BLUE, "s", DASHED),
    "fno-all-operators": Look("FNO, all operators", PURPLE, "<", DOTTED),
    "fno-one-operator": Look("FNO, one operator", PURPLE, ">", DOTTED),
    "fno-periodic": Look("FNO (periodic)", PURPLE, "^"),
    "fno of the family": Look("FNO of the family", PURPLE, "<", DOTTED),
    "ridge": Look("ridge", "0.1", "X"),
    "vit": Look("ViT", ORANGE, "v"),
    "vit-without-positions": Look("ViT, no positions", ORANGE, "v", DASHED),
    "climatology": Look("climatology", "0.35", "d", DOTTED),
    "nearest-day": Look("nearest days", "0.35", "h", DASHED),
    "support-vectors": Look("SVM (tuned)", PURPLE, "^"),
    "logistic-regression": Look("logistic regression", "0.1", "X"),
    "maml": Look("MAML", ORANGE, "v"),
    "gpicl": Look("GPICL", SKY, "P"),
    "spectral clustering": Look("spectral clustering", GREEN, "D"),
    "isolation forest": Look("isolation forest", PURPLE, "^"),
    "local outlier factor": Look("local outlier factor", SKY, "P"),
}


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The look of each name, in their order. One that is not in `LOOKS` takes the first look that
    is free, and is called as it is."""
    taken = {LOOKS[name].shape for name in names if name in LOOKS}
    free = {look.shape: look for look in reversed(LOOKS.values()) if look.shape not in taken}
    unknown = [name for name in dict.fromkeys(names) if name not in LOOKS]
    if len(unknown) > len(free):
        most = len(taken) + len(free)
        raise TransduceError(
            f"{len(set(names))} regressors in one figure; at most {most} can be told apart. Draw "
            "fewer."
        )
    given = {
        name: replace(look, label=name)
        for name, look in zip(unknown, reversed(free.values()), strict=False)
    }
    return {name: LOOKS.get(name) or given[name] for name in dict.fromkeys(names)}


@contextmanager
def drawing(path: Any, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure in the house style, written as path.png and path.svg, each whole or not at all."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        for suffix, options in ((".png", {"dpi": 200}), (".svg", {"metadata": {"Date": None}})):
            with replacing(Path(path).with_suffix(suffix)) as partial:
                figure.savefig(partial, **options)


def log_errors(axes: Axes, label: str = "relative MSE") -> None:
    """Errors on a logarithmic y, a grid line for each power of ten."""
    axes.set(yscale="log", ylabel=label)
    axes.yaxis.set_major_locator(LogLocator(numticks=9))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y")


def sized_ticks(axes: Axes, sizes: Sequence[Number]) -> None:
    """A logarithmic x with a tick at each size, named where there is room: from the largest down, a
    quarter of the axis apart."""
    axes.set_xscale("log")
    apart = (max(sizes) / min(sizes)) ** (1 / 3.9)
    named: list[Number] = []
    for size in sorted(set(sizes), reverse=True):
        if not named or named[-1] >= apart * size:
            named.append(size)
    axes.set_xticks(named, [f"{size:g}" for size in named])
    axes.set_xticks(sorted(set(sizes) - set(named)), minor=True)
    axes.xaxis.set_minor_formatter(NullFormatter())


def ramp(count: int) -> list[str]:
    """A colour for each of so many ordered things, light to dark, told apart by all eyes."""
    shades = matplotlib.colormaps["viridis"](np.linspace(0.78, 0.02, count))
    return [to_hex(shade) for shade in shades]


def dark(colour: str) -> tuple[float, float, float]:
    """The colour, dark enough for words on white."""
    red, green, blue = (0.75 * part for part in to_rgb(colour))
    return red, green, blue
