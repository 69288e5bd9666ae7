"""A space whose coefficients are padded with zeros, which are dropped on decoding.

The zeros are room for what layers compute on the way: features of both streams that are not part of
the answer.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..types import Json, TransduceError
from .base import Space


class Padded(Space):
    """A space with `extra` coefficients more, which start at zero.

    Args:
        of: the space.
        extra: number of zeros after its coefficients.
    """

    def __init__(self, of: Space, extra: int):
        super().__init__()
        if extra < 0:
            raise TransduceError(f"extra={extra}; expected a number of coefficients from 0.")
        self.of, self.extra = of, extra
        self.dims, self.channels, self.traceable = of.dims, of.channels, of.traceable
        self.size = of.size + extra

    @property
    def measured(self) -> bool:
        """That of the space inside."""
        return self.of.measured

    @measured.setter
    def measured(self, measured: bool) -> None:
        self.of.measured = measured

    def config(self) -> dict[str, Json]:
        return {"space": "Padded", "of": self.of.config(), "extra": self.extra}

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        return pad(self.of.encode(f, x), (0, self.extra))

    def decode(self, c: Tensor, at: object) -> Tensor:
        return self.of.decode(c[..., : self.of.size], at)

    def measure(self, f: Tensor) -> bool:
        return self.of.measure(f)

    def only_encoding(self) -> Padded:
        self.of.only_encoding()
        return self

    def order(self) -> Tensor:
        return torch.cat([self.of.order(), torch.arange(self.of.size, self.size)])

    def check_coordinates(self, f: object, name: str) -> None:
        self.of.check_coordinates(f, name)

    def check(self, f: Tensor, x: Tensor | None, name: str) -> tuple[int, ...]:
        return self.of.check(f, x, name)
