"""The simplest kernels: the mean of the examples, and v itself with a fitted gain and offset."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..spaces.sampled import Sampled, resampling
from .per_task import PerTask, TaskFit


@dataclass(frozen=True, kw_only=True)
class MeanFit(TaskFit):
    mean: Float[Tensor, " q"]


class Constant(PerTask[MeanFit]):
    """u_hat = the mean of the examples, whatever v. One example has its own u as residual."""

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> MeanFit:
        mean, n = u.mean(0), len(u)
        return MeanFit(residual=(u - mean) * n / (n - 1) if n > 1 else u, mean=mean)

    def answer_task(self, fit: MeanFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        return fit.mean.expand(len(v), -1)


@dataclass(frozen=True, kw_only=True)
class GainFit(TaskFit):
    gain: Float[Tensor, ""]
    offset: Float[Tensor, ""]


class Gain(PerTask[GainFit]):
    """u_hat(x) = gain v(x) + offset, the same gain and offset at all points.

    Args:
        V: space of the inputs.
        U: space of the outputs, with as many channels.
    """

    onto: Tensor

    def __init__(self, V: Sampled, U: Sampled):
        super().__init__()
        self.V, self.U = V, U
        self.register_buffer("onto", resampling(V.x, U.x), persistent=False)

    def _moved(self, v: Float[Tensor, "n d"]) -> Float[Tensor, "n q"]:
        channels = v.unflatten(-1, (self.V.channels, -1)) @ self.onto.T
        return channels.flatten(-2)

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> GainFit:
        w = self._moved(v)
        sums = torch.stack([w.mean(1), u.mean(1), (w * w).mean(1), (w * u).mean(1)])
        total, n = sums.sum(1), len(v)
        gain, offset = _line(*(total / n))
        if n == 1:
            return GainFit(residual=u, gain=gain, offset=offset)
        gains, offsets = _line(*((total[:, None] - sums) / (n - 1)))
        residual = u - gains[:, None] * w - offsets[:, None]
        return GainFit(residual=residual, gain=gain, offset=offset)

    def answer_task(self, fit: GainFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        return fit.gain * self._moved(v) + fit.offset


def _line(w: Tensor, u: Tensor, ww: Tensor, wu: Tensor) -> tuple[Tensor, Tensor]:
    """Gain and offset of least squares from the means of w, u, w^2 and w u."""
    variance = ww - w * w
    safe = torch.maximum(variance, 1e-12 * ww + 1e-300)
    gain = torch.where(variance > 1e-12 * ww, (wu - w * u) / safe, torch.zeros_like(w))
    return gain, u - gain * w
