"""Metrics in which kernels compare functions: linear maps of the values, in units of the examples.

    |f|^2 = sum_j (M (f - m))_j^2,      m the mean of the examples

| kind | compares |
| --- | --- |
| values | values |
| slopes | first derivatives |
| with slopes | values and first derivatives |
| integrals | running integrals |
| double integrals | running integrals of running integrals |
| smooth | Gaussian means of the values nearby |
| scales | values and such means |
| columns | values in units of the standard deviation of each column |
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..configs import Part
from ..spaces import Gridded, Resample, Sampled, SampledFields, Space, WithParameters
from ..types import TransduceError

KINDS = (
    "values",
    "slopes",
    "with slopes",
    "integrals",
    "double integrals",
    "smooth",
    "scales",
    "columns",
)
PLAIN = ("values", "columns")  # on any space
NEARBY = 0.1  # standard deviation of those Gaussians, as a share of the interval


class Metric(Part):
    """A metric between functions of a space.

    Args:
        V: the space.
        kind: one of `KINDS`.
    """

    def __init__(self, V: Space, kind: str = "values"):
        super().__init__()
        if kind not in KINDS:
            raise TransduceError(f"kind={kind!r}; expected one of {', '.join(KINDS)}.")
        self.V, self.kind = V, kind
        self.own = functions_of(V)
        self.maps = nn.ModuleList(_maps(self.own, kind))
        if not len(self.maps) and kind not in PLAIN:
            raise TransduceError(
                f"a metric of {kind} on {V.config()}; expected functions at positions x. Use "
                "values or columns."
            )

    def fit(self, v: Float[Tensor, "n d"]) -> tuple[Tensor, ...]:
        """The mean of the examples, and the scale of each column where the metric has one."""
        mean = v.mean(0)
        if self.kind != "columns" and self.own is self.V:
            return (mean,)
        spread = _root((v - mean).square().mean(0))
        within = slice(self.own.size)
        if self.kind != "columns":  # functions keep their units, parameters have their own
            whole = _root(spread[within].square().sum())
            spread = torch.cat([whole.expand(self.own.size), spread[self.own.size :]])
        return mean, torch.where(spread > 1e-12 * mean.abs(), 1 / spread.clamp(min=1e-300), 0.0)

    def forward(self, chosen: tuple[Tensor, ...], v: Float[Tensor, "n d"]) -> Float[Tensor, "n e"]:
        """v in coordinates whose squared distances are those of the metric."""
        centred = v - chosen[0]
        if len(chosen) > 1:
            centred = centred * chosen[1]
        if not len(self.maps):
            return centred
        functions, parameters = centred[:, : self.own.size], centred[:, self.own.size :]
        assert isinstance(self.own, Gridded)
        shaped = self.own.shaped(functions)
        parts = [map(shaped).flatten(2) for map in self.maps]
        return torch.cat([torch.cat(parts, -1).flatten(1), parameters], -1)


def has_metric(V: Space, kind: str) -> bool:
    """Whether a space has this metric. Columns of one curve have the same unit, and so have the
    values whose powers are taken."""
    own = functions_of(V)
    if kind == "columns":
        return not isinstance(V, Sampled) or V.channels > 1
    if kind == "scales":
        return isinstance(V, Gridded)
    maps = MATRICES if isinstance(own, Sampled) else OF_FIELDS
    return kind == "values" or (isinstance(own, Gridded) and kind in maps)


def _maps(V: Space, kind: str) -> list[Resample]:
    """The maps whose values "values" compares; none for the values themselves."""
    if isinstance(V, Sampled) and kind in MATRICES:
        return [Resample(MATRICES[kind](V.x))]
    if isinstance(V, SampledFields) and kind in OF_FIELDS:
        return OF_FIELDS[kind](V)
    return []


def functions_of(V: Space) -> Space:
    """The space without parameters."""
    return V.functions if isinstance(V, WithParameters) else V


def _root(squares: Float[Tensor, "*d"]) -> Float[Tensor, "*d"]:
    """Square roots; 0 has the derivative 0."""
    varying = torch.where(squares > 0, squares, 1.0)
    return torch.where(squares > 0, varying.sqrt(), 0.0)


def _slopes(x: tuple[float, ...]) -> Float[Tensor, "e p"]:
    """Differences of neighbouring values, divided by the distance."""
    if len(x) < 2:
        return torch.eye(len(x), dtype=torch.float64)
    gaps = np.diff(x)
    return torch.from_numpy(np.diff(np.eye(len(x)), axis=0) / gaps[:, None])


def _integrals(x: tuple[float, ...]) -> Float[Tensor, "e p"]:
    """Running integrals by the trapezoidal rule."""
    gaps = np.diff(x)[:, None]
    identity = np.eye(len(x))
    steps = gaps * (identity[1:] + identity[:-1]) / 2
    return torch.from_numpy(np.concatenate([np.zeros((1, len(x))), np.cumsum(steps, 0)]))


def _double_integrals(x: tuple[float, ...]) -> Float[Tensor, "e p"]:
    """Running integrals of running integrals less their mean."""
    once = _integrals(x)
    return once @ (once - once.mean(0))


def _scales(x: tuple[float, ...]) -> Float[Tensor, "e p"]:
    """Values, and Gaussian means of the values nearby."""
    return torch.cat([torch.eye(len(x), dtype=torch.float64), _nearby(x)])


def _nearby(x: tuple[float, ...]) -> Float[Tensor, "p p"]:
    """Gaussian means of the values nearby."""
    at = torch.tensor(x, dtype=torch.float64)
    near = torch.exp(-((at[:, None] - at) / NEARBY).square() / 2) * _share(at)
    return near / near.sum(1, keepdim=True)


def _share(x: Float[Tensor, " p"]) -> Float[Tensor, " p"]:
    """The part of the interval that each position stands for."""
    ends = torch.cat([x[:1], (x[1:] + x[:-1]) / 2, x[-1:]])
    return ends.diff() if len(x) > 1 else torch.ones_like(x)


def _smooth(V: SampledFields) -> Resample:
    return Resample(_nearby(V.x), _nearby(V.y))


def _with_slopes(V: SampledFields) -> list[Resample]:
    """Values, and first derivatives along both axes divided by pi: of half a wave across the side
    both are of one size."""
    along_x, along_y = (_slopes(x) / math.pi for x in V.axes)
    return [V.onto(V), Resample(along_x, _whole(V.y)), Resample(_whole(V.x), along_y)]


def _whole(x: tuple[float, ...]) -> Float[Tensor, "p p"]:
    return torch.eye(len(x), dtype=torch.float64)


OF_FIELDS: dict[str, Callable[[SampledFields], list[Resample]]] = {
    "scales": lambda V: [V.onto(V), _smooth(V)],
    "smooth": lambda V: [_smooth(V)],
    "with slopes": _with_slopes,
}
MATRICES = {
    "slopes": _slopes,
    "integrals": _integrals,
    "double integrals": _double_integrals,
    "scales": _scales,
}
