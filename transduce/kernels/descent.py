"""Weights with which a stack of averaging kernels begins as a solver of least squares, for training to improve on.

Where weights A(v_i, v) = exp(c^2 <v_i, v>) are nearly equal, and examples have mean zero,

    sum_i A(v_i, v) r_i / sum_i A(v_i, v)  =  c^2 (1/n) sum_i <v_i, v> r_i + ...

is a step of gradient descent on the least squares of r_i on v_i, up to c^2. So each head takes `width` coefficients of v and regresses the
same ones of u on them, and each layer goes one step further, on what is left of the examples. Streams are (u, m), and start with memory
m = 0:

    r_i = u_i + 2 m_i,      s = eta / c^2 sum_i A(v_i, v) r_i / sum_i A(v_i, v),      u <- u + s,      m <- m - s

Then the query's u is the estimate and its memory the same with the sign changed; the example's u is u_i and its estimate, so that r_i is
what is left of u_i. Steps converge while eta is below 2 over the largest variance that a head sees, and 2 c^2, for the mean of the
examples. The second half of the heads does the same with the memory of v, which starts at 0: whatever F learns to write there are further
features to regress on.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from ..spaces import Space
from ..types import TransduceError
from .attention import Attention

C, STEP, FURTHER_STEP = 0.7, 0.7, 0.1


@torch.no_grad()
def start_with_descent(kernels: Iterable[Attention], V: Space, U: Space, memory: int) -> None:
    """Add the weights of descent to those that the kernels have."""
    for kappa in kernels:
        count = kappa.query.out_features // 2
        if kappa.heads % 2 or count > min(V.size, U.size, memory):
            raise TransduceError(
                f"init='descent' with {kappa.heads} heads of {kappa.query.out_features // kappa.heads}, V and U of sizes {V.size} and "
                f"{U.size}, and memory={memory}; expected an even number of heads, and half their features, {count}, in each of the three. "
                "Lower heads or width, or raise memory and modes."
            )
        inputs = torch.cat([V.order()[:count], V.size + torch.arange(count)])
        outputs, kept = U.order()[:count].repeat(2), U.size + torch.arange(count).repeat(2)
        rows = torch.arange(2 * count)
        step = torch.tensor([STEP, FURTHER_STEP]).repeat_interleave(count) / C**2
        for linear in (kappa.query, kappa.key):
            linear.weight[rows, inputs] += C * kappa.tau.sqrt()
        kappa.value.weight[rows, outputs] += 1
        kappa.value.weight[rows, kept] += 2
        _add(kappa.out, outputs, rows, step)
        _add(kappa.out, kept, rows, -step)


def _add(linear: nn.Linear, rows: torch.Tensor, columns: torch.Tensor, values: torch.Tensor) -> None:
    linear.weight.index_put_((rows, columns), values.to(linear.weight), accumulate=True)
