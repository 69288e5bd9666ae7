"""Pairs moved by what their operator commutes with, so that a few stored pairs stand for many.

    O(g v) = g O(v),
    g: a translation of the periodic square, a reflection of an axis, the exchange of both axes

g moves points and turns vectors alike: under the reflection x_1 -> -x_1 the first component changes
its sign, under the exchange of axes the components change places. So it is with Burgers' equation,
and with the distribution that its initial fields are drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..types import ExampleSet, OperatorFamily, Task, TransduceError, to_tensor


@dataclass(frozen=True)
class Moved:
    """Tasks of a family of operators on vector fields (n, 2, p, p), every pair moved by a g of its
    own.

    >>> family = Moved(StoredFamily("burgers.zarr"))
    """

    family: OperatorFamily

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        task = self.family.sample_task(n, m, generator)
        v, u = (
            torch.cat(
                [to_tensor(getattr(pairs, name), name) for pairs in (task.examples, task.queries)]
            )
            for name in ("v", "u")
        )
        if v.ndim != 4 or v.shape != u.shape or v.shape[1] != 2 or v.shape[2] != v.shape[3]:
            raise TransduceError(
                f"v has shape {tuple(v.shape)} and u {tuple(u.shape)}; only vector fields (n, 2, "
                "p, p) on a periodic square can be moved. "
                "Use the family as it is."
            )
        v, u = moved(torch.stack([v, u], 1), generator).unbind(1)
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


def moved(
    pairs: Float[Tensor, "n k 2 p p"], generator: torch.Generator
) -> Float[Tensor, "n k 2 p p"]:
    """Each of n sets of k fields moved by its own g."""
    n, points = len(pairs), pairs.shape[-1]
    shifts = torch.randint(points, (n, 2, 1), generator=generator)
    signs = 1 - 2 * torch.randint(2, (n, 2, 1), generator=generator)
    exchanged = torch.randint(2, (n,), generator=generator).bool()
    rows, columns = ((signs * torch.arange(points) + shifts) % points).unbind(1)
    found = pairs.movedim(3, 1)[torch.arange(n)[:, None], rows]  # (n, p, k, 2, p)
    # (n, p, p, k, 2): columns, rows.
    found = found.movedim(-1, 1)[torch.arange(n)[:, None], columns]
    found = (found * signs[:, None, None, None, :, 0]).movedim((1, 2), (4, 3))
    return torch.where(exchanged[:, None, None, None, None], found.flip(2).mT, found).contiguous()
