"""The figure of docs/files.md, layouts of tables: `python examples/table_layouts.py [folder]`."""

import sys
from pathlib import Path

from transduce.figures import COLOURS, drawing
from transduce.figures.style import dark

COLOUR = {"v": COLOURS[1], "u": COLOURS[0], "x": COLOURS[2], "id": "0.45", "": "0.75"}
WIDE = [
    ["day", "temp_1", "temp_2", "…", "load_1", "load_2", "…"],
    ["Mon", "12.1", "12.4", "…", "310", "305", "…"],
    ["Tue", "9.8", "10.2", "…", "342", "338", "…"],
]
POSITIONS = [["850", "852", "…"], ["2.62", "2.63", "…"], ["2.83", "2.84", "…"]]
OUTPUTS = [["fat", "water"], ["22.5", "60.5"], ["40.1", "46.0"]]
LONG = [
    ["id", "x", "v", "u"],
    ["a", "0.0", "1.2", "0.3"],
    ["a", "0.5", "1.4", "0.1"],
    ["b", "0.0", "0.9", "0.7"],
]


def roles(header):
    """What each column of a header is."""
    first = {"temp": "v", "load": "u", "day": "id", "id": "id", "x": "x", "v": "v", "u": "u"}
    found = []
    for name in header:
        found.append(found[-1] if name == "…" else first.get(name.split("_")[0], ""))
    return found


def draw(axes, rows, title, kinds=None, positions=False):
    """One table.

    axes: where. rows: cells, the header first. title: above it. kinds: what each column is;
    default: by its name. positions: whether the header is made of positions.
    """
    kinds = kinds or roles(rows[0])
    for i, row in enumerate(rows):
        for j, (cell, kind) in enumerate(zip(row, kinds, strict=True)):
            role = "x" if positions and i == 0 else kind
            shade = 0.30 if i == 0 else 0.12
            axes.fill([j, j + 1, j + 1, j], [-i, -i, -i - 1, -i - 1], color=COLOUR[role],
                      alpha=shade, edgecolor="white", linewidth=1.5)  # fmt: skip
            weight = "bold" if i == 0 else "normal"
            axes.text(j + 0.5, -i - 0.53, cell, ha="center", va="center", weight=weight,
                      color=dark(COLOUR[role]), fontsize=11)  # fmt: skip
    axes.set(xlim=(0, len(rows[0])), ylim=(-len(LONG), 0))
    axes.set_title(title, loc="left")
    axes.set_axis_off()


def layouts(path):
    """The layouts side by side, and what the colours mean."""
    with drawing(path, (11.5, 2.7)) as figure:
        sizes = [len(WIDE[0]), len(POSITIONS[0]), len(OUTPUTS[0]), len(LONG[0])]
        figure.get_layout_engine().set(wspace=0.06)
        a, b, c, d = figure.subplots(1, 4, width_ratios=sizes)
        draw(a, WIDE, "wide: a row for each pair")
        draw(b, POSITIONS, "two files: v.csv", ["v"] * 3, positions=True)
        draw(c, OUTPUTS, "and u.csv", ["u"] * 2)
        draw(d, LONG, "long: a row for each point")
        words = {"v": "inputs v", "u": "outputs u", "x": "positions", "id": "names of pairs"}
        for j, (kind, word) in enumerate(words.items()):
            a.text(1.75 * j, -3.75, f"■ {word}", color=dark(COLOUR[kind]), fontsize=11)


if __name__ == "__main__":
    layouts(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures") / "files_layouts")
