"""Weights with which averaging kernels start as a solver of least squares.

Where weights A(v_i, v) = exp(c^2 <v_i, v>) are nearly equal, the difference of two averages

    D r  =  sum_i A(v_i, v) r_i / sum_i A(v_i, v)  -  sum_i A(v_i, -v) r_i / sum_i A(v_i, -v)
         =  2 c^2 (1/n) sum_i <v_i, v> r_i + ...

is, up to 2 c^2, a step of gradient descent on the least squares of r_i on v_i; terms that are even
in v cancel. So each pair of heads takes `width` coefficients of v and regresses the same ones of u
on them, and each layer takes one more step, on the examples' residuals. Both spaces are `Padded`.
Streams are (u, m), and the padding m starts at 0:

    r_i = u_i + 2 m_i,      s = eta / (2 c^2) D r,      u <- u + s,      m <- m - s

Then the query's u is the estimate and its m the same with the sign changed; the example's u is u_i
plus its estimate, so that r_i is its residual. Steps converge while eta is below 2 over the largest
variance that a head sees. The second half of the heads does the same with the padding of v: F may
write further features there. They are to explain what the first half cannot,

    y = (u - W v) / spread,      W: least squares, head by head, over the pairs of a task

(with a ridge of 1e-4, and a spread of at least a thousandth of that of u, for coefficients that
hardly vary). A lesson teaches F to write y before the kernels learn.
"""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from transduce import TransduceError, Transducer
from transduce.kernels import Attention, ExpDot, Rbf
from transduce.layer import Feedforward
from transduce.spaces import Padded, Space

C, STEP, FURTHER_STEP = 0.3, 0.6, 0.5
RIDGE, SMALLEST_SPREAD = 1e-4, 1e-3


@torch.no_grad()
def start_with_descent(T: Transducer) -> None:
    """Add the weights of descent to those of T's kernels. F and G start near the identity.

    T: of ExpDot or Rbf layers between Padded spaces, initialised with a small gain.
    """
    V, U = _padded(T.V), _padded(T.U)
    for layer in dict.fromkeys(T.steps):
        if not isinstance(layer.kappa, ExpDot | Rbf):
            raise TransduceError(
                f"a start with descent of a {type(layer.kappa).__name__}; expected ExpDot or Rbf, "
                "whose weights follow inner products."
            )
        for part in (layer.F, layer.G):
            if isinstance(part, Feedforward):
                nn.init.xavier_uniform_(part.up.weight)
                nn.init.zeros_(part.down.bias)
        _add_descent(layer.kappa, V, U)


def _padded(space: Space) -> Padded:
    if isinstance(space, Padded):
        return space
    raise TransduceError(
        f"a start with descent between spaces like {type(space).__name__}; expected Padded ones, "
        "which have room for residuals. Give Padded(space, extra)."
    )


def _add_descent(kappa: ExpDot | Rbf, V: Padded, U: Padded) -> None:
    count, room = _count(kappa), min(V.extra, U.extra)
    if kappa.heads % 4 or count > min(V.of.size, U.of.size, room):
        raise TransduceError(
            f"a start with descent of {kappa.heads} heads of {kappa.width}, V and U of sizes "
            f"{V.of.size} and {U.of.size}, padded with {room}; expected a multiple of four heads, "
            f"and a quarter of their features, {count}, in each of the three. Lower heads or "
            "width, or raise padding and modes."
        )
    first, further = V.order()[:count], V.of.size + torch.arange(count)
    inputs = torch.cat([first, first, further, further])
    sign = torch.tensor([1.0, -1.0, 1.0, -1.0]).repeat_interleave(count)
    outputs, kept = U.order()[:count].repeat(4), U.of.size + torch.arange(count).repeat(4)
    rows = torch.arange(4 * count)
    step = sign * torch.tensor([STEP, FURTHER_STEP]).repeat_interleave(2 * count) / (2 * C**2)
    root = kappa.temperature.sqrt()
    kappa.query.weight[rows, inputs] += sign * C * root
    kappa.key.weight[rows, inputs] += C * root
    kappa.value.weight[rows, outputs] += 1
    kappa.value.weight[rows, kept] += 2
    _add(kappa.out, outputs, rows, step)
    _add(kappa.out, kept, rows, -step)


def _count(kappa: Attention) -> int:
    """The number of coefficients that are regressed: a quarter of the heads' features."""
    return kappa.heads * kappa.width // 4


def left_by_lines(
    kappa: Attention, V: Space, U: Space, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
) -> Float[Tensor, "b n count"]:
    """y: the residuals of a linear regression of each coefficient of u on the same head's of v, in
    units of their spread."""
    count, heads = _count(kappa), kappa.heads // 4
    x, y = (
        rearrange(c[..., space.order()[:count]], "b n (h w) -> b h n w", h=heads)
        for space, c in ((V, v), (U, u))
    )
    ridge = RIDGE * torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    gram = x.mT @ x / x.shape[-2] + ridge
    residual = y - x @ torch.linalg.solve(gram, x.mT @ y / x.shape[-2])
    least = SMALLEST_SPREAD * u.square().mean((1, 2)).sqrt()[:, None, None, None] + 1e-30
    spread = residual.square().mean(-2, keepdim=True).sqrt().clamp(min=least)
    return rearrange(residual / spread, "b h n w -> b n (h w)")


def lesson_errors(
    T: Transducer, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
) -> Float[Tensor, "b n"]:
    """The mean squared errors of F, which is to leave v as it is and to write y to its padding.

    v, u: pairs of b tasks, as T.V and T.U encode them.
    """
    V, U, kappa = _padded(T.V), _padded(T.U), T.steps[0].kappa
    assert isinstance(kappa, Attention)
    scaled = v / T.spread
    y = left_by_lines(kappa, V, U, scaled, u[..., : U.of.size])
    target = torch.cat([scaled[..., : V.of.size], y], -1)
    errors = [
        (stream[..., : target.shape[-1]] - target).square().mean(-1) for stream in T.transformed(v)
    ]
    return torch.stack(errors).mean(0)


def _add(
    linear: nn.Linear,
    rows: Int[Tensor, " k"],
    columns: Int[Tensor, " k"],
    values: Float[Tensor, " k"],
) -> None:
    linear.weight.index_put_((rows, columns), values.to(linear.weight), accumulate=True)
