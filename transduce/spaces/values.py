"""Functions by their values: BranchTrunk reads some, and has a learned basis (supplement S.2.3);
Euclidean takes all, or a power of each.

c_i = sign(f_i) |f_i|^power       (Euclidean)
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..types import Json, TransduceError
from .base import Space, grid_or_positions, unit_positions


class BranchTrunk(Space):
    """Values at `points` equal steps in; out, the weights of as many functions of x that a trunk
    network has learned.

    T(D)(v)(x) = sum_p g_p(D)(v) f_p(x)       (supplement S.2.3)
    """

    traceable = False

    def __init__(self, points: int = 101, hidden: int = 128, depth: int = 3):
        super().__init__()
        self.points, self.hidden, self.depth, self.size = points, hidden, depth, points
        widths = [1] + [hidden] * depth + [points]
        layers = [module for a, b in pairwise(widths) for module in (nn.Linear(a, b), nn.GELU())]
        self.trunk = nn.Sequential(*layers[:-1])

    def config(self) -> dict[str, Json]:
        return {
            "space": "BranchTrunk",
            "points": self.points,
            "hidden": self.hidden,
            "depth": self.depth,
        }

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        known = (
            torch.linspace(0, 1, f.shape[-1], dtype=torch.float64)
            if x is None
            else unit_positions(x, 1, "x").flatten()
        )
        if x is None and len(known) == self.points:
            return f
        if len(known) < 2:
            raise TransduceError(
                f"{len(known)} value a function is too few to interpolate. Give at least 2 points."
            )
        return f @ self._interpolation(known).to(f)

    def _interpolation(self, known: Float[Tensor, " q"]) -> Float[Tensor, "q p"]:
        """The matrix that interpolates linearly from the known points to this space's own."""
        order = torch.argsort(known)
        at = torch.linspace(0, 1, self.points, dtype=torch.float64)
        right = torch.searchsorted(known[order], at).clamp(1, len(known) - 1)
        a, b = order[right - 1], order[right]
        share = ((at - known[a]) / (known[b] - known[a]).clamp(min=1e-12)).clamp(0, 1)
        matrix = torch.zeros(len(known), self.points, dtype=torch.float64)
        columns = torch.arange(self.points)
        matrix[a, columns] += 1 - share
        matrix[b, columns] += share
        return matrix

    def decode(self, c: Tensor, at: object) -> Tensor:
        at = grid_or_positions(at, 1)
        x = torch.linspace(0, 1, at[0])[:, None] if isinstance(at, tuple) else at
        return c @ self.trunk(x.to(c)).T


class Euclidean(Space):
    """R^d: vectors as they are; or, with a power below 1, so that differences among small values
    count for more: of dark pixels, say."""

    vectors = True

    def __init__(self, size: int, power: float = 1.0):
        super().__init__()
        if not power > 0:
            raise TransduceError(
                f"power={power}; expected a number above 0, as 0.5 for square roots."
            )
        self.size, self.power = size, power

    def config(self) -> dict[str, Json]:
        config: dict[str, Json] = {"space": "Euclidean", "size": self.size}
        return config if self.power == 1 else config | {"power": self.power}

    def check(self, f: Tensor, x: Tensor | None, name: str) -> tuple[int, ...]:
        if x is not None:
            raise TransduceError(
                f"{name} has positions x, but this model reads vectors of length {self.size}, "
                "which have none. Leave x out."
            )
        if f.ndim != 2 or f.shape[1] != self.size:
            shape = tuple(f.shape)
            raise TransduceError(
                f"{name} has shape {shape}; this model expects (n, {self.size}). "
                f"{self._remedy(shape, name)}"
            )
        return (self.size,)

    def _remedy(self, shape: tuple[int, ...], name: str) -> str:
        """What makes (n, size) of an array of another shape, if anything does."""
        each, model = math.prod(shape[1:]), "Use a model made for vectors of that length"
        if shape == (self.size,):
            return f"Give it as {name}[None]."
        if shape and each == self.size:
            return f"Reshape it to ({shape[0]}, {self.size})."
        if each > 1 and math.prod(shape) == self.size:
            return f"Reshape it to (1, {self.size})."
        if len(shape) == 2 and each < self.size:
            return (
                f"{model}; classes go one-hot into {self.size} columns, or as labels to "
                "transduce.sklearn.TransducerClassifier."
            )
        return f"{model}."

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        return signed_power(f, self.power)

    def decode(self, c: Tensor, at: object) -> Tensor:
        if not isinstance(at, int | tuple) or at not in (self.size, (self.size,)):
            raise TransduceError(
                f"at={at} was asked of vectors of length {self.size}, which have no other points. "
                "Leave it out."
            )
        return signed_power(c, 1 / self.power)


def signed_power(f: Tensor, power: float) -> Tensor:
    """sign(f) |f|^power, of which 0 is a fixed point with a gradient of 0."""
    return f if power == 1 else f.sign() * f.abs().clamp(min=torch.finfo(f.dtype).tiny) ** power
