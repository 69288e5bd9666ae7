"""What each choice in training `burgers-softmax` is worth: it is taken away, and the model trained
anew for as long.

    transduce train burgers-softmax
    draws the operators first, if they are not there
    python -m validation.burgers_softmax_choices
    about 20 minutes of one core; goes on where it was stopped

Writes results/training/burgers_softmax_choices.json. All have the same tasks and seeds; 60 further
steps stand in for the 200 of a lesson, which take as long. Errors are of validation operators with
50 examples, over all increments."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from paper.recipes import LessonFirst, recipe
from transduce.families import Moved
from transduce.files import provenance
from transduce.metatraining import metatrain
from transduce.models import build
from transduce.report import markdown_table, write_rows
from transduce.storage import StoredFamily

RECIPE = recipe("burgers-softmax")
TRAINING = replace(RECIPE.training, steps=80, warmup=20, checkpoint_every=40)
LESSON = replace(RECIPE.lesson, steps=200, checkpoint_every=50)
INSTEAD = 140
CHOICES: dict[str, dict[str, Any]] = {
    "as chosen": {},
    "no lesson": {"lesson": None, "training": {"steps": INSTEAD}},
    "random weights and no lesson, at a rate that suits them": {
        "lesson": None,
        "model": {"model": "softmax", "gain": 0.1},
        "training": {"steps": INSTEAD, "lr": 1.5e-3, "kernel_rate": 1.0},
    },
    "pairs not moved": {"moved": False},
    "kernels at the rate of F and G": {"training": {"kernel_rate": 1.0}},
    "heads of 8": {"model": {"heads": 100, "width": 8}},
}


def changed(options: dict[str, Any]) -> LessonFirst:
    """The recipe, shortened, with one choice taken away."""
    model, training = (
        RECIPE.model | options.get("model", {}),
        replace(TRAINING, **options.get("training", {})),
    )
    return replace(
        RECIPE,
        model=model,
        training=training,
        lesson=options.get("lesson", LESSON),
        moved=options.get("moved", True),
    )


def error(chosen: LessonFirst, stored: StoredFamily, folder: Path) -> float | None:
    """The validation error at the end of one training."""
    torch.manual_seed(0)
    T, family = build(chosen.model), Moved(stored) if chosen.moved else stored
    if chosen.lesson is not None:
        metatrain(T, family, chosen.lesson, out=folder / "lesson")
    return metatrain(T, family, chosen.training, validation=chosen.family, out=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    drawn = Path(
        f"runs/{RECIPE.name}/tasks-{RECIPE.operators}x{RECIPE.examples}-seed{RECIPE.training.seed}.zarr"
    )
    parser.add_argument(
        "--data", type=Path, default=drawn, help="the operators that the recipe draws"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results/training/burgers_softmax_choices.json")
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("runs/burgers_softmax_choices"),
        help="a folder for the trainings",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    stored, rows = StoredFamily(arguments.data), []
    about = {
        "command": "python -m validation.burgers_softmax_choices",
        "seed": 0,
        "lesson": asdict(LESSON),
        "training": asdict(TRAINING),
    }
    for name, options in CHOICES.items():
        rows.append(
            {"choice": name, "error": error(changed(options), stored, arguments.work / name)}
        )
        print(markdown_table(rows[-1:]), flush=True)
        write_rows(arguments.out, rows, **about, **provenance())


if __name__ == "__main__":
    main()
