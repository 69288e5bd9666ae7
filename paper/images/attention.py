"""What the kernel attends to: for some queries, the examples whose classes count for most in the
answer, with their weights.

w_i(v) = mean_k sum_j w_jk [k_j(v) (K_j + lambda_j I)^-1]_i,      u_hat_k(v) = sum_i w_ik(v) u_ik
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from transduce.transducer import Transducer

from .. import figures
from ..lab import Lab, Part, Row
from .setting import BEST, SETS, identity, task_of

SHOWN = 7
QUERIES = 3


@torch.no_grad()
def attended(T: Transducer, lab: Lab, data: str) -> list[Row]:
    """Some queries of a task, and the examples of largest weight for each, as rows of bytes."""
    task = task_of(data, lab.scale.n, QUERIES, lab.scale.seed, 6000)
    v, u, q = task.examples.v[None], task.examples.u[None], task.queries.v[None]
    weights = T.steps[0].kappa.weights(v, u, q)[0]
    answers = T(v, u, q)[0].argmax(1)
    rows = []
    for weight, image, answer, truth in zip(
        weights, task.queries.v, answers.tolist(), task.queries.u.argmax(1).tolist(), strict=True
    ):
        chosen = weight.argsort(descending=True)[:SHOWN]
        near = [
            {
                "image": bytes_of(task.examples.v[i]),
                "class": int(task.examples.u[i].argmax()),
                "weight": round(float(weight[i]), 4),
            }
            for i in chosen.tolist()
        ]
        rows.append(
            {
                "set": data,
                "image": bytes_of(image),
                "class": truth,
                "answer": answer,
                "examples": near,
            }
        )
    return rows


def bytes_of(image: torch.Tensor) -> str:
    """An image as hexadecimal bytes."""
    return bytes(image.mul(255).round().to(torch.uint8).tolist()).hex()


def measure(lab: Lab) -> list[Row]:
    T, rows = Transducer.from_pretrained(BEST), []
    for data in SETS:
        key = {"set": data, "identity": identity(BEST), "n": lab.scale.n, "seed": lab.scale.seed}
        rows += lab.once(lambda data=data: attended(T, lab, data), **key)  # type: ignore[misc]
    return rows


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.attended([row | {"set": SETS[row["set"]]} for row in rows], folder / "attention")


PART = Part(
    "attention",
    "the examples with the largest kernel weight for some queries",
    measure,
    None,
    draw,
    regressors=(BEST,),
)
