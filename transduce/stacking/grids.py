"""Tasks of a family on other grids, as users have them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..random_fields import uniform
from ..spaces import Gridded, Resample, Sampled, SampledFields
from ..spaces.splines import spline_matrix
from ..types import ExampleSet, OperatorFamily, Task, to_tensor


def log_uniform(bounds: tuple[int, int], generator: torch.Generator) -> int:
    """A whole number whose logarithm is uniform between two bounds."""
    low, high = (math.log(bound) for bound in bounds)
    return round(math.exp(uniform(low, high, generator)))


@dataclass(frozen=True)
class OnCurveGrids:
    """Curves on random uniform grids of v and u, which are equal in two draws of three.

    Args:
        family: tasks on one uniform grid of [0, 1].
        points: least and largest number of points.
    """

    family: OperatorFamily
    points: tuple[int, int] = (12, 160)

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        """A task of the family, moved to other grids."""
        task = self.family.sample_task(n, m, generator)
        v, u = (log_uniform(self.points, generator) for _ in range(2))
        u = v if uniform(0.0, 1.0, generator) < 2 / 3 else u
        return moved(task, Sampled(v), Sampled(u))


@dataclass(frozen=True)
class OnFieldGrids:
    """Fields on random uniform grids, which v and u share in two draws of three. Channels of zeros
    are left out.

    Args:
        family: tasks on one uniform grid of [0, 1]^2.
        points: least and largest number of points along an axis.
    """

    family: OperatorFamily
    points: tuple[int, int] = (10, 40)

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        """A task of the family, moved to other grids."""
        task = without_empty_channels(self.family.sample_task(n, m, generator))
        v, u = ([log_uniform(self.points, generator) for _ in "xy"] for _ in range(2))
        u = v if uniform(0.0, 1.0, generator) < 2 / 3 else u
        return moved(task, SampledFields(*v), SampledFields(*u))


@dataclass(frozen=True)
class ThroughFieldGrids:
    """Fields that are known on coarser grids: a share of the tasks is moved to another grid, and
    back by splines. So a model on one grid learns what a coarse one leaves of a field.

    Args:
        family: tasks on one uniform grid of [0, 1]^2.
        share: of the tasks.
        points: least and largest number of points along an axis.
    """

    family: OperatorFamily
    share: float = 0.4
    points: tuple[int, int] = (12, 32)

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        """A task of the family, on its own grid."""
        task = self.family.sample_task(n, m, generator)
        if uniform(0.0, 1.0, generator) > self.share:
            return task
        own = SampledFields(*to_tensor(task.examples.v, "v").shape[-2:])
        points = log_uniform(self.points, generator)
        coarse = SampledFields(points, points)
        return moved(moved(task, coarse, coarse), own, own)


def without_empty_channels(task: Task) -> Task:
    """The task without channels of zeros, and without the axis of a single channel."""

    def kept(name: str) -> tuple[Tensor, Tensor]:
        parts = [to_tensor(getattr(pairs, name), name) for pairs in (task.examples, task.queries)]
        there = parts[0].abs().flatten(2).amax((0, 2)) > 0
        single = int(there.sum()) == 1
        one, other = (f[:, there][:, 0] if single else f[:, there] for f in parts)
        return one, other

    (v, q), (u, w) = kept("v"), kept("u")
    return Task(ExampleSet(v, u), ExampleSet(q, w))


def moved(task: Task, V: Gridded, U: Gridded) -> Task:
    """The task on the grids of two spaces."""

    def onto(f: object, name: str, space: Gridded) -> Tensor:
        values = to_tensor(f, name)
        return _interpolation(values, space)(values.double()).to(values)

    def pairs(given: ExampleSet) -> ExampleSet:
        return ExampleSet(onto(given.v, "v", V), onto(given.u, "u", U))

    return Task(pairs(task.examples), pairs(task.queries))


def _interpolation(f: Tensor, space: Gridded) -> Resample:
    """The map from a uniform grid, that of f, to that of a space."""
    points = f.shape[-len(space.grid) :]
    uniform = (tuple(torch.linspace(0, 1, k).double().tolist()) for k in points)
    return Resample(*map(spline_matrix, uniform, space.axes))
