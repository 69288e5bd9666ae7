"""Fields on a grid as tokens: patches of p x p values, each brought to so many numbers by a learned
map (supplement S.4.3).

    c(y) = E (f(patch y) - mean) / unit,      f(patch y) = mean + unit D c(y)

E and D are the same at every patch y, so that a field of any size can be read. A grid that patches
do not fill is continued by its last values, which are left out again when fields are put together.
"""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from ..types import Json, TransduceError
from .base import Space


class Patches(Space):
    """patch: p. width: of tokens. mean, unit: of the values, in whatever unit they come.

    Coefficients have shape (..., rows, columns, width).

    >>> Patches(40, 512).encode(fields).shape      # fields: (15, 720, 720)
    (15, 18, 18, 512)
    """

    dims = 2

    def __init__(self, patch: int, width: int, mean: float = 0.0, unit: float = 1.0):
        super().__init__()
        if min(patch, width) < 1 or unit <= 0:
            raise TransduceError(
                f"patch={patch}, width={width}, unit={unit}; expected positive numbers."
            )
        self.patch, self.size, self.mean, self.unit = patch, width, mean, unit
        self.embed = nn.Linear(patch**2, width)
        self.back = nn.Linear(width, patch**2)

    def config(self) -> dict[str, Json]:
        return {
            "space": "Patches",
            "patch": self.patch,
            "width": self.size,
            "mean": self.mean,
            "unit": self.unit,
        }

    def only_encoding(self) -> Patches:
        self.back.requires_grad_(False)
        return self

    def encode(
        self, f: Float[Tensor, "... x y"], x: Tensor | None = None
    ) -> Float[Tensor, "... rows columns width"]:
        if x is not None:
            raise TransduceError(
                "scattered positions x were given to a model of patches; expected fields on a "
                "grid. Interpolate them."
            )
        p, (high, wide) = self.patch, f.shape[-2:]
        scaled = ((f - self.mean) / self.unit).reshape(-1, 1, high, wide)
        whole = pad(scaled, (0, -wide % p, 0, -high % p), mode="replicate")[:, 0]
        tokens = self.embed(rearrange(whole, "n (r a) (c b) -> n r c (a b)", a=p, b=p))
        return tokens.reshape(*f.shape[:-2], *tokens.shape[1:])

    def decode(
        self, c: Float[Tensor, "... rows columns width"], at: object
    ) -> Float[Tensor, "... x y"]:
        p, grid = self.patch, tuple(at) if isinstance(at, tuple | list | torch.Size) else ()
        if tuple(-(-points // p) for points in grid) != tuple(c.shape[-3:-1]):
            raise TransduceError(
                f"at={at} was asked of {c.shape[-3]} x {c.shape[-2]} patches of {p} x {p} points; "
                "expected a grid of so many. Leave it out."
            )
        whole = rearrange(self.back(c), "... r c (a b) -> ... (r a) (c b)", a=p, b=p)
        return self.mean + self.unit * whole[..., : grid[0], : grid[1]]
