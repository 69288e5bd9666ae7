"""A kernel between fields that may be periodic: of two kernels the one of less error.

Examples look periodic along an axis if the values at both ends differ about as much as those of
neighbours. Only then are both kernels fitted to a few examples, and the one of smaller
leave-one-out residuals is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from ..spaces import SampledFields
from .comparison import evenly
from .per_task import PerTask, TaskFit

FEW = 8  # examples that choose
AS_NEIGHBOURS = (0.01, 4.0)  # range of (difference of both ends)^2 / (difference of neighbours)^2


@dataclass(frozen=True, kw_only=True)
class PeriodicFit(TaskFit):
    """What queries need.

    Attributes:
        chosen: the fit of the kernel that is used.
        periodic: whether it is the one for periodic fields.
    """

    chosen: TaskFit
    periodic: bool


class PerhapsPeriodic(PerTask[PeriodicFit]):
    """Two kernels, one of them for periodic fields.

    Args:
        V: space of the inputs.
        U: space of the outputs.
        plain: for any fields.
        periodic: for periodic ones.
    """

    def __init__(self, V: SampledFields, U: SampledFields, plain: PerTask, periodic: PerTask):
        super().__init__()
        self.V, self.U, self.plain, self.periodic = V, U, plain, periodic
        self.chunk, self.is_shared = plain.chunk, plain.is_shared
        self.exports, self.has_exact_gradients = plain.exports, plain.has_exact_gradients

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> PeriodicFit:
        periodic = False
        if looks_periodic(self.V.shaped(v)) and looks_periodic(self.U.shaped(u)):
            few = evenly(len(v), FEW).to(v.device)
            with torch.no_grad():
                fits = [kernel.fit_task(v[few], u[few]) for kernel in (self.plain, self.periodic)]
            errors = [float(fit.residual.square().sum()) for fit in fits]
            periodic = errors[1] < errors[0]
        kernel = self.periodic if periodic else self.plain
        return _with(cast(TaskFit, kernel.fit_task(v, u)), periodic)

    def refit_task(
        self, fit: PeriodicFit, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]
    ) -> PeriodicFit:
        """The kernel that is used stays."""
        own = self._used(fit).refit_task(fit.chosen, v, u)
        return _with(cast(TaskFit, own), fit.periodic)

    def answer_task(self, fit: PeriodicFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        return self._used(fit).answer_task(fit.chosen, v)

    def _used(self, fit: PeriodicFit) -> PerTask:
        return self.periodic if fit.periodic else self.plain


def looks_periodic(f: Float[Tensor, "n c p q"]) -> bool:
    """Whether fields seem to continue beyond each end with the values at the other one."""
    low, high = AS_NEIGHBOURS
    for axis in (-2, -1):
        inside = f.diff(dim=axis).square().mean()
        around = (f.select(axis, 0) - f.select(axis, -1)).square().mean()
        if not low * inside < around < high * inside:
            return False
    return True


def _with(fit: TaskFit, periodic: bool) -> PeriodicFit:
    return PeriodicFit(
        residual=fit.residual, in_sample=fit.in_sample, chosen=fit, periodic=periodic
    )
