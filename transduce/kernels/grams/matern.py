"""Matern's kernel of smoothness 5/2, and the linear kernel, in a learned unit.

p_1(v, v') = (1 + r + r^2 / 3) exp(-r),     r = sqrt(5 / d) g |v - v'|
p_2(v, v') = g^2 <v, v'> / d
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..systems import LOG_UNIT, SMALLEST_RIDGE
from .base import Points, ProductGram

GAIN = 0.73  # g before training


class MaternGram(ProductGram):
    """Matern's kernel and the linear kernel."""

    groups = (1, 1)

    def __init__(self) -> None:
        super().__init__()
        self.log_gain = nn.Parameter(torch.tensor(math.log(GAIN) / LOG_UNIT))

    def unit(self, d: int) -> Float[Tensor, ""]:
        """g / sqrt(d)."""
        return (LOG_UNIT * self.log_gain).exp() / math.sqrt(d)

    def of_products(
        self, aa: Float[Tensor, ...], bb: Float[Tensor, ...], ab: Float[Tensor, "*b m n"]
    ) -> tuple[Float[Tensor, "*b m n"], ...]:
        r = (5 * (aa + bb - 2 * ab)).clamp(min=SMALLEST_RIDGE).sqrt()
        return (1 + r + r.square() / 3) * (-r).exp(), ab

    def diagonal(self, points: Points, scale: Float[Tensor, "b k"]) -> Float[Tensor, "b 2 n"]:
        squares = points[0].double().square().sum(-1)
        return torch.stack([torch.ones_like(squares), squares], 1)
