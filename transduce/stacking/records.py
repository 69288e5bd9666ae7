"""Tasks as the trust sees them, with the products of the errors of all answers.

    E_jk(v) = <u_hat_j(v) - u, u_hat_k(v) - u> / mean over queries of |u - m|^2

The error of weights w(v) is the mean of w(v)^T E(v) w(v), so a stack is run once for each task and
weights are learned from these small matrices. The same is kept at the examples, each left out.
One task in five has queries with larger v than its examples.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from ..files import replacing
from ..generation.workers import completed
from ..kernels import GeneralStack, Trust
from ..kernels.stack import distances, typical_distances
from ..kernels.trust import describe
from ..random_fields import generator_for, one_thread, uniform
from ..types import ExampleSet, OperatorFamily, Task, to_tensor
from .grids import log_uniform

BLOCK = 100  # tasks in a file
EXAMPLES, QUERIES = (2, 200), 24
KEPT = 24  # examples whose products are kept, evenly chosen
LARGEST = 1e6  # products of errors, in units of the mean's
BEYOND = 0.2  # share of tasks whose queries tend to be larger than the examples


@dataclass(frozen=True)
class Records:
    """Descriptions of tasks, and the products of the errors of their answers.

    Attributes:
        gram: products of residuals, as `describe` returns them.
        of_answer: of each answer, likewise.
        of_task: of each task, likewise.
        errors: E at the queries, divided by their number.
        strange: log(1 + d / D) at the queries.
        left: E at some examples, each left out, in units of the mean's; zero beyond their number.
        strange_left: log(1 + d / D) at these.
    """

    gram: Float[Tensor, "b j j"]
    of_answer: Float[Tensor, "b j k"]
    of_task: Float[Tensor, "b l"]
    errors: Float[Tensor, "b m j j"]
    strange: Float[Tensor, "b m j j"]
    left: Float[Tensor, "b e j j"]
    strange_left: Float[Tensor, "b e j j"]

    def __len__(self) -> int:
        return len(self.gram)

    def __getitem__(self, rows: Tensor | slice) -> Records:
        return Records(*(getattr(self, field.name)[rows] for field in fields(self)))

    def among(self, which: list[int]) -> Records:
        """The records of some answers: their errors are compared with the least among these."""
        index = torch.tensor(which)
        of_answer = self.of_answer[:, index]
        gap = of_answer[..., 1] - of_answer[..., 1].min(1, keepdim=True).values
        parts = [of_answer[..., :1], gap[..., None], gap.log1p()[..., None], of_answer[..., 3:]]
        products = (self.errors, self.strange, self.left, self.strange_left)
        return Records(
            self.gram[:, index][:, :, index],
            torch.cat(parts, -1),
            self.of_task,
            *(part[:, :, index][..., index] for part in products),
        )

    @staticmethod
    def joined(parts: list[Records]) -> Records:
        names = [field.name for field in fields(Records)]
        return Records(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


def collect(
    stack: GeneralStack,
    family: OperatorFamily,
    count: int,
    folder: Path,
    split: str = "train",
    workers: int | None = None,
    examples: tuple[int, int] = EXAMPLES,
) -> Records:
    """Records of `count` tasks of a family, kept in a folder and resumed from there. Those of
    another read-out are replaced.

    Args:
        stack: with the trained read-out.
        family: tasks between functions on uniform grids.
        count: how many tasks.
        folder: for files of 100 tasks each.
        split: of the seeds: "train" or "validation".
        workers: processes; default: one per core.
        examples: least and largest number of examples of a task.
    """
    folder.mkdir(parents=True, exist_ok=True)
    blocks = range(math.ceil(count / BLOCK))
    origin = {"origin": _origin(stack, family, examples)}
    missing = [
        block
        for block in blocks
        if not _complete(_path(folder, split, block), _numbers(block, count), origin)
    ]
    if missing:
        work = partial(_collect_block, stack, family, count, folder, split, origin, examples)
        for _ in completed(work, missing, workers, None):
            pass
    return Records.joined([Records(**load_file(_path(folder, split, block))) for block in blocks])


def _path(folder: Path, split: str, block: int) -> Path:
    return folder / f"{split}-{block}.safetensors"


def _origin(stack: GeneralStack, family: OperatorFamily, examples: tuple[int, int]) -> str:
    """A checksum of what records depend on: the read-out, the answers, the family and n."""
    found = hashlib.sha256(f"{stack.catalogue} {family} {examples}".encode())
    for name, value in sorted(stack.readout.state_dict().items()):
        found.update(name.encode() + value.cpu().numpy().tobytes())
    return found.hexdigest()


def _complete(path: Path, numbers: range, origin: dict[str, str]) -> bool:
    """Whether a file holds the records of all these tasks, of the same origin."""
    if not path.exists():
        return False
    with safe_open(path, framework="pt") as file:
        whole = file.get_slice("gram").get_shape()[0] == len(numbers)
        return bool(whole and file.metadata() == origin)


def _numbers(block: int, count: int) -> range:
    """The tasks of a block."""
    return range(block * BLOCK, min((block + 1) * BLOCK, count))


def _collect_block(
    stack: GeneralStack,
    family: OperatorFamily,
    count: int,
    folder: Path,
    split: str,
    origin: dict[str, str],
    examples: tuple[int, int],
    block: int,
) -> int:
    """Write one file of records; returns its number."""
    numbers = _numbers(block, count)
    with one_thread():
        found = Records.joined([record(stack, family, split, i, examples) for i in numbers])
    with replacing(_path(folder, split, block)) as temporary:
        tensors = {f.name: getattr(found, f.name).contiguous() for f in fields(found)}
        save_file(tensors, temporary, metadata=origin)
    return block


@torch.no_grad()
def record(
    stack: GeneralStack,
    family: OperatorFamily,
    split: str,
    number: int,
    examples: tuple[int, int] = EXAMPLES,
) -> Records:
    """One task of the family, seen through the stack."""
    generator = generator_for(split, 77, number)
    n = log_uniform(examples, generator)
    task = family.sample_task(n, QUERIES, generator)
    if uniform(0.0, 1.0, generator) < BEYOND:
        task = with_larger_queries(task, generator)
    v, u, v_query, u_query = (
        to_tensor(getattr(part, name), name).double()
        for part in (task.examples, task.queries)
        for name in ("v", "u")
    )
    V, U = stack.V.fitted_to(v, None), stack.U.fitted_to(u, None)
    v, v_query, u, u_query = V.encode(v), V.encode(v_query), U.encode(u), U.encode(u_query)
    known = stack.catalogue.known
    stack = type(stack)(V, U, stack.readout, Trust(len(known))).eval()
    fit = stack.condition(v[None], u[None])
    answers = stack.answers(fit, v_query[None])
    unit = (u_query - u.mean(0)).square().sum().clamp(min=1e-300)
    apart, there = distances(fit.residuals, fit.weighing), torch.ones(1, n).double()
    _, others = typical_distances(fit.residuals, apart, there)
    kept = torch.linspace(0, n - 1, min(n, KEPT)).round().long()
    own = fit.residuals[:, 0].square().sum().clamp(min=1e-300)
    order = torch.tensor(
        [  # an answer that does not exist is recorded as the mean
            stack.which.index(k) if k in stack.which else 0 for k in range(len(known))
        ]
    )

    def sorted_products(part: Tensor) -> Tensor:
        """Answers in the order that the trust knows, in single precision, filled with zeros."""
        part = part[..., order, :][..., order].clamp(-LARGEST, LARGEST).float()
        return torch.nn.functional.pad(part, (0, 0, 0, 0, 0, max(QUERIES, KEPT) - part.shape[1]))

    gram, of_answer, of_task = describe(fit.residuals, there)
    return Records(
        gram[:, order][:, :, order],
        of_answer[:, order],
        of_task,
        sorted_products(_products(answers - u_query) / unit),
        sorted_products(torch.log1p(distances(answers, fit.weighing) / fit.typical[:, None])),
        sorted_products(_products(fit.residuals[:, :, kept]) / own * (n / len(kept))),
        sorted_products(torch.log1p(apart[:, kept] / others[:, kept])),
    )


def _products(wrong: Float[Tensor, "b j m q"]) -> Float[Tensor, "b m j j"]:
    each = wrong.movedim(1, 2)
    return each @ each.mT


def with_larger_queries(task: Task, generator: torch.Generator) -> Task:
    """The same pairs with those of large v among the queries more often than by chance."""
    v = torch.cat([to_tensor(part.v, "v") for part in (task.examples, task.queries)])
    u = torch.cat([to_tensor(part.u, "u") for part in (task.examples, task.queries)])
    size = (v - v.mean(0)).flatten(1).norm(dim=1).clamp(min=1e-30).log()
    chance = torch.randn(len(v), generator=generator, dtype=size.dtype)
    order = (size / size.std().clamp(min=1e-9) + chance).argsort()
    first, last = order[: len(task.examples)], order[len(task.examples) :]
    return Task(ExampleSet(v[first], u[first]), ExampleSet(v[last], u[last]))
