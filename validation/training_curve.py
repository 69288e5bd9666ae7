"""The error of `adr-softmax` against the time of its training, over all its stages.

    python -m validation.training_curve runs/adr-softmax runs/adr-softmax-2 runs/adr-softmax-3

Reads the log of each stage, one after the other, each having gone on from the weights of the one
before. Writes results/training/adr-softmax.json and docs/figures/adr-softmax_training. Validation
error: mean relative MSE at n = 50."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from paper import figures
from transduce.files import provenance
from transduce.report import write_rows


def stages(folders: list[Path]) -> list[dict[str, Any]]:
    """One row for each validation, steps and seconds counted from the first stage on. A clock that
    was started anew goes on."""
    rows: list[dict[str, Any]] = []
    step, seconds = 0, 0.0
    for stage, folder in enumerate(folders, 1):
        before, last = 0.0, 0.0
        for line in map(json.loads, (folder / "log.jsonl").read_text().splitlines()):
            before += last if line["seconds"] < last else 0.0
            last = line["seconds"]
            if line["validation"] is not None and (
                not rows or line["validation"] != rows[-1]["error"]
            ):
                about = {"model": "adr-softmax", "stage": stage, "step": step + line["step"]}
                rows.append(
                    {
                        **about,
                        "seconds": round(seconds + before + last, 1),
                        "error": line["validation"],
                    }
                )
        step, seconds = step + line["step"], seconds + before + last
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/training/adr-softmax.json"))
    parser.add_argument("--figure", type=Path, default=Path("docs/figures/adr-softmax_training"))
    arguments = parser.parse_args()
    rows = stages(arguments.folders)
    write_rows(
        arguments.out,
        rows,
        command=" ".join(["python -m validation.training_curve", *sys.argv[1:]]),
        seed=0,
        **provenance(),
    )
    figures.error_over_training(rows, arguments.figure, figures.PAPER_ERROR)


if __name__ == "__main__":
    main()
