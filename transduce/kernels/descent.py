"""Weights with which a stack of averaging kernels begins as a solver of least squares, for training
to improve on.

Where weights A(v_i, v) = exp(c^2 <v_i, v>) are nearly equal, the difference of two averages

    D r  =  sum_i A(v_i, v) r_i / sum_i A(v_i, v)  -  sum_i A(v_i, -v) r_i / sum_i A(v_i, -v)
         =  2 c^2 (1/n) sum_i <v_i, v> r_i + ...

is, up to 2 c^2, a step of gradient descent on the least squares of r_i on v_i; what is even in v
cancels. So each pair of heads takes `width` coefficients of v and regresses the same ones of u on
them, and each layer goes one step further, on what is left of the examples. Streams are (u, m), and
start with memory m = 0:

    r_i = u_i + 2 m_i,      s = eta / (2 c^2) D r,      u <- u + s,      m <- m - s

Then the query's u is the estimate and its memory the same with the sign changed; the example's u is
u_i and its estimate, so that r_i is what is left of u_i. Steps converge while eta is below 2 over
the largest variance that a head sees. The second half of the heads does the same with the memory of
v, which starts at 0: whatever F learns to write there are further features to regress on. What they
are to explain is what the first half cannot,

    y = (u - W v) / spread,      W: least squares, head by head, over the pairs of a task

(with a ridge of 1e-4, and a spread of at least a thousandth of that of u, for coefficients that
hardly vary), which a lesson may teach F to write before the kernels learn."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from ..spaces import Space
from ..types import TransduceError
from .attention import Attention

C, STEP, FURTHER_STEP = 0.3, 0.6, 0.5


@torch.no_grad()
def start_with_descent(kernels: Iterable[Attention], V: Space, U: Space, memory: int) -> None:
    """Add the weights of descent to those that the kernels have."""
    for kappa in kernels:
        count = kappa.query.out_features // 4
        if kappa.heads % 4 or count > min(V.size, U.size, memory):
            raise TransduceError(
                f"init='descent' with {kappa.heads} heads of "
                f"{kappa.query.out_features // kappa.heads}, V and U of sizes {V.size} and "
                f"{U.size}, and memory={memory}; expected a multiple of four heads, and a quarter "
                f"of their features, {count}, in each of "
                "the three. Lower heads or width, or raise memory and modes."
            )
        first, further = V.order()[:count], V.size + torch.arange(count)
        inputs, sign = (
            torch.cat([first, first, further, further]),
            torch.tensor([1.0, -1.0, 1.0, -1.0]).repeat_interleave(count),
        )
        outputs, kept = U.order()[:count].repeat(4), U.size + torch.arange(count).repeat(4)
        rows = torch.arange(4 * count)
        step = sign * torch.tensor([STEP, FURTHER_STEP]).repeat_interleave(2 * count) / (2 * C**2)
        kappa.query.weight[rows, inputs] += sign * C * kappa.tau.sqrt()
        kappa.key.weight[rows, inputs] += C * kappa.tau.sqrt()
        kappa.value.weight[rows, outputs] += 1
        kappa.value.weight[rows, kept] += 2
        _add(kappa.out, outputs, rows, step)
        _add(kappa.out, kept, rows, -step)


def left_by_lines(
    kappa: Attention, V: Space, U: Space, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
) -> Float[Tensor, "b n count"]:
    """y: of each coefficient of u that the kernel regresses, what a line through the same head's of
    v leaves, in units of its spread."""
    count, heads = kappa.query.out_features // 4, kappa.heads // 4
    x, y = (
        rearrange(c[..., space.order()[:count]], "b n (h w) -> b h n w", h=heads)
        for space, c in ((V, v), (U, u))
    )
    gram = x.mT @ x / x.shape[-2] + 1e-4 * torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    left = y - x @ torch.linalg.solve(gram, x.mT @ y / x.shape[-2])
    least = 1e-3 * u.square().mean((1, 2)).sqrt()[:, None, None, None] + 1e-30
    spread = left.square().mean(-2, keepdim=True).sqrt().clamp(min=least)
    return rearrange(left / spread, "b h n w -> b n (h w)")


def _add(
    linear: nn.Linear, rows: torch.Tensor, columns: torch.Tensor, values: torch.Tensor
) -> None:
    linear.weight.index_put_((rows, columns), values.to(linear.weight), accumulate=True)
