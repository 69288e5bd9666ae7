"""What each choice in training `adr-softmax` is worth: it is taken away from a small model, and the
error measured against time.

    transduce generate adr --operators 6000 --examples 144 --out runs/adr-softmax/tasks.zarr
    python -m validation.training_choices        about 8 minutes on 2 cores

Writes results/training/choices.json and docs/figures/training_choices.png. Every run has the same
steps, tasks and seeds."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from paper.figures import error_over_training
from transduce import models
from transduce.families import AdvectionDiffusionReaction
from transduce.files import provenance
from transduce.metatraining import Training, metatrain
from transduce.report import write_rows
from transduce.storage import StoredFamily

MODEL = {
    "model": "softmax",
    "V": {"space": "SineModes", "modes": 64},
    "U": {"space": "SineModes", "modes": 64},
    "depth": 4,
    "heads": 4,
    "width": 32,
    "hidden": 128,
    "gain": 0.1,
}
TRAINING = Training(
    steps=500,
    muon_lr=0.01,
    n=(10, 100),
    validate_every=100,
    checkpoint_every=10_000,
    validation_tasks=30,
)
HALF = {
    "V": {"space": "FourierModes", "modes": 25, "closed": True},
    "U": {"space": "FourierModes", "modes": 25, "closed": True},
}
CHOICES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as chosen": ({}, {}),
    "AdamW alone, lr 1e-3": ({}, {"muon_lr": 0.0}),
    "AdamW alone, lr 3e-3": ({}, {"muon_lr": 0.0, "lr": 3e-3}),
    "inputs not standardised": ({}, {"standardise": False}),
    "squared loss": ({}, {"loss": "relative_mse"}),
    "averaged weights": ({}, {"average": 0.99}),
    "halving schedule": ({}, {"schedule": "halving"}),
    "25 Fourier modes": (HALF, {}),
}


def curve(
    family: StoredFamily, model: dict[str, Any], training: Training
) -> list[dict[str, float]]:
    """Validation error against seconds and steps of one training."""
    torch.manual_seed(0)
    T = models.build(MODEL | model)
    with TemporaryDirectory() as folder:
        metatrain(T, family, training, validation=AdvectionDiffusionReaction(), out=folder)
        lines = [json.loads(line) for line in (Path(folder) / "log.jsonl").read_text().splitlines()]
    return [
        {"step": line["step"], "seconds": line["seconds"], "error": line["validation"]}
        for line in lines
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("runs/adr-softmax/tasks.zarr"),
        help="a meta-dataset of at least 116 pairs",
    )
    parser.add_argument("--out", type=Path, default=Path("results/training/choices.json"))
    arguments = parser.parse_args()
    family = StoredFamily(arguments.data)
    rows = []
    for name, (model, training) in CHOICES.items():
        points = curve(family, model, replace(TRAINING, **training))
        rows.append(
            {
                "choice": name,
                "error": points[-1]["error"],
                "seconds": points[-1]["seconds"],
                "curve": points,
            }
        )
        print(f"{name:28}{points[-1]['error']:10.2e}{points[-1]['seconds']:8.0f} s", flush=True)
    about = {
        "command": "python -m validation.training_choices",
        "seed": 0,
        "model": MODEL,
        "training": asdict(TRAINING),
        **provenance(),
    }
    write_rows(arguments.out, rows, **about)
    error_over_training(
        [{"model": row["choice"], **point} for row in rows for point in row["curve"]],
        "docs/figures/training_choices",
    )


if __name__ == "__main__":
    main()
