"""The figure of docs/random_field_operators.md: `python examples/field_operators.py [folder]`.

Two pairs of one operator of each of eight mechanisms, drawn in seconds.
"""

import sys
from pathlib import Path

import torch
from PIL import Image

from transduce.families import RandomFieldOperators
from transduce.figures import drawing
from transduce.random_fields import generator_for

SHOWN = {  # with the number of the operator
    "darcy": 11,
    "forced": 11,
    "transport": 12,
    "flow": 40,
    "trajectory": 12,
    "linear": 30,
    "sandwich": 12,
    "maps": 11,
}


def pairs(path):
    """The first channels of v and u, two pairs an operator."""
    with drawing(path, (11.5, 5.2)) as figure:
        panels = figure.subplots(4, len(SHOWN))
        for column, (name, number) in zip(panels.T, SHOWN.items(), strict=True):
            family = RandomFieldOperators((name,), noisy=0.0)
            shown = family.sample_task(2, 1, generator_for("train", number)).examples
            column[0].set_title(name)
            for i, axes in enumerate(column):
                f = (shown.v, shown.u)[i % 2][i // 2, 0]
                axes.imshow(f.T, origin="lower", cmap="viridis")
                axes.set(xticks=[], yticks=[])
        for i, axes in enumerate(panels[:, 0]):
            axes.set_ylabel(("v", "u")[i % 2])


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures")
    path = folder / "random_field_operators"
    pairs(path)
    path.with_suffix(".svg").unlink()
    picture = Image.open(path.with_suffix(".png")).convert("RGB").quantize(96)
    picture.save(path.with_suffix(".png"), optimize=True)
