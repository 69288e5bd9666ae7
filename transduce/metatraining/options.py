"""The options of meta-training."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..types import TransduceError
from .losses import LOSSES, Loss, loss_name

SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2,
    "halving": lambda done: 0.5 ** int(7 * done),
}
"""The factor of the learning rates after a share `done` of the steps."""

COUNTS = ("steps", "tasks", "queries", "validate_every", "checkpoint_every", "validation_tasks")


@dataclass(frozen=True)
class Training:
    """How to meta-train.

    Args:
        steps: how many steps of descent.
        lr: the learning rate of AdamW.
        muon_lr: the learning rate of Muon, which trains the matrices; 0 for AdamW alone.
        tasks: tasks per step and process.
        n: the range of example counts, drawn evenly in log n.
        queries: queries of each task.
        schedule: after the warm-up, "cosine" falls to zero and "halving" halves six times.
        warmup: steps in which the learning rates rise to their values.
        clip: the largest norm of the gradient.
        average: the decay of an exponential average of the weights, which is then validated and
            kept instead of the weights; 0 for none.
        seed: of all draws.
        validate_every: steps between two validations.
        checkpoint_every: steps between two checkpoints.
        validation_tasks: how many tasks to validate on.
        standardise: measure inputs in units of their spread over the family, unless that was done.
        loss: a loss or its name (see `transduce.metatraining.losses`); the name is kept.
        noise: the share of steps whose example outputs carry white noise, at 0.1 to 10 % of their
            root mean square.
        left_out: whether examples count as queries too, each left out of the regression. It costs
            nothing, and needs a model that ends in a solving kernel.
        kernel_rate: a factor of both learning rates for the weights of kernels.
    """

    steps: int
    lr: float = 1e-3
    muon_lr: float = 0.02
    tasks: int = 8
    n: tuple[int, int] = (20, 100)
    queries: int = 16
    schedule: str = "cosine"
    warmup: int = 200
    clip: float = 1.0
    average: float = 0.0
    seed: int = 0
    validate_every: int = 500
    checkpoint_every: int = 100
    validation_tasks: int = 32
    standardise: bool = True
    loss: str | Loss = "relative_l2"
    noise: float = 0.0
    left_out: bool = False
    kernel_rate: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", loss_name(self.loss))
        if self.schedule not in SCHEDULES:
            expected = " or ".join(map(repr, SCHEDULES))
            raise TransduceError(f"schedule={self.schedule!r}; expected {expected}.")
        if not 0 <= self.noise <= 1:
            raise TransduceError(f"noise={self.noise}; expected a share of the steps, from 0 to 1.")
        if not self.kernel_rate >= 0:
            raise TransduceError(
                f"kernel_rate={self.kernel_rate}; expected a factor of the rates, from 0."
            )
        if min(getattr(self, name) for name in COUNTS) < 1 or not 1 <= self.n[0] <= self.n[1]:
            raise TransduceError(
                f"{', '.join(COUNTS)} are at least 1 and n is (low, high) with 1 <= low <= high; "
                f"received {self}."
            )

    @property
    def objective(self) -> Loss:
        """The loss as an object."""
        return LOSSES[loss_name(self.loss)]()

    def factor(self, step: int) -> float:
        """The factor of the learning rates at a step."""
        warm = min(1.0, (step + 1) / max(self.warmup, 1))
        return warm * SCHEDULES[self.schedule](step / self.steps)
