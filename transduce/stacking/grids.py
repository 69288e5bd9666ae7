"""Tasks of a family on other grids, as users have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..random_fields import uniform
from ..spaces.splines import spline_matrix
from ..types import ExampleSet, OperatorFamily, Task, to_tensor

Change = Callable[[Tensor], Tensor]


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
        x_v, x_u = (torch.linspace(0, 1, points, dtype=torch.float64) for points in (v, u))
        return on_grids(task, lambda f: _interpolated(f, x_v), lambda f: _interpolated(f, x_u))


@dataclass(frozen=True)
class OnFieldGrids:
    """Fields on random uniform grids, which v and u share in two draws of three. Channels of zeros
    are left out. Coarser grids hold the nearest stored points, so that steps stay steps; in one
    draw of two they leave out a part of their last cells, as grids of cells do.

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
        cell = 1 / max(v) if uniform(0.0, 1.0, generator) < 1 / 2 else 0.0
        ends = [[uniform(0.0, cell, generator) for _ in range(2)] for _ in "xy"]

        def change(points: list[int]) -> Change:
            places = [
                torch.linspace(first, 1 - last, number, dtype=torch.float64)
                for (first, last), number in zip(ends, points, strict=True)
            ]
            return lambda f: _field_at(f, places)

        return on_grids(task, change(v), change(u))


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


def on_grids(task: Task, of_v: Change, of_u: Change) -> Task:
    """The task with other v and u."""

    def pairs(given: ExampleSet) -> ExampleSet:
        return ExampleSet(of_v(to_tensor(given.v, "v")), of_u(to_tensor(given.u, "u")))

    return Task(pairs(task.examples), pairs(task.queries))


def _field_at(f: Tensor, places: Sequence[Tensor]) -> Tensor:
    """Fields at positions along each axis; at the nearest stored ones, where these are more."""
    for axis, x in zip((-2, -1), places, strict=True):
        last = f.shape[axis] - 1
        if len(x) <= f.shape[axis]:
            f = f.index_select(axis, (x * last).round().long())
        else:
            f = _interpolated(f.movedim(axis, -1), x).movedim(-1, axis)
    return f


def _interpolated(f: Tensor, x: Tensor) -> Tensor:
    """Functions on a uniform grid of [0, 1] at other positions, by splines."""
    own = torch.linspace(0, 1, f.shape[-1], dtype=torch.float64)
    matrix = spline_matrix(tuple(own.tolist()), tuple(x.tolist()))
    return (f.double() @ matrix.T).to(f)
