"""Figure 4: initial and target field, estimate and its error; and the supplement's picture of the
Fourier quadrants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from transduce.metrics import relative_squared_errors
from transduce.random_fields import generator_for
from transduce.spaces import FourierModes
from transduce.transducer import Transducer

from .. import figures
from ..lab import Lab, Part, Row
from ..measuring import rounded
from .setting import AMPLITUDES, BEST, TIMES, family_of, identity

KEPT = 10  # modes a side in the paper's quadrants
MODES = (10, 16, 20, 24)


def measured(lab: Lab) -> list[Row]:
    rows = []
    for amplitude in AMPLITUDES:
        task = family_of(amplitude, TIMES[-1]).sample_task(
            lab.scale.table_n, 1, generator_for("test", lab.scale.seed, 1000)
        )
        u_hat = Transducer.from_pretrained(BEST).regress(task.examples)(task.queries.v)
        error = float(relative_squared_errors(u_hat, task.queries.u)[0])
        fields = {"v": task.queries.v[0], "u": task.queries.u[0], "u_hat": u_hat[0]}
        spectrum = torch.fft.rfft2(task.queries.u[0], norm="forward").abs().square().sum(0)
        rows.append(
            {
                "amplitude": amplitude,
                "relative_mse": error,
                **{name: rounded(f) for name, f in fields.items()},
                "outside": [outside(task.examples.u, modes) for modes in MODES],
                "spectrum": rounded(torch.fft.fftshift(spectrum, 0).clamp(min=1e-30).log10()),
            }
        )
    return rows


def outside(u: torch.Tensor, modes: int) -> float:
    """The mean share of functions that so many modes a side do not hold."""
    space = FourierModes((modes, modes), channels=2)
    return float(
        relative_squared_errors(space.decode(space.encode(u), tuple(u.shape[-2:])), u).mean()
    )


def measure(lab: Lab) -> list[Row]:
    return lab.once(
        lambda: measured(lab),
        fields=lab.scale.table_n,
        identity=identity(BEST),
        seed=lab.scale.seed,
    )


def table(rows: Sequence[Row]) -> list[Row]:
    names = [f"outside of {modes} x {modes} modes" for modes in MODES]
    return [
        {"amplitude": row["amplitude"], **dict(zip(names, row["outside"], strict=True))}
        for row in rows
    ]


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.planes(
        [{**row, "title": f"amplitude {row['amplitude']:g}"} for row in rows], folder / "fields"
    )
    figures.quadrants(np.array(rows[0]["spectrum"]), KEPT, folder / "quadrants")


PART = Part(
    "fields",
    "initial field, target, estimate and error (figure 4); Fourier quadrants",
    measure,
    table,
    draw,
    regressors=(BEST,),
)
