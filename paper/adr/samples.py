"""The supplement's pictures: sampled delta and nu, rows of the meta-test set, the three length
scales, s(x, t) to t = 3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from transduce.families import AdvectionDiffusionReaction
from transduce.families.adr import STRIDE
from transduce.random_fields import gaussian_field, generator_for

from .. import figures
from ..lab import Lab, Part, Row
from ..measuring import rounded
from .fields import evolution

SCALES = (0.1, 0.2, 0.3)
SHOWN = 8
ROWS = 4


def measured(lab: Lab) -> list[Row]:
    family, seed = AdvectionDiffusionReaction(), lab.scale.seed
    rows: list[Row] = []
    for number in range(SHOWN):
        generator = generator_for("test", seed, 2000 + number)
        operator = family.sample_operator(generator)
        row = {
            "picture": "operator",
            "delta": operator.delta[::STRIDE],
            "nu": operator.nu[::STRIDE],
        }
        if number < ROWS:
            pairs = family.sample_pairs(operator, 6, generator)
            v = family.sample_states(operator, 1, generator)[0][0]
            row |= {"v": pairs.v, "u": pairs.u, "s": evolution(operator, v, 3.0, 61)}
        rows.append(
            {key: value if isinstance(value, str) else rounded(value) for key, value in row.items()}
        )
    for scale in SCALES:
        drawn = gaussian_field(5, 101, scale, generator_for("test", seed, 2100))
        rows.append({"picture": "length scale", "length_scale": scale, "fields": rounded(drawn)})
    return rows


def measure(lab: Lab) -> list[Row]:
    return lab.once(lambda: measured(lab), samples=SHOWN, seed=lab.scale.seed)


def draw(rows: Sequence[Row], folder: Path) -> None:
    operators = [row for row in rows if row["picture"] == "operator"]
    delta, nu = (np.array([row[name] for row in operators]) for name in ("delta", "nu"))
    v, u, s = (
        np.array([row[name] for row in operators if name in row]) for name in ("v", "u", "s")
    )
    x = np.linspace(0, 1, delta.shape[-1])
    scales = {
        row["length_scale"]: np.array(row["fields"])
        for row in rows
        if row["picture"] == "length scale"
    }
    figures.coefficient_samples(x, delta, nu, folder / "coefficients")
    figures.meta_test_rows(v, u, folder / "meta_test")
    figures.length_scales(x, scales, folder / "length_scales")
    figures.evolution_to(s, np.linspace(0, 3, s.shape[1]), folder / "evolution")


PART = Part("samples", "the supplement's pictures", measure, None, draw)
