"""F and G: what turns the stream of each function into the next, whatever the other functions are.

    Feedforward    x <- x + W_2 gelu(W_1 norm(x))
    Neighbours
    x(y) <- x(y) + W sum_s a_s(y) V norm(x(y + s)),
    a_s(y) = softmax_s <Q norm(x(y)), K norm(x(y + s))> / sqrt(c)

y are the patches of a field, and s the steps to those at most `reach` rows and columns away:
spatial attention limited to neighbours, which is why no patch needs to be told where it is. A
feedforward follows."""

from __future__ import annotations

import math

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import gelu, pad

CHUNK = (
    400  # patches that look at their neighbours at once: memory is reused, and stays in the cache
)


class Feedforward(nn.Module):
    """x + W_2 gelu(W_1 layer_norm(x))."""

    def __init__(self, d: int, hidden: int):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up = nn.Linear(d, hidden)
        self.down = nn.Linear(hidden, d)

    def forward(self, x: Float[Tensor, "b n *grid d"]) -> Float[Tensor, "b n *grid d"]:
        return x + self.down(gelu(self.up(self.norm(x))))


class Neighbours(nn.Module):
    """Attention among neighbouring patches, then a feedforward. heads, width: of the attention."""

    def __init__(self, d: int, heads: int, width: int, hidden: int, reach: int = 1):
        super().__init__()
        self.heads, self.reach = heads, reach
        self.norm = nn.LayerNorm(d)
        self.query_key_value = nn.Linear(d, 3 * heads * width, bias=False)
        self.out = nn.Linear(heads * width, d)
        self.feedforward = Feedforward(d, hidden)

    def forward(self, x: Float[Tensor, "b n r c d"]) -> Float[Tensor, "b n r c d"]:
        whole = x.flatten(0, 1)
        if (
            torch.compiler.is_exporting()
        ):  # a graph for any number of fields cannot know how many parts they make
            return self._looked(whole).reshape(x.shape)
        parts = whole.split(max(1, CHUNK // (x.shape[2] * x.shape[3])))
        return torch.cat([self._looked(part) for part in parts]).reshape(x.shape)

    def _looked(self, x: Float[Tensor, "n r c d"]) -> Float[Tensor, "n r c d"]:
        query, key, value = rearrange(
            self.query_key_value(self.norm(x)), "n r c (k h e) -> k n h r c e", k=3, h=self.heads
        )
        rows, columns, reach = *x.shape[1:3], self.reach
        around = [pad(part, (0, 0, reach, reach, reach, reach)) for part in (key, value)]
        steps = [(i, j) for i in range(2 * reach + 1) for j in range(2 * reach + 1)]
        inside = pad(x.new_zeros(rows, columns), (reach,) * 4, value=-math.inf)
        scores = torch.stack(
            [
                (query * around[0][..., i : i + rows, j : j + columns, :]).sum(-1)
                / math.sqrt(query.shape[-1])
                + inside[i : i + rows, j : j + columns]
                for i, j in steps
            ],
            -1,
        ).softmax(-1)
        found = sum(
            scores[..., s, None] * around[1][..., i : i + rows, j : j + columns, :]
            for s, (i, j) in enumerate(steps)
        )
        return self.feedforward(x + self.out(rearrange(found, "n h r c e -> n r c (h e)")))
