"""Does a prior over operators help on advection, diffusion and reaction, where examples are few?

    transduce generate adr --operators 2000 --examples 60 --out runs/adr-2000x60.zarr
    python -m validation.adr_prior --data runs/adr-2000x60.zarr        about 20 minutes on one core

Three models trained alike, for the same steps, on the same operators: the representer kernel alone,
a prior alone, and the kernel on what the prior leaves. Coefficients of an ADR operator change along
x, which a read-out that is the same at every x does not know, so the network is told x. Errors at
few examples over validation operators. Writes results/adr/prior.json."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from transduce.evaluation import evaluate, summarise
from transduce.families import AdvectionDiffusionReaction
from transduce.files import provenance
from transduce.metatraining import metatrain
from transduce.models import build
from transduce.random_fields import generator_for
from transduce.recipes import recipe
from transduce.report import results_table, write_rows
from transduce.storage import StoredFamily

SIZES = [2, 5, 10, 20]
ADR = recipe("adr").model
SPACES = {name: ADR[name] for name in ("V", "U")}
NETWORK = {"channels": 32, "layers": 4, "modes": 16, "grid": 101}
MODELS: dict[str, dict[str, Any]] = {
    "kernel": ADR,
    "prior": {"model": "spectral", **SPACES, **NETWORK},
    "prior and kernel": {
        "model": "spectral-representer",
        **SPACES,
        "spectral": NETWORK,
        "representer": {name: ADR[name] for name in ADR if name not in ("model", "V", "U")},
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="training operators, as `transduce generate adr` stores them",
    )
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--operators", type=int, default=50)
    parser.add_argument("--work", type=Path, default=Path("runs/adr-prior"))
    arguments = parser.parse_args()
    family, data = AdvectionDiffusionReaction(), StoredFamily(arguments.data)
    how = replace(
        recipe("adr").training, steps=arguments.steps, n=(2, 40), noise=0.0, left_out=True
    )
    rows = []
    for name, options in MODELS.items():
        torch.manual_seed(0)
        T = build(options)
        metatrain(T, data, how, validation=family, out=arguments.work / name.replace(" ", "-"))
        measured = evaluate(T, family, SIZES, arguments.operators, generator_for("validation", 7))
        rows += [{"regressor": name, **row} for row in summarise(measured)]
    print(results_table({"rows": rows}))
    about = {
        "command": " ".join(["python -m validation.adr_prior", *sys.argv[1:]]),
        "seed": 7,
        "steps": arguments.steps,
    }
    write_rows(Path("results/adr/prior.json"), rows, **about, **provenance())


if __name__ == "__main__":
    main()
