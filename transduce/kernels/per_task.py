"""Kernels that are fitted to one task at a time, in double precision.

Tasks are independent, and these kernels choose their ridges, widths and windows for each task. A
subclass fits and answers for the examples of one task; masks and batches are handled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .kappa import Fit, Kappa, Reading


@dataclass(frozen=True, kw_only=True)
class TaskFit(Fit):
    """The fit to one task. Residuals have shape (n, q)."""

    residual: Float[Tensor, "n q"]


@dataclass(frozen=True, kw_only=True)
class BatchFit(Fit):
    """The fits to all tasks of a batch."""

    residual: Float[Tensor, "b n q"]
    deviation: Float[Tensor, "b n"]
    tasks: tuple[TaskFit, ...]


F = TypeVar("F", bound=TaskFit)


class PerTask(Kappa[BatchFit, Reading], Generic[F]):
    """A kernel that is fitted task by task. Subclasses implement `fit_task`, `answer_task` and, if
    they choose something, `refit_task`."""

    leaves_out = True

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> F:
        """Fit the examples of one task."""
        raise NotImplementedError

    def answer_task(self, fit: F, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        """The answers at the queries of one task."""
        raise NotImplementedError

    def refit_task(self, fit: F, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> F:
        """Fit other examples with the choices of `fit`."""
        return self.fit_task(v, u)

    def condition(
        self,
        v: Float[Tensor, "b n d"],
        u: Float[Tensor, "b n q"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> BatchFit:
        tasks = [self.fit_task(*pairs) for pairs in self._tasks(v, u, mask)]
        return self._joined(tasks, u, mask)

    def refit(
        self,
        fit: BatchFit,
        v: Float[Tensor, "b n d"],
        u: Float[Tensor, "b n q"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> BatchFit:
        each = zip(fit.tasks, self._tasks(v, u, mask), strict=True)
        return self._joined([self.refit_task(cast(F, f), *pairs) for f, pairs in each], u, mask)

    def forward(self, fit: BatchFit, v: Float[Tensor, "b m d"]) -> Float[Tensor, "b m q"]:
        each = zip(fit.tasks, v.double().unbind(), strict=True)
        return torch.stack([self.answer_task(cast(F, f), q) for f, q in each]).to(v)

    def deviations(self, fit: BatchFit, v: Float[Tensor, "b m d"]) -> Float[Tensor, "b m"]:
        """The same for all queries."""
        return torch.ones(v.shape[:2], dtype=torch.float64, device=v.device)

    @staticmethod
    def _tasks(
        v: Tensor, u: Tensor, mask: Tensor | None
    ) -> list[tuple[Float[Tensor, "n d"], Float[Tensor, "n q"]]]:
        pairs = zip(v.double(), u.double(), strict=True)
        if mask is None:
            return list(pairs)
        return [(f[m], g[m]) for (f, g), m in zip(pairs, mask, strict=True)]

    @staticmethod
    def _joined(tasks: list[F], u: Tensor, mask: Tensor | None) -> BatchFit:
        def joined(parts: list[Tensor]) -> Tensor:
            if mask is None:
                return torch.stack(parts).to(u)
            found = u.new_zeros(u.shape, dtype=torch.float64)
            found[mask] = torch.cat(parts)
            return found.to(u)

        within = [task.in_sample for task in tasks if task.in_sample is not None]
        ones = torch.ones(u.shape[:2], dtype=torch.float64, device=u.device)
        return BatchFit(
            residual=joined([task.residual for task in tasks]),
            deviation=ones,
            in_sample=joined(within) if len(within) == len(tasks) else None,
            tasks=tuple(tasks),
        )
