"""What each choice of the kernel that `climate-europe` remembers with is worth: five years of
Europe remembered, the next two asked about.

    python -m validation.climate_kernel
    about 10 minutes of one core; goes on where it was stopped

Each line changes one thing of what the recipe has (s, l and g: the kernel's three numbers, see
kernels/metric.py). Writes results/validation/climate_kernel.json: the latitude-weighted squared
error in hPa^2. No year after the two is looked at."""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paper.climate.contexts import remembered
from paper.climate.setting import fields
from paper.lab import Lab
from paper.models.memory import remember
from paper.recipes import CHOSEN_ON, LEARNED_FROM, recipe
from transduce import ExampleSet
from transduce.files import provenance
from transduce.kernels import MaternGram, NoiseUnits
from transduce.kernels.systems import LOG_UNIT
from transduce.models import build
from transduce.report import markdown_table, write_rows

MODEL = recipe("climate-europe").model
CHOSEN: dict[str, Any] = {
    **{name: MODEL["V"][name] for name in ("slopes", "level", "reach", "block")},
    "s": MODEL["signal"],
}
CHOICES: list[dict[str, Any]] = [
    {},
    *({"reach": reach} for reach in (0.0, 7.0, 15.0)),
    *({"block": block} for block in (3, 6)),
    *({"slopes": slopes} for slopes in (0.0, 0.7, 1.4)),
    *({"level": level} for level in (0.2, 0.7, 1.0)),
    *({"s": s} for s in (8.0, 32.0)),
    *({"l / s": lines} for lines in (0.1, 1.0)),
    *({"g": g} for g in (0.55, 1.0)),
]


@torch.no_grad()
def measured(choice: dict[str, Any]) -> float:
    """The error in hPa^2 of what is remembered."""
    own = CHOSEN | choice
    V = {**MODEL["V"], **{name: own[name] for name in ("slopes", "level", "reach", "block")}}
    T = build({**MODEL, "V": V, "signal": own["s"]})
    for part in T.modules():
        if isinstance(part, NoiseUnits) and "l / s" in own:
            part.log_lines.copy_(part.log_signal + math.log(own["l / s"]) / LOG_UNIT)
        if isinstance(part, MaternGram) and "g" in own:
            part.log_gain.fill_(math.log(own["g"]) / LOG_UNIT)
    known, whole = LEARNED_FROM.fields, fields()
    T = remember(T, ExampleSet(known.v, known.u))
    return float(np.mean(remembered(T, np.flatnonzero(np.isin(whole.time, CHOSEN_ON.fields.time)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/validation/climate_kernel.json"))
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("runs/rival_tuning"),
        help="a folder for what has been measured",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lab, rows = Lab(None, arguments.work, "climate-kernel"), []
    for choice in CHOICES:
        error = lab.once(partial(measured, choice), identity=repr(MODEL), choice=choice)
        rows.append(
            {
                "what": ", ".join(f"{name} = {value:g}" for name, value in choice.items())
                or "as it is",
                "error": error,
            }
        )
        print(markdown_table(rows[-1:]), flush=True)
    write_rows(
        arguments.out,
        rows,
        command="python -m validation.climate_kernel",
        seed=0,
        chosen=CHOSEN,
        **provenance(),
    )


if __name__ == "__main__":
    main()
