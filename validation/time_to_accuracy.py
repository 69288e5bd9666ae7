"""From nothing to the paper's error: how long `transduce train adr --until 2.39e-4` trains.

    transduce generate adr --operators 5000 --examples 250 --out runs/adr/tasks-5000x250-seed0.zarr
    python -m validation.time_to_accuracy        about a minute on 2 cores

Writes results/adr/time_to_accuracy.json: the validation error (mean relative MSE at n = 50) against
seconds of training."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from transduce.files import provenance
from transduce.recipes import recipe, train
from transduce.report import markdown_table, write_rows

PAPER = 2.39e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("runs/adr/tasks-5000x250-seed0.zarr"))
    parser.add_argument("--out", type=Path, default=Path("results/adr/time_to_accuracy.json"))
    arguments = parser.parse_args()
    adr = recipe("adr")
    with TemporaryDirectory() as folder:
        place = Path(folder) / f"tasks-{adr.operators}x{adr.examples}-seed{adr.training.seed}.zarr"
        place.symlink_to(arguments.data.absolute())
        train(adr, Path(folder), until=PAPER)
        lines = [json.loads(line) for line in (Path(folder) / "log.jsonl").read_text().splitlines()]
    measured = [line for line in lines if line["validation"]]
    rows = [
        {"step": line["step"], "seconds": line["seconds"], "validation error": line["validation"]}
        for line in measured
    ]
    print(markdown_table(rows))
    write_rows(
        arguments.out,
        rows,
        command="python -m validation.time_to_accuracy",
        seed=adr.training.seed,
        until=PAPER,
        **provenance(),
    )


if __name__ == "__main__":
    main()
