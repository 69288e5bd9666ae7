"""How many tasks of images are drawn in a second, 100 examples and 100 queries each:  python -m
benchmarks.tasks

On one thread, and on as many processes as asked, each drawing its own. Seconds are of the clock.
Writes results/benchmarks/tasks.json.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from transduce.families import ComposedImages, PermutedImages, SyntheticImages
from transduce.files import provenance
from transduce.random_fields import generator_for
from transduce.report import markdown_table, write_rows

FAMILIES = {
    "permuted": PermutedImages("mnist"),
    "synthetic": SyntheticImages(),
    "composed": ComposedImages("mnist"),
}


def drawn(name: str, first: int, tasks: int) -> float:
    """Tasks a second of one thread."""
    torch.set_num_threads(1)
    FAMILIES[name].sample_task(100, 100, generator_for("train", 0, first))  # reads the images
    start = time.perf_counter()
    for number in range(first, first + tasks):
        FAMILIES[name].sample_task(100, 100, generator_for("train", 0, number))
    return tasks / (time.perf_counter() - start)


def main(
    tasks: Annotated[int, typer.Option(min=1)] = 1000,
    processes: Annotated[int, typer.Option(min=1)] = 2,
) -> None:
    rows = []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for name in FAMILIES:
            (alone,) = pool.starmap(drawn, [(name, 0, tasks)])
            together = sum(
                pool.starmap(
                    drawn, [(name, k * tasks, tasks) for k in range(processes)], chunksize=1
                )
            )
            rows.append(
                {
                    "tasks": name,
                    "a second, one process": alone,
                    f"a second, {processes} processes": together,
                }
            )
    print(markdown_table(rows))
    about = {"command": " ".join(["python -m benchmarks.tasks", *sys.argv[1:]]), "seed": 0}
    write_rows(Path("results/benchmarks/tasks.json"), rows, **about, **provenance())


if __name__ == "__main__":
    typer.run(main)
