"""Tasks as the trust sees them, with the products of the errors of all answers.

    E_jk = sum_q <u_hat_j(v_q) - u_q, u_hat_k(v_q) - u_q> / sum_q |u_q - m|^2

The error of any weights w is w^T E w, so a stack is run once for each task and weights are learned
from these small matrices. Tasks have 2 to 200 examples, on grids of 12 to 160 points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors.torch import load_file, save_file
from torch import Tensor

from ..files import replacing
from ..kernels import CurveReadout, Trust
from ..kernels.general import ANSWERS, GeneralStack
from ..kernels.trust import describe
from ..random_fields import generator_for, uniform
from ..spaces import Sampled
from ..spaces.sampled import spline_matrix
from ..types import ExampleSet, OperatorFamily, Task, to_tensor

BLOCK = 100  # tasks in a file
EXAMPLES, POINTS, QUERIES = (2, 200), (12, 160), 32
SMALLEST = 1e-14  # errors below it count as equal


@dataclass(frozen=True)
class Records:
    """Descriptions of tasks, and the products of the errors of their answers."""

    gram: Float[Tensor, "b j j"]
    of_answer: Float[Tensor, "b j k"]
    of_task: Float[Tensor, "b l"]
    errors: Float[Tensor, "b j j"]

    def __len__(self) -> int:
        return len(self.gram)

    def __getitem__(self, rows: Tensor | slice) -> Records:
        return Records(*(getattr(self, field.name)[rows] for field in fields(self)))

    @staticmethod
    def joined(parts: list[Records]) -> Records:
        names = [field.name for field in fields(Records)]
        return Records(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


def collect(
    readout: CurveReadout, family: OperatorFamily, count: int, folder: Path, split: str = "train"
) -> Records:
    """Records of `count` tasks of a family, kept in a folder and resumed from there.

    Args:
        readout: the trained read-out.
        family: tasks between functions on one uniform grid of [0, 1].
        count: how many tasks.
        folder: for files of 100 tasks each.
        split: of the seeds: "train" or "validation".
    """
    folder.mkdir(parents=True, exist_ok=True)
    trust, parts = Trust(len(ANSWERS)), []
    blocks = range(math.ceil(count / BLOCK))
    for block in blocks:
        path = folder / f"{split}-{block}.safetensors"
        if not path.exists():
            numbers = range(block * BLOCK, min((block + 1) * BLOCK, count))
            found = Records.joined([record(readout, trust, family, split, i) for i in numbers])
            with replacing(path) as temporary:
                save_file({f.name: getattr(found, f.name) for f in fields(found)}, temporary)
        parts.append(Records(**load_file(path)))
    return Records.joined(parts)


@torch.no_grad()
def record(
    readout: CurveReadout, trust: Trust, family: OperatorFamily, split: str, number: int
) -> Records:
    """One task of the family, seen through the stack."""
    generator = generator_for(split, 77, number)
    low, high = (math.log(bound) for bound in EXAMPLES)
    n = round(math.exp(uniform(low, high, generator)))
    task = resampled(family.sample_task(n, QUERIES, generator), generator)
    v, u, v_query, u_query = (
        to_tensor(getattr(part, name), name).double()
        for part in (task.examples, task.queries)
        for name in ("v", "u")
    )
    V, U = (Sampled(f.shape[1]) for f in (v, u))
    stack = GeneralStack(V, U, readout, trust)
    fit = stack.condition(v[None], u[None])
    wrong = (stack.answers(fit, v_query[None])[0] - u_query).flatten(1)
    unit = (u_query - u.mean(0)).square().sum().clamp(min=1e-300)
    errors = wrong @ wrong.T / unit + SMALLEST * torch.eye(len(wrong), dtype=torch.float64)
    described = describe(fit.residuals, torch.ones(1, n, dtype=torch.float64))
    order = torch.tensor([stack.which.index(k) for k in range(len(ANSWERS))])
    gram, of_answer, of_task = described
    return Records(
        gram[:, order][:, :, order], of_answer[:, order], of_task, errors[order][:, order][None]
    )


def resampled(task: Task, generator: torch.Generator) -> Task:
    """The task on other uniform grids of v and u, which are equal in two draws of three."""
    low, high = (math.log(bound) for bound in POINTS)
    points = [round(math.exp(uniform(low, high, generator))) for _ in range(2)]
    if uniform(0, 1, generator) < 2 / 3:
        points[1] = points[0]

    def moved(f: object, name: str, count: int) -> Tensor:
        values = to_tensor(f, name).double()
        x, at = (torch.linspace(0, 1, k).double().tolist() for k in (values.shape[-1], count))
        return values @ spline_matrix(tuple(x), tuple(at)).T

    def on_grids(pairs: ExampleSet) -> ExampleSet:
        return ExampleSet(moved(pairs.v, "v", points[0]), moved(pairs.u, "u", points[1]))

    return Task(on_grids(task.examples), on_grids(task.queries))
