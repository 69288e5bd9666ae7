"""Do bands made of many regressions hold 90 %, beside the model's own?

    python -m validation.resampled_bands        about 5 minutes on one core

Over unseen ADR operators, at several n: the share of function values inside, on average and of the
operators that are covered least and most (one in ten below, one in ten above); the interval score
(Winkler, lower is better) and the width, relative to u. Writes results/adr/resampled_bands.json and
docs/figures/bands.png."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from paper import figures
from paper.burgers.bands import BANDS, covered, summary
from transduce.families import AdvectionDiffusionReaction
from transduce.files import provenance
from transduce.random_fields import generator_for
from transduce.report import markdown_table, write_rows
from transduce.transducer import Transducer
from transduce.types import Task

SIZES = (20, 50, 100)
OPERATORS = 50
SHOWN = 20  # examples in the figure


def main() -> None:
    torch.set_num_threads(1)
    T, family = Transducer.from_pretrained("adr"), AdvectionDiffusionReaction()
    tasks = [
        family.sample_task(max(SIZES), 20, generator_for("test", 4, i)) for i in range(OPERATORS)
    ]
    rows: list[dict[str, Any]] = []
    for n in SIZES:
        for name, bands in BANDS.items():
            found = [covered(bands, T, Task(task.examples[:n], task.queries)) for task in tasks]
            rows.append({"n": n, "bands": name, **summary(found)})
            print(markdown_table(rows[-1:]), flush=True)
    about = {
        "command": " ".join(["python -m validation.resampled_bands", *sys.argv[1:]]),
        "seed": 4,
        "operators": OPERATORS,
    }
    write_rows(Path("results/adr/resampled_bands.json"), rows, **about, **provenance())
    draw(T, Task(tasks[0].examples[:SHOWN], tasks[0].queries))


def draw(T: Transducer, task: Task) -> None:
    answers = {name: bands(T, task.examples, task.queries.v, 0.9) for name, bands in BANDS.items()}
    panels = {
        name: {"mean": mean[0], "low": low[0], "high": high[0]}
        for name, (mean, low, high) in answers.items()
    }
    figures.bands_about(panels, task.queries.u[0], Path("docs/figures/bands"))


if __name__ == "__main__":
    main()
