"""How the periodic FNO is best fitted to 100 examples of one Burgers operator: one choice at a time
is changed from a centre.

    python -m validation.burgers_rivals
    about 55 minutes of one core; goes on where it was stopped

The last choices join what helped. Writes results/validation/burgers_rivals.json: for each amplitude
at t = 10, the relative MSE over the functions of a validation operator, and the processor time of a
fit. `periodic_fno` is the one of least geometric mean over both amplitudes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from paper.burgers.setting import AMPLITUDES, TIMES, family_of
from paper.lab import Lab
from transduce.baselines import Fno
from transduce.baselines.fitting import Fitting
from transduce.files import provenance
from transduce.random_fields import generator_for
from transduce.report import markdown_table, write_rows
from validation.rival_tuning import measured, with_options

N, QUERIES, SEED = 100, 20, 5
CENTRE = Fno(
    modes=12,
    width=24,
    layers=4,
    padding=0.0,
    fitting=Fitting(epochs=80, lr=5e-3, batch=10, falling=True),
)
CHOICES: dict[str, dict[str, Any]] = {
    "centre": {},
    "8 modes": {"modes": 8},
    "lr 1e-2": {"lr": 1e-2},
    "batches of 5, half the epochs": {"batch": 5, "epochs": 40, "steps": 800},
    "width 32": {"width": 32},
    "3 layers": {"layers": 3},
    "16 modes": {"modes": 16},
    "3 layers, width 32, batches of 5, half the epochs": {
        "layers": 3,
        "width": 32,
        "batch": 5,
        "epochs": 40,
        "steps": 800,
    },
    "8 modes, 3 layers, width 32, batches of 5, half the epochs": {
        "modes": 8,
        "layers": 3,
        "width": 32,
        "batch": 5,
        "epochs": 40,
        "steps": 800,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/validation/burgers_rivals.json"))
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("runs/rival_tuning"),
        help="a folder for what has been measured",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tasks = {
        a: family_of(a, TIMES[-1]).sample_task(N, QUERIES, generator_for("validation", SEED, 0))
        for a in AMPLITUDES
    }
    rows: list[dict[str, Any]] = []
    for done, (choice, options) in enumerate(CHOICES.items(), start=1):
        for amplitude, task in tasks.items():
            lab = Lab(None, arguments.work, f"burgers-{amplitude:g}-{N}-{QUERIES}-{SEED}")
            rows.append(
                {
                    "choice": choice,
                    "amplitude": amplitude,
                    **measured(lab, with_options(CENTRE, options), [task], N),
                }
            )
        print(f"{done} of {len(CHOICES)}\n{markdown_table(rows[-2:])}", flush=True)
        about = {
            "command": "python -m validation.burgers_rivals",
            "seed": SEED,
            "operators": 1,
            "queries": QUERIES,
        }
        write_rows(arguments.out, rows, **about, **provenance())


if __name__ == "__main__":
    main()
