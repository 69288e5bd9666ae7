"""Pairs moved by what their operator commutes with, so that a few stored pairs stand for many.

    O(g v) = g O(v),      g: a translation of the periodic square, a reflection of an axis, the exchange of both axes

g moves points and turns vectors alike: under the reflection x_1 -> -x_1 the first component changes its sign, under the exchange of axes
the components change places. So it is with Burgers' equation, and with the distribution that its initial fields are drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..types import ExampleSet, OperatorFamily, Task, TransduceError, to_tensor


@dataclass(frozen=True)
class Moved:
    """Tasks of a family of operators on vector fields (n, 2, p, p), every pair moved by a g of its own.

    >>> family = Moved(StoredFamily("burgers.zarr"))
    """

    family: OperatorFamily

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        task = self.family.sample_task(n, m, generator)
        parts = [[to_tensor(getattr(pairs, name), name) for name in ("v", "u")] for pairs in (task.examples, task.queries)]
        pairs = torch.cat([torch.stack(part, 1) for part in parts])
        if pairs.ndim != 5 or pairs.shape[2] != 2 or pairs.shape[3] != pairs.shape[4]:
            raise TransduceError(
                f"v has shape {(n + m, *pairs.shape[2:])}; only vector fields (n, 2, p, p) on a periodic square can be moved."
            )
        v, u = moved(pairs, generator).unbind(1)
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


def moved(pairs: Float[Tensor, "n k 2 p p"], generator: torch.Generator) -> Float[Tensor, "n k 2 p p"]:
    """Each of n sets of k fields moved by its own g."""
    n, points = len(pairs), pairs.shape[-1]
    shifts = torch.randint(points, (n, 2, 1), generator=generator)
    signs = 1 - 2 * torch.randint(2, (n, 2, 1), generator=generator)
    exchanged = torch.randint(2, (n,), generator=generator).bool()
    rows, columns = ((signs * torch.arange(points) + shifts) % points).unbind(1)
    found = pairs.movedim(3, 1)[torch.arange(n)[:, None], rows]  # (n, p, k, 2, p)
    found = found.movedim(-1, 1)[torch.arange(n)[:, None], columns]  # (n, p, p, k, 2): columns, rows
    found = (found * signs[:, None, None, None, :, 0]).movedim((1, 2), (4, 3))
    return torch.where(exchanged[:, None, None, None, None], found.flip(2).mT, found).contiguous()
