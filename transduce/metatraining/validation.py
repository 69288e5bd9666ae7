"""Validation: the error on tasks that training never draws."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import torch

from ..random_fields import generator_for
from ..types import OperatorFamily, TransduceError
from .learner import Batch, Learner
from .losses import LOSSES, Loss, loss_name
from .options import Training
from .tasks import moved, stack


def described(family: object) -> str:
    """A family as text: the name of its class, and for a dataclass the fields that differ from
    their defaults. A field that is added with a default changes no description. A class with a
    `__repr__` of its own describes itself."""
    own = type(family).__repr__
    if own is object.__repr__:
        return type(family).__name__
    if not is_dataclass(family) or not hasattr(own, "__wrapped__"):  # the generated one has it
        return repr(family)
    set_by_user = [
        f"{option.name}={_value(value)}"
        for option in fields(family)
        if (value := getattr(family, option.name)) != option.default
    ]
    return f"{type(family).__name__}({', '.join(set_by_user)})"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))})"
    return described(value) if is_dataclass(value) else repr(value)


def validation_tasks(family: OperatorFamily, training: Training) -> list[Batch]:
    """Tasks from seeds that training never uses, each a batch of its own.

    They have n = 50 examples, or the nearest trained n, and 50 queries, or as many as a task of the
    family can give.
    """
    n = min(max(50, training.n[0]), training.n[1])
    m = min(50, getattr(family, "pairs", n + 50) - n)
    if m < 1:
        raise TransduceError(
            f"{described(family)} has tasks of {n + m} pairs; expected more than the {n} "
            "examples, to validate on."
        )
    draws = (
        family.sample_task(n, m, generator_for("validation", training.seed, i))
        for i in range(training.validation_tasks)
    )
    return [stack([task]) for task in draws]


@torch.no_grad()
def validate(T: Learner, tasks: list[Batch], loss: str | Loss) -> float:
    """The error on the validation tasks, as the loss measures it."""
    return LOSSES[loss_name(loss)]().validate(T, [moved(task, T.spread) for task in tasks])
