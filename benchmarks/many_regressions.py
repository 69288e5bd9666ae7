"""How long thousands of regressions take together, beside one by one, in one run:  python -m
benchmarks.many_regressions

Half-splits of 100 examples: from each half, the errors of the other. One by one means `regress` and
its answers, timed for a few splits; the table says what as many as asked would take. Seconds are of
the clock, on the threads that torch takes. Writes results/benchmarks/many_regressions.json."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from transduce.families import AdvectionDiffusionReaction, Burgers2d
from transduce.files import provenance
from transduce.metrics import relative_squared_errors
from transduce.random_fields import generator_for
from transduce.report import markdown_table, write_rows
from transduce.transducer import Transducer
from transduce.types import ExampleSet, OperatorFamily
from transduce.uncertainty import half_splits, many_regressions

CASES: dict[str, OperatorFamily] = {
    "burgers": Burgers2d(),
    "adr": AdvectionDiffusionReaction(),
    "adr-softmax": AdvectionDiffusionReaction(),
}


def timed(T: Transducer, examples: ExampleSet, masks: torch.Tensor, loop: int) -> dict[str, Any]:
    """Seconds of all masks together and one by one, and how far the errors of the two are apart."""
    start = time.perf_counter()
    errors = many_regressions(T, examples, masks).errors()
    together = time.perf_counter() - start
    start, apart = time.perf_counter(), 0.0
    for mask, row in zip(masks[:loop].numpy(), errors, strict=False):
        found = relative_squared_errors(
            T.regress(examples[mask])(examples.v[~mask]), examples.u[~mask]
        )
        apart = max(apart, float((row[~mask] / found - 1).abs().max()))
    each = (time.perf_counter() - start) / loop
    return {
        "seconds": together,
        "one by one": len(masks) * each,
        "times faster": len(masks) * each / together,
        "largest difference": apart,
    }


def main(
    regressions: Annotated[int, typer.Option(min=1)] = 5000,
    n: Annotated[int, typer.Option(min=4)] = 100,
    loop: Annotated[int, typer.Option(min=1)] = 10,
) -> None:
    rows = []
    for name, family in CASES.items():
        examples = family.sample_task(n, 1, generator_for("test", 6)).examples
        masks = half_splits(n, regressions, generator_for("test", 6, 1))
        row = timed(Transducer.from_pretrained(name), examples, masks, loop)
        rows.append({"model": name, "regressions": regressions, "examples": n, **row})
    print(markdown_table(rows))
    about = {
        "command": " ".join(["python -m benchmarks.many_regressions", *sys.argv[1:]]),
        "seed": 6,
        "threads": torch.get_num_threads(),
    }
    write_rows(Path("results/benchmarks/many_regressions.json"), rows, **about, **provenance())


if __name__ == "__main__":
    typer.run(main)
