"""The tasks of a step: drawn from the family, stacked into a batch, with or without noise.

The seed of every draw is a function of (seed, step, task). A resumed run therefore draws the same
tasks, and p processes with t tasks each draw those of one process with p t."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..random_fields import generator_for, seed_for
from ..types import OperatorFamily, Task, TransduceError, to_tensor
from .learner import Batch
from .options import Training


def stack(tasks: list[Task]) -> Batch:
    """Tasks of equal n and m as one batch."""
    functions = {
        "v": [task.examples.v for task in tasks],
        "u": [task.examples.u for task in tasks],
        "v_query": [task.queries.v for task in tasks],
        "u_query": [task.queries.u for task in tasks],
    }
    batch = {
        name: torch.stack([to_tensor(array, name) for array in arrays])
        for name, arrays in functions.items()
    }
    x = tasks[0].examples.x
    return batch if x is None else {**batch, "x": to_tensor(x, "x")}


def draw(family: OperatorFamily, training: Training, step: int, rank: int = 0) -> list[Batch]:
    """The tasks that process `rank` sees at a step, a batch for each shape of functions."""
    low, high = training.n
    share, noisy, level = torch.rand(
        3, generator=generator_for("train", training.seed, step)
    ).tolist()
    n = min(high, int(low * ((high + 1) / low) ** share))
    numbers = range(rank * training.tasks, (rank + 1) * training.tasks)
    generators = [generator_for("train", training.seed, step, i) for i in numbers]
    try:
        tasks = [family.sample_task(n, training.queries, g) for g in generators]
    except TransduceError as error:
        raise TransduceError(
            f"at step {step}, batch seed {seed_for('train', training.seed, step)}: {error}"
        ) from None
    if noisy < training.noise:
        noises = [generator_for("train", training.seed, step, i, 1) for i in numbers]
        relative = 10 ** (2 * level - 3)
        tasks = [_noisy(task, relative, g) for task, g in zip(tasks, noises, strict=True)]
    alike: dict[tuple[tuple[int, ...], ...], list[Task]] = {}
    for task in tasks:
        alike.setdefault((task.examples.v.shape, task.examples.u.shape), []).append(task)
    return [stack(group) for group in alike.values()]


def moved(batch: Batch, like: Tensor) -> Batch:
    """The batch in the precision and on the device of a tensor."""
    return {name: values.to(like) for name, values in batch.items()}


def _noisy(task: Task, level: float, generator: torch.Generator) -> Task:
    examples = task.examples
    u = with_noise(to_tensor(examples.u, "u"), level, generator)
    return Task(replace(examples, u=u), task.queries)


def with_noise(u: Tensor, level: float, generator: torch.Generator) -> Tensor:
    """u with white noise of `level` times its root mean square."""
    noise = torch.randn(u.shape, dtype=torch.float64, generator=generator).to(u)
    return u + level * u.square().mean().sqrt() * noise
