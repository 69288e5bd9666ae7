"""Units of curves: means and sizes that are measured from the examples."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

TINY = 1e-30
BOUND = 20.0  # of inputs of the network in units of the examples, beyond which they grow slowly


@dataclass(frozen=True)
class Units:
    """Means and sizes of the examples. b is the number of tasks times that of channels of u.

    Attributes:
        m: mean of v on the network's grid.
        a: root mean square of v.
        c: root mean square of v - m.
        m_u: mean of u.
        s: root mean square of u - m_u.
    """

    m: Float[Tensor, "b 1 i p"]
    a: Float[Tensor, "b 1 i 1"]
    c: Float[Tensor, "b 1 i 1"]
    m_u: Float[Tensor, "b 1 q"]
    s: Float[Tensor, "b 1 1"]


def measure(
    f: Float[Tensor, "k n i p"], y: Float[Tensor, "k n q"], there: Float[Tensor, "k n"]
) -> Units:
    """Means and sizes of the examples that are there."""
    share = (there / there.sum(1, keepdim=True).clamp(min=1))[..., None]

    def size(g: Tensor, share: Tensor) -> Tensor:
        return (g.square() * share).sum(1, keepdim=True).mean(-1, keepdim=True).sqrt()

    m, m_u = (f * share[..., None]).sum(1, keepdim=True), (y * share).sum(1, keepdim=True)
    a = size(f, share[..., None]).clamp(min=TINY)
    c = torch.maximum(size(f - m, share[..., None]), 1e-6 * a)
    return Units(m, a, c, m_u, size(y - m_u, share).clamp(min=TINY))


def sizes(h: Float[Tensor, "k n q c"], there: Float[Tensor, "k n"]) -> Float[Tensor, "k 1 1 c"]:
    """The root mean square of each channel over the examples that are there; at least a hundredth
    of that of all."""
    share = (there / there.sum(1, keepdim=True).clamp(min=1)).to(h)[..., None, None]
    squares = (h.square() * share).sum(1, keepdim=True).mean(2, keepdim=True)
    return torch.maximum(squares, 1e-4 * squares.mean(-1, keepdim=True)).add(1e-20).sqrt()


def bounded(f: Tensor) -> Tensor:
    """f, growing as a logarithm beyond `BOUND`."""
    excess = (f.abs() - BOUND).clamp(min=0)
    return f.clamp(-BOUND, BOUND) + f.sign() * excess.log1p()


def legendre(count: int, x: Float[Tensor, " p"]) -> Float[Tensor, "k p"]:
    """The first Legendre polynomials on [0, 1]."""
    t = 2 * x - 1
    found = [torch.ones_like(t), t]
    for k in range(1, count - 1):
        found.append(((2 * k + 1) * t * found[-1] - k * found[-2]) / (k + 1))
    return torch.stack(found[:count])
