"""The figure of benchmarks/general_fields.py: an input, its image, the answer and its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transduce.figures import drawing

TITLES = {"darcy": "flow through rock", "burgers": "Burgers", "europe": "weather"}
PARTS = ("v", "truth", "answer", "answer - truth")


@dataclass(frozen=True, eq=False)
class Shown:
    """One held-out pair, the first channels of its fields.

    Attributes:
        name: of the set.
        n: number of examples.
        v, u, answer: fields.
    """

    name: str
    n: int
    v: np.ndarray
    u: np.ndarray
    answer: np.ndarray


def draw(lines: Sequence[Shown], path: Path) -> None:
    """One line of panels for each pair. Truth, answer and error share their scale."""
    with drawing(path, (9.6, 2.3 * len(lines))) as figure:
        panels = figure.subplots(len(lines), len(PARTS), squeeze=False)
        for axes, title in zip(panels[0], PARTS, strict=True):
            axes.set_title(title)
        for row, each in zip(panels, lines, strict=True):
            middle = (each.u.max() + each.u.min()) / 2
            half = (each.u.max() - each.u.min()) / 2
            fields = (each.v, each.u, each.answer, each.answer - each.u + middle)
            for axes, f, title in zip(row, fields, PARTS, strict=True):
                of_u = {} if title == "v" else {"vmin": middle - half, "vmax": middle + half}
                axes.imshow(f, cmap="RdBu_r" if title == PARTS[-1] else "viridis", **of_u)
                axes.set(xticks=[], yticks=[])
            row[0].set_ylabel(f"{TITLES[each.name]}\nn = {each.n}", fontsize=10)
