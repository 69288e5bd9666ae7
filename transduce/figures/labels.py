"""Labels next to the lines and points that they name, without overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from .style import STYLE, Number, dark

LINE = 1.12 * STYLE["font.size"] / 72  # the height of a line of text, in inches
LEADER = {"arrowstyle": "-", "linewidth": 0.6, "alpha": 0.7, "shrinkA": 1, "shrinkB": 4}
End = tuple[Number, Number, str, str]  # x and y of a point, the words that name it, and its colour


def label_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Name lines to the right of the axes: near where they end, none over another.

    Call it last: the places of the labels follow from the size of the axes.
    """
    if not ends:
        return
    ends = sorted(ends, key=lambda end: end[1])
    _lay_out(axes)
    to_axes = (axes.transData + axes.transAxes.inverted()).transform
    wanted = np.array([to_axes((x, y))[1] for x, y, _, _ in ends])
    lines = max(text.count("\n") + 1 for _, _, text, _ in ends)
    line = LINE * axes.figure.dpi / axes.get_window_extent().height
    for (x, y, text, colour), place in zip(ends, spread(wanted, lines * line), strict=True):
        leader = LEADER | {"color": colour, "relpos": (0, 0.5)}
        words: dict[str, Any] = {"color": dark(colour), "va": "center", "linespacing": 1.05}
        axes.annotate(
            text,
            (x, y),
            (1.06, place),
            textcoords="axes fraction",
            annotation_clip=False,
            arrowprops=leader,
            **words,
        )


def spread(wanted: np.ndarray, gap: float) -> np.ndarray:
    """The places nearest to the wanted ones, which rise, that are `gap` apart and within [0, 1], or
    as far apart as that allows."""
    gap = min(gap, 1 / max(len(wanted) - 1, 1))
    steps = gap * np.arange(len(wanted))
    return rising(wanted - steps).clip(0, 1 - steps[-1]) + steps


def rising(values: np.ndarray) -> np.ndarray:
    """The non-decreasing sequence nearest to `values` in least squares: neighbours that fall are
    replaced by their mean."""
    blocks: list[tuple[float, int]] = []  # the mean of each block, and how many values it has
    for value in values.tolist():
        mean, count = value, 1
        while blocks and blocks[-1][0] >= mean:
            before, many = blocks.pop()
            mean, count = (many * before + count * mean) / (many + count), many + count
        blocks.append((mean, count))
    return np.repeat([mean for mean, _ in blocks], [count for _, count in blocks])


def label_points(axes: Axes, points: Sequence[End]) -> None:
    """Name points, each label as near as it can be without covering a point, another name or
    the frame.

    Call it last: the places of the labels follow from the size of the axes.
    """
    _lay_out(axes)
    inch = axes.figure.dpi
    centres = [axes.transData.transform((x, y)) / inch for x, y, _, _ in points]
    markers = [Bbox.from_bounds(x - 0.06, y - 0.06, 0.12, 0.12) for x, y in centres]
    frame = Bbox(axes.get_window_extent().get_points() / inch)
    places = [
        _beside(centre, _width(axes, text))
        for centre, (_, _, text, _) in zip(centres, points, strict=True)
    ]
    boxes = [near[0] for near in places]
    for k in 3 * list(range(len(points))):
        others = markers + boxes[:k] + boxes[k + 1 :]
        boxes[k] = min(
            places[k], key=lambda box: box.count_overlaps(others) + 10 * _outside(box, frame)
        )
    for (x, y, text, colour), centre, box in zip(points, centres, boxes, strict=True):
        leader = LEADER | {
            "color": colour,
            "relpos": (np.clip((centre[0] - box.x0) / box.width, 0, 1), 0.5),
        }
        offset = (72 * (box.x0 - centre[0]), 36 * (box.y0 + box.y1) - 72 * centre[1])
        note = axes.annotate(
            text,
            (x, y),
            offset,
            textcoords="offset points",
            color=dark(colour),
            va="center",
            arrowprops=leader,
        )
        note.set_in_layout(False)


def _lay_out(axes: Axes) -> None:
    """Settle where the axes stand in their figure."""
    axes.figure.canvas.figure.draw_without_rendering()


def _outside(box: Bbox, frame: Bbox) -> bool:
    return not (frame.contains(*box.min) and frame.contains(*box.max))


def _beside(centre: np.ndarray, width: float) -> list[Bbox]:
    """Places for a label of this width to the right and left of a point, above and below it, the
    nearest first, in inches."""
    shifts = sorted(np.arange(-3, 3.1, 0.5) * LINE, key=abs)
    beside = product(shifts, (0.15, -0.15 - width))
    over = product(
        [shift for shift in shifts if abs(shift) > 0.9 * LINE], (-width / 2, 0.05 - width, -0.05)
    )
    places = sorted([*beside, *over], key=lambda place: abs(place[0]))
    return [
        Bbox.from_bounds(centre[0] + left, centre[1] + shift - 0.4 * LINE, width, 0.8 * LINE)
        for shift, left in places
    ]


def _width(axes: Axes, text: str) -> float:
    """The width of a text, in inches."""
    trial = axes.text(0, 0, text)
    width = trial.get_window_extent().width / axes.figure.dpi
    trial.remove()
    return width
