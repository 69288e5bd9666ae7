"""The contract of a Gram: several positive kernels between functions, called its parts.

    k_j(v, v') = sum_s c_js p_s(v, v')

`Ridge` makes its candidates k_j of the parts p_s. Parts form groups, and a candidate takes one part
of each group. A Gram turns functions into points once, compares points in pairs, and turns pairs
into parts with the help of a scale that it measures from the examples.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from ...configs import Part
from ...types import TransduceError

Points: TypeAlias = tuple[Tensor, ...]  # each of shape (b, ..., n, size)


class Landmarks(NamedTuple):
    """Some of the examples, and what whitens the parts' values between them."""

    centres: Tensor
    root: Tensor


class Gram(Part):
    """Positive kernels between functions. Subclasses implement `points`, `pairs` and `diagonal`.

    groups: the number of parts in each group.
    """

    groups: tuple[int, ...]

    def points(self, v: Float[Tensor, "b n d"]) -> Points:
        """Functions in the form in which they are compared."""
        raise NotImplementedError

    def pairs(self, a: Points, b: Points) -> Float[Tensor, "b p m n"]:
        """All that parts need of each pair of functions and that no scale enters."""
        raise NotImplementedError

    def diagonal(self, points: Points, scale: Float[Tensor, "b k"]) -> Float[Tensor, "b s n"]:
        """p_s(v, v) of each function."""
        raise NotImplementedError

    def scale(self, points: Points, there: Float[Tensor, "b n"]) -> Float[Tensor, "b k"]:
        """What parts are relative to, measured from the examples that are there."""
        return torch.ones_like(there[:, :1])

    def parts(
        self, pairs: Float[Tensor, "a p m n"], scale: Float[Tensor, "b k"]
    ) -> Float[Tensor, "b s m n"]:
        """p_s of each pair, in double precision."""
        return pairs.double()

    def between(
        self, a: Points, b: Points, scale: Float[Tensor, "b k"]
    ) -> Float[Tensor, "b s m n"]:
        """p_s of all pairs."""
        return self.parts(self.pairs(a, b), scale)

    def among(
        self, points: Points, there: Float[Tensor, "b n"]
    ) -> tuple[Float[Tensor, "b s n n"], Float[Tensor, "b k"]]:
        """p_s of all pairs of examples, and the scale."""
        scale = self.scale(points, there)
        return self.between(points, points, scale), scale

    def fold(
        self, points: Points, scale: Float[Tensor, "b k"], c: Float[Tensor, "b s n q"]
    ) -> Points:
        """All that `answer` needs of the examples and their coefficients c."""
        return (c, *points)

    def answer(
        self, folded: Points, query: Points, scale: Float[Tensor, "b k"]
    ) -> Float[Tensor, "b m q"]:
        """sum_s sum_i p_s(v_i, v) c_si at each query v."""
        c, *points = folded
        return (self.between(query, tuple(points), scale) @ c).sum(1)

    def landmarks(self, points: Points, count: int) -> Landmarks:
        """`count` of the examples, which span the parts that have no finite features."""
        raise TransduceError(
            f"{type(self).__name__} has no landmarks and compares all pairs of examples. Give a "
            "sample of the examples."
        )

    def design(
        self, points: Points, scale: Float[Tensor, "b k"], landmarks: Landmarks
    ) -> tuple[Float[Tensor, "b _ n _"], ...]:
        """For each group, features whose inner products are the parts on the landmarks' span."""
        raise NotImplementedError

    def fold_design(
        self,
        theta: tuple[Float[Tensor, "b _ _ q"], ...],
        scale: Float[Tensor, "b k"],
        landmarks: Landmarks,
    ) -> Points:
        """All that `answer` needs of the coefficients of the features of `design`."""
        raise NotImplementedError

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        """Hook called once before training with the scale of the inputs: see Kappa."""


class ProductGram(Gram):
    """A Gram whose parts depend on inner products of functions alone."""

    def unit(self, d: int) -> Float[Tensor, ""]:
        """The factor that turns functions of size d into points."""
        raise NotImplementedError

    def of_products(
        self, aa: Float[Tensor, ...], bb: Float[Tensor, ...], ab: Float[Tensor, "*b m n"]
    ) -> tuple[Float[Tensor, "*b m n"], ...]:
        """The parts, from the inner products of points with themselves and with each other."""
        raise NotImplementedError

    def points(self, v: Float[Tensor, "b n d"]) -> Points:
        return (self.unit(v.shape[-1]) * v,)

    def pairs(self, a: Points, b: Points) -> Float[Tensor, "b s m n"]:
        x, y = a[0].double(), b[0].double()
        aa, bb = x.square().sum(-1)[..., :, None], y.square().sum(-1)[..., None, :]
        return torch.stack(self.of_products(aa, bb, x @ y.mT), 1)
