"""Attention among neighbouring patches of a field, used as the G of a layer.

    x(y) <- x(y) + W sum_s a_s(y) V norm(x(y + s)),
    a_s(y) = softmax_s <Q norm(x(y)), K norm(x(y + s))> / sqrt(c)

y are the patches of a field, and s the steps to those at most `reach` rows and columns away. A
patch sees its neighbours alone, so it needs no positional encoding. A feedforward network follows.
"""

from __future__ import annotations

import math

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from transduce import TransduceError
from transduce.configs import Part
from transduce.layer import Feedforward

CHUNK = 400  # patches that look at their neighbours at once, so that memory stays in the cache


class Neighbours(Part):
    """Attention among neighbouring patches, then a feedforward network.

    Args:
        d: size of a patch's coefficients.
        heads: number of heads of the attention.
        width: number of features of a head.
        hidden: width of the feedforward network.
        reach: how many rows and columns away a patch looks.
    """

    def __init__(self, d: int, heads: int, width: int, hidden: int, reach: int = 1):
        super().__init__()
        if reach < 1:
            raise TransduceError(f"reach={reach}; expected a number of patches from 1.")
        self.d, self.heads, self.width, self.hidden, self.reach = d, heads, width, hidden, reach
        self.norm = nn.LayerNorm(d)
        self.query_key_value = nn.Linear(d, 3 * heads * width, bias=False)
        self.out = nn.Linear(heads * width, d)
        self.feedforward = Feedforward(d, hidden)

    def forward(self, x: Float[Tensor, "b n r c d"]) -> Float[Tensor, "b n r c d"]:
        fields = x.flatten(0, 1)
        if torch.compiler.is_exporting():  # an exported graph takes any number of fields
            return self._attended(fields).reshape(x.shape)
        parts = fields.split(max(1, CHUNK // (x.shape[2] * x.shape[3])))
        return torch.cat([self._attended(part) for part in parts]).reshape(x.shape)

    def _attended(self, x: Float[Tensor, "n r c d"]) -> Float[Tensor, "n r c d"]:
        query, key, value = rearrange(
            self.query_key_value(self.norm(x)), "n r c (k h e) -> k n h r c e", k=3, h=self.heads
        )
        rows, columns, reach = *x.shape[1:3], self.reach
        keys, values = (pad(part, (0, 0, reach, reach, reach, reach)) for part in (key, value))
        steps = [(i, j) for i in range(2 * reach + 1) for j in range(2 * reach + 1)]
        inside = pad(x.new_zeros(rows, columns), (reach,) * 4, value=-math.inf)
        scores = [
            (query * keys[..., i : i + rows, j : j + columns, :]).sum(-1) / math.sqrt(self.width)
            + inside[i : i + rows, j : j + columns]
            for i, j in steps
        ]
        weights = torch.stack(scores, -1).softmax(-1)
        found = sum(
            weights[..., s, None] * values[..., i : i + rows, j : j + columns, :]
            for s, (i, j) in enumerate(steps)
        )
        return self.feedforward(x + self.out(rearrange(found, "n h r c e -> n r c (h e)")))
