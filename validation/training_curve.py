"""The error of a model against the time of its training, over all its stages.

    python -m validation.training_curve runs/adr-softmax runs/adr-softmax-2 runs/adr-softmax-3
    python -m validation.training_curve runs/general/readout --model general

Reads the log of each stage, one after the other, each having started from the weights of the one
before. Writes results/training/MODEL.json and docs/figures/MODEL_training. Validation error of
`adr-softmax`: mean relative MSE at n = 50. Of the read-out of `general`: geometric mean of the
squared error about the mean of the examples, on mechanisms that are held out."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from paper import figures
from transduce.files import provenance
from transduce.report import write_rows

MEASURES = {"general": "error on held-out mechanisms"}  # others: the figure's own


def stages(folders: list[Path], model: str = "adr-softmax") -> list[dict[str, Any]]:
    """One row for each validation, steps and seconds counted from the first stage on. A clock that
    was restarted continues."""
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
                about = {"model": model, "stage": stage, "step": step + line["step"]}
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
    parser.add_argument("--model", default="adr-softmax")
    arguments = parser.parse_args()
    model = arguments.model
    rows = stages(arguments.folders, model)
    write_rows(
        Path(f"results/training/{model}.json"),
        rows,
        command=" ".join(["python -m validation.training_curve", *sys.argv[1:]]),
        seed=0,
        **provenance(),
    )
    figure = Path(f"docs/figures/{model}_training")
    if model in MEASURES:
        figures.error_over_training(rows, figure, measure=MEASURES[model])
    else:
        figures.error_over_training(rows, figure, figures.PAPER_ERROR)


if __name__ == "__main__":
    main()
