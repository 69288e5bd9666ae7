"""The simplest kernels: the mean of the examples, and v itself with a fitted gain.

    Constant    u_hat(x) = m_u(x)
    Gain        u_hat(x) = g v(x) + o
    Deviation   u_hat(x) = m_u(x) + g (v(x) - m_v(x))

m are means of the examples; g and o are the same at all points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..spaces import Gridded
from .per_task import PerTask, TaskFit

F = TypeVar("F", bound=TaskFit)


@dataclass(frozen=True, kw_only=True)
class MeanFit(TaskFit):
    mean: Float[Tensor, " q"]


class Constant(PerTask[MeanFit]):
    """u_hat = the mean of the examples, whatever v. One example has its own u as residual."""

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> MeanFit:
        mean, n = u.mean(0), len(u)
        return MeanFit(residual=(u - mean) * n / (n - 1) if n > 1 else u, mean=mean)

    def answer_task(self, fit: MeanFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        return fit.mean.expand(v.shape[0], -1)


@dataclass(frozen=True, kw_only=True)
class GainFit(TaskFit):
    gain: Float[Tensor, ""]
    offset: Float[Tensor, ""]


class Moved(PerTask[F]):
    """A kernel that compares u with v at the same positions.

    Args:
        V: space of the inputs.
        U: space of the outputs, with as many channels and variables.
    """

    def __init__(self, V: Gridded, U: Gridded):
        super().__init__()
        self.V, self.U, self.onto = V, U, V.onto(U)

    def moved(self, v: Float[Tensor, "n d"]) -> Float[Tensor, "n q"]:
        """v at the positions of U."""
        return self.onto(self.V.shaped(v)).flatten(1)


class Gain(Moved[GainFit]):
    """u_hat(x) = g v(x) + o."""

    rigid = True

    is_shared = True

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> GainFit:
        w, n = self.moved(v), len(v)
        a, b = w - w.mean(), u - u.mean()  # large offsets would take the digits of the squares
        sums = torch.stack([a.mean(1), b.mean(1), (a * a).mean(1), (a * b).mean(1)])
        total = sums.sum(1)
        gain, offset = _line(*(total / n))
        offset = offset + u.mean() - gain * w.mean()
        if n == 1:
            in_sample = u - gain * w - offset
            return GainFit(residual=u, in_sample=in_sample, gain=gain, offset=offset)
        gains, offsets = _line(*((total[:, None] - sums) / (n - 1)))
        residual = b - gains[:, None] * a - offsets[:, None]
        in_sample = u - gain * w - offset
        return GainFit(residual=residual, in_sample=in_sample, gain=gain, offset=offset)

    def answer_task(self, fit: GainFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        return fit.gain * self.moved(v) + fit.offset


@dataclass(frozen=True, kw_only=True)
class DeviationFit(TaskFit):
    gain: Float[Tensor, ""]
    mean_v: Float[Tensor, " q"]
    mean_u: Float[Tensor, " q"]


class Deviation(Moved[DeviationFit]):
    """u_hat(x) = m_u(x) + g (v(x) - m_v(x)).

    An example that is left out is left out of both means: with a_i and b_i the deviations of v_i
    and u_i, the sums over the others are <a, b> - n / (n - 1) <a_i, b_i>.
    """

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> DeviationFit:
        w, n = self.moved(v), len(v)
        mean_v, mean_u = w.mean(0), u.mean(0)
        a, b = w - mean_v, u - mean_u
        aa, ab = (a * a).sum(1), (a * b).sum(1)
        least = 1e-300 + 1e-12 * aa.sum()
        gain = ab.sum() / torch.maximum(aa.sum(), least)
        if n == 1:
            return DeviationFit(residual=u, gain=gain, mean_v=mean_v, mean_u=mean_u)
        c = n / (n - 1)
        gains = (ab.sum() - c * ab) / torch.maximum(aa.sum() - c * aa, least)
        residual = c * (b - gains[:, None] * a)
        return DeviationFit(residual=residual, gain=gain, mean_v=mean_v, mean_u=mean_u)

    def answer_task(self, fit: DeviationFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        return fit.mean_u + fit.gain * (self.moved(v) - fit.mean_v)


def _line(w: Tensor, u: Tensor, ww: Tensor, wu: Tensor) -> tuple[Tensor, Tensor]:
    """Gain and offset of least squares from the means of w, u, w^2 and w u."""
    variance = ww - w * w
    safe = torch.maximum(variance, 1e-12 * ww + 1e-300)
    gain = torch.where(variance > 1e-12 * ww, (wu - w * u) / safe, torch.zeros_like(w))
    return gain, u - gain * w
