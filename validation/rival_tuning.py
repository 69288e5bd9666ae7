"""How FNO and DeepONet are best fitted to the examples of one operator: one choice at a time is
changed from a centre, then from the best.

    python -m validation.rival_tuning
    about 40 minutes of one core; goes on where it was stopped

Writes results/adr/rivals.json: mean and median relative MSE over the functions of a few validation
operators, and the seconds of processor time of a fit, the median over operators. The rivals as the
library has them are the best: batches of 20 for the FNO, 4 layers for the DeepONet. They are
checked at n = 200."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch

from paper.lab import Lab
from transduce.baselines import DeepOnet, Fitting, Fno, baseline
from transduce.families import AdvectionDiffusionReaction
from transduce.files import provenance
from transduce.metrics import relative_squared_errors
from transduce.random_fields import generator_for
from transduce.report import markdown_table, write_rows
from transduce.types import Regressor, Task

OPERATORS, POOL, QUERIES, SEED = 4, 200, 50, 5
FITTINGS = {
    "fno": Fitting(epochs=300, steps=1500, lr=3e-3, batch=10, falling=True),
    "deeponet": Fitting(epochs=400, steps=2000, lr=3e-3, batch=50, falling=True, weight_decay=1e-4),
}
NETWORKS: dict[str, Callable[..., Regressor]] = {
    "fno": partial(Fno, modes=16, width=64, layers=1, padding=0.1),
    "deeponet": partial(DeepOnet, width=200, layers=2, activation="relu"),
}
CHOICES: dict[str, dict[str, dict[str, Any]]] = {
    "fno": {
        "centre": {},
        "no padding": {"padding": 0.0},
        "8 modes": {"modes": 8},
        "width 32": {"width": 32},
        "2 layers": {"layers": 2},
        "4 layers": {"layers": 4},
        "lr 1e-3": {"lr": 1e-3},
        "lr 6e-3": {"lr": 6e-3},
        "constant rate of 1e-3": {"lr": 1e-3, "falling": False},
        "batches of 20": {"batch": 20},
        "weight decay 1e-5": {"weight_decay": 1e-5},
        "half the steps": {"epochs": 150, "steps": 750},
        "a tenth held out": {"held_out": 0.1, "patience": 50},
        "batches of 20, lr 6e-3": {"batch": 20, "lr": 6e-3},
    },
    "deeponet": {
        "centre": {},
        "width 100": {"width": 100},
        "4 layers": {"layers": 4},
        "tanh": {"activation": "tanh"},
        "lr 1e-3": {"lr": 1e-3},
        "lr 6e-3": {"lr": 6e-3},
        "no weight decay": {"weight_decay": 0.0},
        "batches of 10": {"batch": 10},
        "twice the steps": {"epochs": 800, "steps": 4000},
        "a tenth held out": {"held_out": 0.1, "patience": 200},
        "4 layers, lr 6e-3": {"layers": 4, "lr": 6e-3},
        "4 layers, no weight decay": {"layers": 4, "weight_decay": 0.0},
        "4 layers, batches of 10": {"layers": 4, "batch": 10},
    },
}


def changed(name: str, options: dict[str, Any]) -> Regressor:
    """The centre of this name with other options of its network or of its fitting."""
    return with_options(NETWORKS[name](fitting=FITTINGS[name]), options)


def with_options(centre: Any, options: dict[str, Any]) -> Any:
    """A regressor with other options of its network or of its fitting."""
    of_fitting = {
        key: value for key, value in options.items() if key in Fitting.__dataclass_fields__
    }
    of_network = {key: value for key, value in options.items() if key not in of_fitting}
    return replace(centre, fitting=replace(centre.fitting, **of_fitting), **of_network)


def fitted(regressor: Regressor, task: Task) -> tuple[list[float], float]:
    """Errors over a task's functions, and the processor time of the fit."""
    start = time.process_time()
    O = regressor.regress(task.examples)
    seconds = time.process_time() - start
    return relative_squared_errors(O(task.queries.v), task.queries.u).tolist(), seconds


def measured(lab: Lab, regressor: Regressor, tasks: list[Task], n: int) -> dict[str, Any]:
    """Mean and median error over the functions of all tasks, and the processor time of a fit."""
    found = []
    for operator, task in enumerate(tasks):
        given = Task(task.examples[:n], task.queries)
        found.append(
            lab.once(
                partial(fitted, regressor, given), identity=repr(regressor), n=n, operator=operator
            )
        )
    errors = [error for of_task, _ in found for error in of_task]
    return {
        "n": n,
        "mean": fmean(errors),
        "median": median(errors),
        "seconds": median(seconds for _, seconds in found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/adr/rivals.json"))
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("runs/rival_tuning"),
        help="a folder for what has been measured",
    )
    arguments = parser.parse_args()
    lab = Lab(None, arguments.work, f"{OPERATORS}-{POOL}-{QUERIES}-{SEED}")
    torch.set_num_threads(1)
    family = AdvectionDiffusionReaction()
    tasks = [
        family.sample_task(POOL, QUERIES, generator_for("validation", SEED, number))
        for number in range(OPERATORS)
    ]
    trials = [
        (name, choice, changed(name, options), 50)
        for name, choices in CHOICES.items()
        for choice, options in choices.items()
    ]
    trials += [(name, "as chosen", baseline(name), 200) for name in CHOICES]
    rows: list[dict[str, Any]] = []
    for done, (name, choice, regressor, n) in enumerate(trials, start=1):
        rows.append({"rival": name, "choice": choice, **measured(lab, regressor, tasks, n)})
        print(f"{done} of {len(trials)}\n{markdown_table(rows[-1:])}", flush=True)
        about = {
            "command": "python -m validation.rival_tuning",
            "seed": SEED,
            "operators": OPERATORS,
            "queries": QUERIES,
        }
        write_rows(arguments.out, rows, **about, **provenance())


if __name__ == "__main__":
    main()
