"""Whether answers are as often right as they are sure: `predict_proba` over many tasks, in bins of
the largest probability."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from transduce.metrics import bin_of, expected_calibration_error, hits
from transduce.transducer import Transducer
from transduce.uncertainty import class_probabilities

from .. import figures
from ..lab import Lab, Part, Row
from .setting import MODELS, SETS, identity, task_of

BINS = 15


def sureness(T: Transducer, lab: Lab, data: str, number: int) -> list[list[float]]:
    """The largest probability of each query of a task, and whether it is that of its class."""
    task = task_of(data, lab.scale.n, lab.scale.queries, lab.scale.seed, number)
    p = class_probabilities(T.regress(task.examples), task.queries.v)
    return [
        [round(value, 5) for value in p.amax(1).tolist()],
        hits(p, task.queries.u).double().tolist(),
    ]


def measure(lab: Lab) -> list[Row]:
    rows, scale = [], lab.scale
    for name in MODELS:
        T = Transducer.from_pretrained(name)
        for data in SETS:
            key = {
                "regressor": name,
                "identity": identity(name),
                "set": data,
                "n": scale.n,
                "queries": scale.queries,
                "seed": scale.seed,
            }
            drawn = [
                lab.once(lambda T=T, data=data, i=i: sureness(T, lab, data, i), number=i, **key)  # type: ignore[misc]
                for i in range(scale.calibrated)
            ]
            sure, right = (np.concatenate([task[which] for task in drawn]) for which in (0, 1))
            error = 100 * expected_calibration_error(sure, right, BINS)
            rows.append(
                {
                    "regressor": name,
                    "set": data,
                    "tasks": scale.calibrated,
                    "error": error,
                    "bins": in_bins(sure, right),
                }
            )
    return rows


def in_bins(sure: np.ndarray, right: np.ndarray) -> list[list[float]]:
    """The mean sureness, the share that is right, and the share of all answers, of each bin that
    has any."""
    place = bin_of(sure, BINS)
    of = [place == b for b in range(BINS) if (place == b).any()]
    return [
        [round(float(value), 5) for value in (sure[b].mean(), right[b].mean(), b.mean())]
        for b in of
    ]


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[str, Row] = {}
    for row in rows:
        lines.setdefault(row["regressor"], {"regressor": row["regressor"]})[SETS[row["set"]]] = (
            f"{row['error']:.1f} %"
        )
    return list(lines.values())


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.reliability([row | {"set": SETS[row["set"]]} for row in rows], folder / "calibration")


PART = Part(
    "calibration",
    "expected calibration error of probabilities",
    measure,
    table,
    draw,
    regressors=MODELS,
)
