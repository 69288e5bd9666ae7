"""What fields of the paper's size take in memory and time (section 5.3, supplement S.4.3):  python
-m benchmarks.fields

    720 x 720 points, 15 examples and 5 queries, patches of 40 x 40,
    6 layers of 40 heads x 16, spatial attention among neighbours

The fields are hours of one day of ERA5, which stand in for days, interpolated as in the paper: 2 m
temperature in kelvin, surface pressure in pascal. A training step is one of meta-training: forward,
backward and AdamW, with checkpointing and without; a prediction is a regression and its answers.
Each is measured in a process of its own, on one thread. `before_mib` and `peak_mib` are the most
that the process has held, libraries and data included, before the work and in all; seconds are
processor time. Ratios are to the step without checkpointing. Writes results/benchmarks/fields.json.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from paper.models import patches
from paper.timing import medians
from transduce.families import ClimateWindows, open_climate, regridded
from transduce.files import data_folders, not_found_in, provenance
from transduce.metatraining import Run, Training, make_fabric, stack
from transduce.random_fields import generator_for
from transduce.report import Row, markdown_table, write_rows
from transduce.spaces import Patches
from transduce.transducer import Transducer
from transduce.types import Task, TransduceError

ERA5 = Path("climate") / "era5_surface_2025_11_11.nc"
SIDES = (180, 360, 720)
EXAMPLES, QUERIES = 15, 5
MODEL: dict[str, Any] = {
    "depth": 6,
    "heads": 40,
    "width": 16,
    "hidden": 512,
    "reach": 1,
}
STEP, CHECKPOINTED = "training step", "training step, checkpointing"


def task_of(side: int) -> Task:
    """Hours of ERA5 on side x side points: examples and queries."""
    paths = [folder / ERA5 for folder in data_folders()]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        raise TransduceError(
            f"{ERA5} is {not_found_in(data_folders())}. Set TRANSDUCE_DATA to a folder that has it."
        )
    fields = regridded(
        open_climate(path),
        lat=np.arange(side) * -180 / side + 90,
        lon=np.arange(side) * 360 / side - 180,
    )
    return ClimateWindows(fields).sample_task(EXAMPLES, QUERIES, generator_for("train", 0))


def prediction(T: Transducer, task: Task) -> Callable[[], Any]:
    T.eval()
    return lambda: T.regress(task.examples)(task.queries.v)


def training_step(T: Transducer, task: Task) -> Callable[[], Any]:
    training = Training(
        steps=1000,
        lr=1e-4,
        muon_lr=0.0,
        tasks=1,
        n=(EXAMPLES, EXAMPLES),
        queries=QUERIES,
        standardise=False,
    )
    run, batches = Run(T.train(), training, make_fabric()), [stack([task])]
    run.set_up()
    return lambda: run.advance(batches)


WORKS = {"prediction": prediction, STEP: training_step, CHECKPOINTED: training_step}


def measured(side: int, what: str, repeats: int) -> Row:
    """One piece of work, in a process that does nothing else."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    T = patches(Patches(40, 512, 280.0, 20.0), Patches(40, 512, 1e5, 1e4), **MODEL)
    T.checkpointing = what == CHECKPOINTED
    work = WORKS[what](T, task_of(side))
    before = peak_mib()
    (seconds,) = medians(work, repeats=repeats)
    return {
        "grid": f"{side} x {side}",
        "what": what,
        "seconds": seconds,
        "before_mib": before,
        "peak_mib": peak_mib(),
    }


def peak_mib() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform == "darwin" else 2**10
    )


def with_ratios(rows: list[Row]) -> list[Row]:
    """What checkpointing costs and saves, in rows of one grid."""
    (plain,) = (row for row in rows if row["what"] == STEP)
    ratios = (
        {
            f"{name} ratio": row[key] / plain[key]
            for name, key in (("seconds", "seconds"), ("peak", "peak_mib"))
        }
        for row in rows
    )
    return [
        row | (ratio if row["what"] == CHECKPOINTED else dict.fromkeys(ratio))
        for row, ratio in zip(rows, ratios, strict=True)
    ]


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke test: every measurement, few and small.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for fields.json.")] = Path(
        "results/benchmarks"
    ),
) -> None:
    """Measure everything, print the table, write the rows."""
    rows = []
    for side in (80,) if quick else SIDES:
        alone = []
        for what in WORKS:
            with multiprocessing.get_context("spawn").Pool(
                1
            ) as pool:  # each its own: a process never forgets its peak
                alone.append(pool.apply(measured, (side, what, 1 if quick else 3)))
        rows += with_ratios(alone)
    print(markdown_table(rows))
    about = {
        "command": " ".join(["python -m benchmarks.fields", *sys.argv[1:]]),
        "seed": 0,
        "examples": EXAMPLES,
        "queries": QUERIES,
    }
    torch.set_num_threads(1)
    write_rows(
        out / "fields.json",
        rows,
        **about,
        model={"patch": 40, "tokens": 512, **MODEL},
        **provenance(),
    )


if __name__ == "__main__":
    typer.run(main)
