"""What each part of the representer kernel is worth: it is taken away, the model trained equally
short, and the error measured.

    transduce generate adr --operators 5000 --examples 250 --out runs/adr/tasks-5000x250-seed0.zarr
    python -m validation.representer_parts
    about 15 minutes on 2 cores; a run that was stopped goes on

Writes results/adr/parts.json: mean relative MSE over 50 validation operators at several n, clean
and with 5 % noise on the examples."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from transduce.evaluation import evaluate, summarise
from transduce.families import AdvectionDiffusionReaction
from transduce.files import provenance
from transduce.kernels import Mixer
from transduce.metatraining import metatrain
from transduce.models import build
from transduce.random_fields import generator_for
from transduce.recipes import recipe
from transduce.report import markdown_table, write_rows
from transduce.storage import StoredFamily
from transduce.transducer import Transducer

from .robustness import Noisy

STEPS = 400
PARTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "all": ({}, {}),
    "learned features alone": ({"universal": False}, {}),
    "one hidden layer": ({"feature_layers": 1}, {}),
    "one head, as many features": ({"heads": 1, "width": 384}, {}),
    "mix without leave-one-out": ({}, {}),
    "never noise in training": ({}, {"noise": 0.0}),
    "loss not in logarithm": ({}, {"loss": "relative_l2"}),
    "AdamW alone": ({}, {"muon_lr": 0.0}),
    "two layers": ({"depth": 2}, {}),
}


def trained(name: str, data: StoredFamily, folder: Path) -> Transducer:
    """The model without the part."""
    adr, (model, training) = recipe("adr"), PARTS[name]
    torch.manual_seed(0)
    T = build(adr.model | model)
    if name == "mix without leave-one-out":
        for part in T.modules():
            if isinstance(part, Mixer):
                part.log_trust.requires_grad_(False).fill_(-torch.inf)
    metatrain(
        T, data, replace(adr.training, steps=STEPS, **training), out=folder / name.replace(" ", "-")
    )
    return T


def errors(T: Transducer) -> dict[str, float]:
    """Mean relative MSE at each n, and with noise."""
    clean, B = AdvectionDiffusionReaction(), generator_for
    rows = {
        f"n = {row['n']}": row["mean"]
        for row in summarise(evaluate(T, clean, (5, 10, 20, 50, 100, 200), 50, B("validation", 3)))
    }
    noisy = summarise(evaluate(T, Noisy(clean, 0.05), (50,), 50, B("validation", 4)))
    return rows | {"n = 50, 5 % noise": noisy[0]["mean"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("runs/adr/tasks-5000x250-seed0.zarr"))
    parser.add_argument("--out", type=Path, default=Path("results/adr/parts.json"))
    parser.add_argument("--runs", type=Path, default=Path("runs/parts"))
    arguments = parser.parse_args()
    data, rows = StoredFamily(arguments.data), []
    for name in PARTS:
        rows.append({"part": name, **errors(trained(name, data, arguments.runs))})
        print(markdown_table(rows[-1:]), flush=True)
        about = {
            "command": "python -m validation.representer_parts",
            "seed": 0,
            "steps": STEPS,
            "recipe": recipe("adr").record(),
        }
        write_rows(arguments.out, rows, **about, **provenance())


if __name__ == "__main__":
    main()
