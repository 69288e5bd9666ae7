"""The losses of meta-training, by name. With the relative squared error of query j,

    e_j = |T(D)(v_j) - u_j|^2 / |u_j|^2,

a step descends on (equation 7 is relative_l2)

    relative_l2     mean_j sqrt(e_j)
    relative_mse    mean_j e_j              what we report; a few hard functions dominate it
    squared         mean_j e_j |u_j|^2      the paper's sum of squares; large functions dominate it
    log_l2          log mean_j sqrt(e_j)    steps of every n count equally, however small the error
    log_about_mean  mean over tasks of log (sum_j |T(D)(v_j) - u_j|^2 / sum_j |u_j - m|^2), m the
                    mean of the task's examples: every task counts equally

A loss of your own is a subclass of `Loss` or `RelativeLoss` with a `name`, in any module:

>>> class FourthRoot(RelativeLoss):
...     name = "fourth_root"
...
...     def reduce(self, errors, u, mean):
...         return errors.add(1e-8).pow(0.25).mean()
>>> Training(steps=100, loss=FourthRoot())      # or loss="fourth_root"
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..types import TransduceError
from .learner import Batch, Learner, fitted

LEAST = 1e-3  # least variation of the queries of a task in units of that of its examples
LARGEST_LOG = 6.0  # tasks with a larger logarithm have no gradient
SMALLEST_ERROR = 1e-7  # errors below it count as equal in `log_about_mean`

LOSSES: dict[str, type[Loss]] = {}
"""Every loss by its name. Defining a subclass of `Loss` with a name adds it."""


@dataclass(frozen=True)
class Episode:
    """The relative squared errors of a batch of tasks.

    Called on a batch, it returns the error of each query, shape (tasks, queries). With `left_out`
    the errors of the examples follow, each left out of the regression: (tasks, queries + examples).

    Args:
        T: the learner.
        left_out: whether examples count as queries too; T then needs leave-one-out residuals.
    """

    T: Learner
    left_out: bool = False

    def __call__(
        self, v: Tensor, u: Tensor, v_query: Tensor, u_query: Tensor, x: Tensor | None = None
    ) -> Float[Tensor, "b _"]:
        T = fitted(self.T, v[0], u[0], x)
        target = T.U.encode(u, x)
        kept = T.condition(T.V.encode(v, x), target)
        coefficients = T.query(kept, T.V.encode(v_query, x))[-1]
        grid = tuple(u_query.shape[2 + (T.U.channels > 1) :])
        u_hat = T.U.decode(coefficients, grid if x is None else x)
        error = relative(u_hat - u_query, u_query)
        if not self.left_out:
            return error
        return torch.cat([error, relative(kept[-1].residual, target)], 1)


def relative(
    residual: Float[Tensor, "b m *grid"], u: Float[Tensor, "b m *grid"]
) -> Float[Tensor, "b m"]:
    """|residual|^2 / |u|^2 of each function."""
    return squared_norm(residual) / squared_norm(u).clamp(min=1e-12)


def squared_norm(f: Float[Tensor, "b m *grid"]) -> Float[Tensor, "b m"]:
    """|f|^2: the sum of squares over the grid."""
    return f.flatten(2).square().sum(-1)


class Loss(ABC):
    """The number that a step of meta-training descends on.

    A loss has a name and no options, so that the name in a card or a result says everything. A
    variant of a loss is a subclass with a name of its own.

    Attributes:
        name: stable; settings and checkpoints record it.
        probabilities: whether the learner must answer with the probabilities of classes.
        joint: whether it needs all tasks of a step at once, and is no mean over them.
    """

    name: ClassVar[str]
    probabilities: ClassVar[bool] = False
    joint: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):
            return
        other = LOSSES.get(cls.name)
        if other is not None and _path(other) != _path(cls):
            raise TransduceError(
                f"{_path(cls)} is called {cls.name!r}, which is the name of {_path(other)}; "
                "expected a name of its own. Give another."
            )
        LOSSES[cls.name] = cls

    @abstractmethod
    def __call__(
        self, T: Learner, batch: Batch, left_out: bool, mean: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, ""]:
        """The loss of a step.

        Args:
            T: the learner.
            batch: the tasks that this process draws at the step.
            left_out: whether examples count as queries too, each left out.
            mean: the mean of a scalar over all processes; gradients do not pass through it.
        """

    def check(self, T: Learner) -> None:
        """Raise a TransduceError if T cannot learn by this loss. Called once, before training."""
        if self.probabilities == getattr(T, "probabilities", False):
            return
        fitting = (n for n, loss in LOSSES.items() if loss.probabilities != self.probabilities)
        answers = "functions" if self.probabilities else "the probabilities of classes"
        raise TransduceError(
            f"loss={self.name!r} with a {type(T).__name__}; expected "
            f"{' or '.join(map(repr, fitting)) or 'a loss of your own'}, because this model's "
            f"answers are {answers}. Use another loss."
        )

    def validate(self, T: Learner, tasks: Sequence[Batch]) -> float:
        """The error on validation tasks, each a batch of its own: the mean relative squared one."""
        errors = [Episode(T)(**task).mean().item() for task in tasks]
        return sum(errors) / len(errors)

    def trained_part(self, T: Learner) -> nn.Module:
        """The module whose parameters get gradients: T itself, or a part of it."""
        return cast(nn.Module, T)


def _path(loss: type[Loss]) -> str:
    return f"{loss.__module__}.{loss.__qualname__}"


class RelativeLoss(Loss):
    """A loss that is a function of the relative squared errors of a step."""

    def __call__(
        self, T: Learner, batch: Batch, left_out: bool, mean: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, ""]:
        u = torch.cat([batch["u_query"], batch["u"]], 1) if left_out else batch["u_query"]
        return self.reduce(Episode(T, left_out)(**batch), u, mean)

    @abstractmethod
    def reduce(
        self,
        errors: Float[Tensor, "b m"],
        u: Float[Tensor, "b m *grid"],
        mean: Callable[[Tensor], Tensor],
    ) -> Float[Tensor, ""]:
        """The loss from the relative squared errors of the answers, and the true functions u."""


class RelativeL2(RelativeLoss):
    """mean_j sqrt(e_j)"""

    name = "relative_l2"

    def reduce(self, errors: Tensor, u: Tensor, mean: Callable[[Tensor], Tensor]) -> Tensor:
        return errors.add(1e-8).sqrt().mean()


class RelativeMse(RelativeLoss):
    """mean_j e_j"""

    name = "relative_mse"

    def reduce(self, errors: Tensor, u: Tensor, mean: Callable[[Tensor], Tensor]) -> Tensor:
        return errors.mean()


class Squared(RelativeLoss):
    """mean_j |T(D)(v_j) - u_j|^2"""

    name = "squared"

    def reduce(self, errors: Tensor, u: Tensor, mean: Callable[[Tensor], Tensor]) -> Tensor:
        return (errors * squared_norm(u)).mean()


class LogL2(RelativeLoss):
    """log mean_j sqrt(e_j), where the mean is over all processes.

    The gradient of a process is that of loss / overall: averaged over processes, that of the log.
    """

    name = "log_l2"
    joint = True

    def reduce(self, errors: Tensor, u: Tensor, mean: Callable[[Tensor], Tensor]) -> Tensor:
        loss = errors.add(1e-12).sqrt().mean()
        overall = mean(loss.detach())
        return loss / overall + overall.log() - 1


class LogAboutMean(Loss):
    """The mean over tasks of the logarithm of the squared error in units of the variation of u
    about the mean of the examples, so that the mean itself scores 0."""

    name = "log_about_mean"

    def __call__(
        self, T: Learner, batch: Batch, left_out: bool, mean: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, ""]:
        v, u, x = batch["v"], batch["u"], batch.get("x")
        T = fitted(T, v[0], u[0], x)
        fits = T.condition(T.V.encode(v, x), T.U.encode(u, x))
        target = T.U.encode(batch["u_query"], x)
        answers = T.query(fits, T.V.encode(batch["v_query"], x))[-1]
        u = T.U.encode(u, x)
        m = u.mean(1, keepdim=True)
        size, least = ((f - m).square().mean((1, 2)) for f in (target, u))
        unit = torch.maximum(size, LEAST * least).clamp(min=1e-20)
        error = (answers - target).square().mean((1, 2)) / unit
        return (error + SMALLEST_ERROR).log().clamp(max=LARGEST_LOG).mean()

    def validate(self, T: Learner, tasks: Sequence[Batch]) -> float:
        """The geometric mean of the error, which is 1 for the mean of the examples."""
        logs = [self(T, task, False, lambda mean: mean).item() for task in tasks]
        return math.exp(sum(logs) / len(logs))


def loss_name(loss: str | Loss) -> str:
    """The name under which `loss` is registered; raises a TransduceError if there is none."""
    name = loss if isinstance(loss, str) else loss.name
    if name not in LOSSES:
        raise TransduceError(
            f"loss={name!r}; expected one of {', '.join(LOSSES)}. A loss of your own is known once "
            "the module that defines it is imported."
        )
    if isinstance(loss, Loss) and (type(loss) is not LOSSES[name] or vars(loss)):
        raise TransduceError(
            f"loss={loss!r} has options, or shares the name {name!r} with another class; expected "
            "a name that says everything. Write a subclass of Loss with a name of its own."
        )
    return name
