"""Classifications: accuracy against the number of examples, sureness against truth, and the
examples that answers are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transduce.figures.curves import SHADE
from transduce.figures.style import BLUE, VERMILION, drawing, looks
from transduce.report import Row

from .curves import panels_beside


def accuracy_against_n(rows: Sequence[Row], path: Any, trained_range: tuple[int, int]) -> None:
    """Draw the accuracy of each regressor against the number of examples, a panel for each set, the
    n of meta-training shaded.

    rows: {regressor, set, n, mean, low, high}, in per cent.
    """
    sizes = [row["n"] for row in rows]
    with drawing(path, (3.3 * len({row["set"] for row in rows}), 4.3)) as figure:
        for axes in panels_beside(figure, rows, "set", "n"):
            axes.axvspan(*trained_range, **SHADE)
            axes.set(xlabel="examples n", xlim=(min(sizes) / 1.15, max(sizes) * 1.15))
        figure.axes[0].set_ylabel("accuracy, %")


def reliability(rows: Sequence[Row], path: Any) -> None:
    """Draw how often answers are right against how sure they are, a panel for each set.

    rows: {regressor, set, error, bins}; error: the expected calibration error in per cent; bins:
    sureness, share right, share of all."""
    sets, styles = (
        list(dict.fromkeys(row["set"] for row in rows)),
        looks([row["regressor"] for row in rows]),
    )
    with drawing(path, (3.0 * len(sets), 3.4)) as figure:
        for axes, data in zip(
            figure.subplots(1, len(sets), sharey=True, squeeze=False)[0], sets, strict=True
        ):
            axes.plot([0, 100], [0, 100], color="0.85", linewidth=3, zorder=0)
            for name, look in styles.items():
                for row in (row for row in rows if (row["set"], row["regressor"]) == (data, name)):
                    sure, right, share = 100 * np.array(row["bins"]).T
                    axes.plot(sure, right, label=look.label, **look.line | {"marker": ""})
                    axes.scatter(sure, right, s=4 + 3 * share, color=look.colour, zorder=5)
            axes.set(title=data, xlabel="sure, %", xlim=(0, 100), ylim=(0, 100), aspect="equal")
        figure.axes[0].set_ylabel("right, %")
        figure.axes[0].legend(loc="upper left", fontsize=10)


def attended(rows: Sequence[Row], path: Any) -> None:
    """Draw queries, one a line, and the examples of largest weight for each, framed where they are
    of the query's class.

    rows: {set, image, class, answer, examples: [{image, class, weight}]}; images are square, as
    hexadecimal bytes."""
    columns = 1 + len(rows[0]["examples"])
    with drawing(path, (1.05 * columns, 1.28 * len(rows))) as figure:
        lines = figure.subplots(len(rows), columns, squeeze=False)
        for row, line in zip(rows, lines, strict=True):
            right = row["answer"] == row["class"]
            said = (
                f"answer {row['answer']}"
                if right
                else f"answer {row['answer']}, not {row['class']}"
            )
            _image(line[0], row["image"], said, "0.15" if right else VERMILION)
            line[0].set_ylabel(row["set"], fontsize=10)
            for axes, example in zip(line[1:], row["examples"], strict=True):
                same = example["class"] == row["class"]
                _image(
                    axes,
                    example["image"],
                    f"{example['class']}: {example['weight']:.2f}",
                    BLUE if same else "0.45",
                )
                for spine in axes.spines.values():
                    spine.set(visible=same, color=BLUE, linewidth=2)


def _image(axes: Any, image: str, title: str, colour: str) -> None:
    pixels = np.frombuffer(bytes.fromhex(image), np.uint8)
    side = int(len(pixels) ** 0.5)
    axes.imshow(pixels.reshape(side, side), cmap="gray_r", vmin=0, vmax=255)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, fontsize=9, color=colour, pad=3)
    for spine in axes.spines.values():
        spine.set_visible(False)
