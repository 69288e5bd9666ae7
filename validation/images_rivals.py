"""How the rivals that are meta-trained on images learn best: one choice at a time is changed from a
centre, for a short training each.

    python -m validation.images_rivals
    about 20 minutes of one core; goes on where it was stopped

Writes results/validation/images_rivals.json: the relative squared error of the probabilities on
validation tasks of the family that they learn from, at n = 50, and the seconds of training. The
experiment's rivals have the choices of least error."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from paper.images.setting import training_of
from paper.lab import Lab
from paper.trainings import trained
from transduce.files import provenance
from transduce.recipes import IMAGES
from transduce.report import markdown_table, write_rows

STEPS = {"maml": 120, "gpicl": 600}
CHOICES: dict[str, list[dict[str, Any]]] = {
    "maml": [
        {"rate": 0.1, "lr": 1e-3},
        {"rate": 0.03, "lr": 1e-3},
        {"rate": 0.3, "lr": 1e-3},
        {"rate": 0.1, "lr": 3e-3},
        {"rate": 0.1, "lr": 1e-2},
    ],
    "gpicl": [
        {"lr": 1e-3},
        {"lr": 3e-4},
        {"lr": 1e-4},
        {"lr": 1e-3, "muon_lr": 0.01},
        {"lr": 1e-3, "muon_lr": 0.003},
        {"lr": 1e-3, "muon_lr": 0.03},
    ],
}


@dataclass(frozen=True)
class Scale:
    seed: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/validation/images_rivals.json"))
    parser.add_argument(
        "--work", type=Path, default=Path("runs/rival_tuning"), help="a folder for trainings"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for name, choices in CHOICES.items():
        for choice in choices:
            rates = {key: choice[key] for key in ("lr", "muon_lr") if key in choice}
            options = {key: value for key, value in choice.items() if key not in rates}
            how = replace(
                training_of(name, STEPS[name]),
                **({"muon_lr": 0.0} | rates),
                validate_every=STEPS[name],
            )
            end = trained(
                Lab(Scale(), arguments.work),
                {"learner": name, "options": options},
                how,
                IMAGES,
                IMAGES,
            ).curve[-1]
            told = ", ".join(f"{key} {value:g}" for key, value in choice.items())
            rows.append(
                {
                    "rival": name,
                    "choice": told,
                    "training steps": end["step"],
                    "error": end["error"],
                    "seconds": end["seconds"],
                }
            )
            print(markdown_table(rows[-1:]), flush=True)
    write_rows(
        arguments.out, rows, command="python -m validation.images_rivals", seed=0, **provenance()
    )


if __name__ == "__main__":
    main()
