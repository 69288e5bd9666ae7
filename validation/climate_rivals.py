"""How the rivals of climate that see no context are best set: fitted to five years of Europe, asked
about the next two.

    python -m validation.climate_rivals
    about 40 minutes of one core; goes on where it was stopped

The last choices of each network join what helped. Writes results/validation/climate_rivals.json:
the latitude-weighted squared error of each setting in hPa^2, and the processor time of fitting and
asking. `paper.baselines.inductive.CHOSEN` has the settings of least error; no year after the
two is looked at."""

from __future__ import annotations

import argparse
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch

from paper.baselines import INDUCTIVE
from paper.baselines.inductive import VIT
from paper.lab import Lab
from transduce.families import ClimateFields, latitude_weighted_mse, load_climate
from transduce.files import provenance
from transduce.report import markdown_table, write_rows

FITTED, ASKED = slice("2000", "2004"), slice("2005", "2006")
PASCALS = 100  # of a hectopascal

Choice = dict[str, Any]
KERNELS: list[Choice] = [
    {"kernel": kernel, "level": level, "width": width, "alpha": alpha, "linear": 1.0}
    for kernel, level, width, alpha in product(
        ("matern", "rbf"), (0.1, 0.2, 0.3, 1.0), (1.0, 1.8, 3.0), (0.003, 0.01, 0.03)
    )
] + [
    {"kernel": "matern", "level": 0.2, "width": 1.8, "alpha": 0.01, "linear": 1.0} | other
    for other in (
        {"linear": 0.0},
        {"linear": 0.1},
        {"linear": 10.0},
        {"per_point": True},
        {"width": 1.4},
        {"width": 2.3},
        {"alpha": 0.006},
        {"alpha": 0.015},
        {"width": 2.3, "alpha": 0.006},
        {"width": 1.4, "alpha": 0.015},
        {"level": 0.15},
        {"level": 0.25},
    )
]
STEEP: Choice = {
    "kernel": "matern",
    "level": 0.4,
    "width": 2.3,
    "alpha": 0.03,
    "linear": 0.1,
    "slopes": 1.0,
}
KERNELS += [
    STEEP | {"slopes": slopes, "width": width, "alpha": alpha}
    for slopes, width, alpha in product((0.7, 1.0, 1.4), (1.8, 2.3, 3.0), (0.02, 0.03, 0.05))
] + [
    STEEP | other
    for other in (
        {"linear": 0.03},
        {"linear": 0.3},
        {"linear": 1.0},
        {"level": 0.3},
        {"level": 0.6},
        {"level": 1.0},
        {"alpha": 0.08},
        {"alpha": 0.08, "slopes": 1.4},
        {"alpha": 0.05, "linear": 0.03},
        {"alpha": 0.05, "level": 0.3},
        {"alpha": 0.05, "level": 0.6},
        {"alpha": 0.05, "linear": 0.03, "level": 0.6},
    )
]
FNO: Choice = {
    "modes": 5,
    "width": 24,
    "layers": 3,
    "padding": 0.25,
    "dropout": 0.0,
    "weight_decay": 0.3,
    "lr": 3e-3,
    "steps": 2000,
}
CHOICES: dict[str, list[Choice]] = {
    "climatology": [{"window": window} for window in (5, 10, 15, 20, 30, 45, 60)],
    "nearest-day": [{"neighbours": neighbours} for neighbours in (1, 2, 5, 10, 15, 20, 30, 50)],
    "ridge": [{"alpha": alpha} for alpha in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)],
    "kernel-ridge": KERNELS,
    "vit": [
        VIT,
        VIT | {"weight_decay": 0.5},
        VIT | {"weight_decay": 2.0},
        VIT | {"lr": 6e-3},
        VIT | {"patch": 4},
        VIT | {"patch": 2, "width": 48},
        VIT | {"width": 48, "depth": 4},
        VIT | {"dropout": 0.05},
        VIT | {"width": 96, "depth": 2},
        VIT | {"steps": 8000, "dropout": 0.15},
        VIT | {"patch": 7, "width": 128},
        VIT | {"width": 76},  # as many parameters as the paper's form has
    ],
    "vit-without-positions": [
        VIT,
        VIT | {"weight_decay": 0.5},
        VIT | {"patch": 4},
        VIT | {"patch": 5},
        VIT | {"patch": 7},
        VIT | {"patch": 7, "width": 128},
        VIT | {"patch": 7, "width": 128, "lr": 1e-3},
        VIT | {"patch": 7, "steps": 8000},
        VIT | {"patch": 11, "width": 128, "lr": 1e-3},
    ],
    "vit-positions-removed": [VIT],
    "fno": [
        FNO,
        FNO | {"weight_decay": 1.0},
        FNO | {"padding": 0.0},
        FNO | {"modes": 4},
        FNO | {"dropout": 0.1},
        FNO | {"lr": 6e-3},
        FNO | {"layers": 2},
        FNO | {"padding": 0.0, "modes": 6},
        FNO | {"padding": 0.0, "modes": 6, "weight_decay": 1.0, "dropout": 0.1},
        FNO | {"padding": 0.0, "modes": 6, "weight_decay": 1.0, "layers": 4},
        FNO | {"padding": 0.0, "modes": 6, "weight_decay": 1.0, "lr": 1.5e-3},
        FNO | {"padding": 0.0, "modes": 6, "weight_decay": 1.0, "layers": 6},
        FNO | {"padding": 0.0, "modes": 6, "weight_decay": 1.0, "layers": 4, "width": 32},
    ],
}


def measured(
    name: str, choice: Choice, fitted: ClimateFields, asked: ClimateFields
) -> tuple[float, float]:
    """The error in hPa^2, and the processor time."""
    start = time.process_time()
    u_hat = INDUCTIVE[name](**choice).fit(fitted).answers(asked)
    seconds = time.process_time() - start
    return float(latitude_weighted_mse(u_hat / PASCALS, asked.u / PASCALS, asked.lat)), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/validation/climate_rivals.json"))
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("runs/rival_tuning"),
        help="a folder for what has been measured",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    fitted, asked = (load_climate("europe").select(years) for years in (FITTED, ASKED))
    lab, rows = Lab(None, arguments.work, "climate-rivals"), []
    for name, choices in CHOICES.items():
        for choice in choices:
            rival = INDUCTIVE[name](**choice)
            error, seconds = lab.once(
                partial(measured, name, choice, fitted, asked), identity=repr(rival), rival=name
            )
            told = ", ".join(f"{key} {value}" for key, value in choice.items())
            rows.append({"rival": name, "choice": told, "error": error, "seconds": seconds})
            print(markdown_table(rows[-1:]), flush=True)
        ranked = sorted(rows, key=lambda row: row["error"], reverse=True)
        best = {row["rival"]: {"choice": row["choice"], "error": row["error"]} for row in ranked}
        about = {"command": "python -m validation.climate_rivals", "seed": 0, "best": best}
        write_rows(arguments.out, rows, **about, **provenance())


if __name__ == "__main__":
    main()
