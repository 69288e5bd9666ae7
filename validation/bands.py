"""Do 90 % bands hold 90 %, for every operator, and are they narrow where they can be?

    python -m validation.bands        about 3 minutes on one core

Over unseen operators, at several n: the share of function values inside; of each operator's queries
the median share, at the worst operator; and the interval score (Winkler, lower is better) beside
that of bands of one width with the same coverage: one width for all operators, and, stricter, the
best single width for each operator, which nobody could know. Writes results/adr/bands.json."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch

from transduce.bands import interval_score, quantile
from transduce.families import AdvectionDiffusionReaction
from transduce.files import provenance
from transduce.random_fields import generator_for
from transduce.report import markdown_table, write_rows
from transduce.transducer import Transducer
from transduce.types import Task

SIZES = (20, 50, 100)
LEVEL = 0.9


def band(T: Transducer, task: Task, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The errors of the queries at every point (two of 101 are the ends, where all is zero), and
    the half-widths of their bands."""
    mean, low, high = T.regress(task.examples[:n]).predict(task.queries.v.double(), band=LEVEL)
    return task.queries.u.double() - mean, (high - low) / 2


def summary(n: int, errors: torch.Tensor, halves: torch.Tensor) -> dict[str, Any]:
    """errors, halves: (operator, query, x)."""
    inside = (errors.abs() <= halves).double()
    score = interval_score(errors, halves, LEVEL).mean()
    one = quantile(errors.abs(), float(inside.mean()))
    each = torch.stack(
        [quantile(e.abs(), float(i.mean())) for e, i in zip(errors, inside, strict=True)]
    )[:, None, None]
    return {
        "n": n,
        "covered": float(inside.mean()),
        "worst operator's median query": float(inside.mean(-1).median(1).values.min()),
        "without the ends": float(inside[..., 1:-1].mean(-1).median(1).values.min()),
        "interval score": float(score),
        "beside one width": float(score / interval_score(errors, one, LEVEL).mean()),
        "beside one width for each operator": float(
            score / interval_score(errors, each, LEVEL).mean()
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="adr")
    parser.add_argument("--operators", type=int, default=100)
    parser.add_argument("--split", default="test")
    parser.add_argument("--out", type=Path, default=Path("results/adr/bands.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    T, family = Transducer.from_pretrained(arguments.model), AdvectionDiffusionReaction()
    tasks = [
        family.sample_task(max(SIZES), 50, generator_for(arguments.split, 2, i))
        for i in range(arguments.operators)
    ]
    rows = []
    for n in SIZES:
        errors, halves = (
            torch.stack(part) for part in zip(*(band(T, task, n) for task in tasks), strict=True)
        )
        rows.append(summary(n, errors, halves))
    print(markdown_table(rows))
    about = {
        "command": " ".join(["python -m validation.bands", *sys.argv[1:]]),
        "seed": 2,
        "level": LEVEL,
        "operators": len(tasks),
    }
    write_rows(arguments.out, rows, **about, **provenance())


if __name__ == "__main__":
    main()
