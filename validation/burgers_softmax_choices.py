"""What each choice in training `burgers-softmax` is worth: it is taken away, and the model trained anew for the same steps.

    transduce train burgers-softmax --steps 1                                      draws the operators, if they are not there
    python -m validation.burgers_softmax_choices        about 30 minutes of one core; goes on where it was stopped

Writes results/training/burgers_softmax_choices.json. Every run has the same steps, tasks and seeds; errors are of validation operators with
50 examples, over all increments.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from transduce.families import Moved
from transduce.files import provenance
from transduce.metatraining import metatrain
from transduce.recipes import recipe
from transduce.report import markdown_table, write_rows
from transduce.storage import StoredFamily
from transduce.transducer import Transducer

RECIPE = recipe("burgers-softmax")
TRAINING = replace(RECIPE.training, steps=300, validate_every=100, checkpoint_every=50)
IN_ONES = {name: {**RECIPE.model[name], "unit": 1.0} for name in "VU"}
CHOICES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "as chosen": ({}, {}, True),
    "random weights, at the rates that suit them": ({"init": "xavier", "gain": 0.1}, {"kernel_rate": 1.0}, True),
    "pairs not moved": ({}, {}, False),
    "kernels at the rate of F and G": ({}, {"kernel_rate": 1.0}, True),
    "heads of 16": ({"heads": 26, "width": 16}, {}, True),
    "coefficients in units of one": (IN_ONES, {}, True),
}


def error(stored: StoredFamily, folder: Path, model: dict[str, Any], training: dict[str, Any], moved: bool) -> float:
    """The validation error at the end of one training."""
    torch.manual_seed(0)
    T = Transducer.from_config(RECIPE.model | model)
    metatrain(T, Moved(stored) if moved else stored, replace(TRAINING, **training), validation=RECIPE.family, out=folder)
    return json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["validation"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    drawn = Path(f"runs/{RECIPE.name}/tasks-{RECIPE.operators}x{RECIPE.examples}-seed{RECIPE.training.seed}.zarr")
    parser.add_argument("--data", type=Path, default=drawn, help="the operators that the recipe draws")
    parser.add_argument("--out", type=Path, default=Path("results/training/burgers_softmax_choices.json"))
    parser.add_argument("--work", type=Path, default=Path("runs/burgers_softmax_choices"), help="a folder for the trainings")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    stored, rows = StoredFamily(arguments.data), []
    for name, (model, training, moved) in CHOICES.items():
        rows.append({"choice": name, "error": error(stored, arguments.work / name, model, training, moved)})
        print(markdown_table(rows[-1:]), flush=True)
        about = {"command": "python -m validation.burgers_softmax_choices", "seed": 0, "training": asdict(TRAINING)}
        write_rows(arguments.out, rows, **about, **provenance())


if __name__ == "__main__":
    main()
