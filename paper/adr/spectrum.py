"""A spectral audit: the Jacobian of the regressed operator at a query, in sine modes, compared with
the true solver's.

    J_jk = <phi_j, (O(v + e phi_k) - O(v - e phi_k)) / 2e>,      distance = |J_hat - J|_F / |J|_F

Central differences, the same for every operator: exact where it is quadratic in v. The diagonal is
the gain of each mode; the share of |J|_F^2 off the diagonal is the coupling across modes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from transduce.families import AdvectionDiffusionReaction
from transduce.families.adr import STRIDE
from transduce.random_fields import generator_for
from transduce.spaces import SineModes
from transduce.types import Operator, to_tensor

from .. import figures
from ..lab import Lab, Part, Row
from .fields import rounded
from .setting import identity, regressor

MODES = 16
STEP = 0.05
REGRESSORS = ("adr", "adr-softmax", "kernel-ridge", "linear-ridge", "gaussian-process", "fno")


def jacobian(O: Operator, v: Float[Tensor, " x"]) -> Float[np.ndarray, "j k"]:
    """J of O at v, for the first modes in and out."""
    space = SineModes(MODES)
    shifts = STEP * space.decode(torch.eye(MODES, dtype=torch.float64), len(v))
    u = to_tensor(O(torch.cat([v + shifts, v - shifts])), "u")
    forward, backward = space.encode(u).chunk(2)
    return ((forward - backward).T / (2 * STEP)).detach().numpy()


def coupling(J: np.ndarray) -> float:
    """The share of |J|_F^2 off the diagonal."""
    return float(1 - np.square(np.diag(J)).sum() / np.square(J).sum())


def audited(name: str, number: int, lab: Lab) -> Row:
    """One regressor at one query of one operator."""
    family, generator = (
        AdvectionDiffusionReaction(),
        generator_for("test", lab.scale.seed, 3000 + number),
    )
    operator = family.sample_operator(generator)
    examples = family.sample_pairs(operator, lab.scale.table_n, generator)
    v = family.sample_states(operator, 1, generator)[0][0, ::STRIDE]
    J, J_hat = jacobian(operator, v), jacobian(regressor(lab, name).regress(examples), v)
    distance = float(np.linalg.norm(J_hat - J) / np.linalg.norm(J))
    gain = float(np.linalg.norm(np.diag(J_hat - J)) / np.linalg.norm(np.diag(J)))
    found = {
        "distance": distance,
        "gain_distance": gain,
        "coupling": coupling(J_hat),
        "true_coupling": coupling(J),
    }
    return found | ({"J": rounded(J), "J_hat": rounded(J_hat)} if number == 0 else {})


def measure(lab: Lab) -> list[Row]:
    rows, key = [], {"seed": lab.scale.seed, "n": lab.scale.table_n, "modes": MODES, "step": STEP}
    for name in REGRESSORS:
        for number in range(lab.scale.fitted_elsewhere if name == "fno" else lab.scale.fitted):
            found = lab.once(
                partial(audited, name, number, lab),
                audited=name,
                identity=identity(name),
                operator=number,
                **key,
            )
            rows.append({"regressor": name, "operator": number, **found})
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    """Means over each regressor's operators, and over the few that all have been given."""
    names = dict.fromkeys(row["regressor"] for row in rows)
    fewest = min(sum(row["regressor"] == name for row in rows) for name in names)
    lines = []
    for name in names:
        own = [row for row in rows if row["regressor"] == name]
        means = {
            key: float(np.mean([row[key] for row in own]))
            for key in ("distance", "gain_distance", "coupling", "true_coupling")
        }
        line = {
            "regressor": name,
            "operators": len(own),
            **{key.replace("_", " "): value for key, value in means.items()},
        }
        line[f"distance, same {fewest}"] = float(np.mean([row["distance"] for row in own[:fewest]]))
        lines.append(line)
    return lines


def draw(rows: Sequence[Row], folder: Path) -> None:
    shown = [row for row in rows if row["operator"] == 0]
    matrices = {"true solver": np.array(shown[0]["J"])} | {
        row["regressor"]: np.array(row["J_hat"]) for row in shown
    }
    figures.jacobians(
        matrices, {row["regressor"]: row["distance"] for row in shown}, folder / "spectrum"
    )


PART = Part("spectrum", "a spectral audit of the regressed operators", measure, table, draw)
