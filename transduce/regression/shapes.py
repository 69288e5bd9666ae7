"""Functions as tensors, in the shapes that spaces and regressors take."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..inputs import Functions
from ..spaces import Gridded, Sampled, SampledFields, Space, Values
from ..types import Array, ExampleSet


def as_tensor(values: object) -> Tensor:
    """Double precision; gradients are kept."""
    return values.double() if isinstance(values, Tensor) else torch.from_numpy(np.array(values))


def space_of(f: Functions) -> Gridded | Values:
    """The space of functions as they were read."""
    if f.layout.axes:
        return SampledFields(f.layout.axes[0], f.layout.axes[1], f.layout.channels)
    if f.grid is None:
        return Values(f.layout.channels * f.layout.points)
    return Sampled(f.grid.unit.tolist(), f.layout.channels)


def in_space(examples: ExampleSet, V: Space, U: Space) -> ExampleSet:
    return ExampleSet(V.unflattened(examples.v), U.unflattened(examples.u))


def by_channel(u: Tensor, U: Space) -> Float[Tensor, "m channels points"]:
    """Answers with the points of all axes in one."""
    return u.flatten(1).unflatten(1, (U.channels, -1))


def plain(f: Tensor) -> Tensor:
    """(n, points) for one channel."""
    return f[:, 0] if f.shape[1] == 1 else f


def with_channels(answer: Array, like: Functions) -> Tensor:
    u = as_tensor(answer)
    return u if like.layout.channels > 1 else u[:, None]
