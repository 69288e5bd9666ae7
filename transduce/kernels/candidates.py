"""Candidates of a `Ridge`: kernels made of the parts of a Gram, each with a ridge.

    k_j = sum_s c_js p_s,       c_js >= 0,      lambda_j > 0

A candidate takes one part of each group of the Gram, so row j of the matrix c has as many nonzero
entries as there are groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..configs import Part
from ..types import TransduceError
from .grams import Gram, Points
from .grams.base import Landmarks


class Candidates(Part):
    """Kernels made of the parts of a Gram. Subclasses implement `shares` and `ridge`, and call
    `choose` once."""

    gram: Gram

    def choose(self, gram: Gram, *members: Sequence[int]) -> None:
        """Set the Gram, and for each of its groups the part that each candidate takes."""
        sizes = tuple(1 + max(member) for member in members)
        if len(members) != len(gram.groups) or any(
            size > group for size, group in zip(sizes, gram.groups, strict=True)
        ):
            raise TransduceError(
                f"candidates of {sizes} parts with a {type(gram).__name__} whose groups have "
                f"{tuple(gram.groups)}; expected no more. Give both the same sizes."
            )
        self.gram, self.count = gram, len(members[0])
        for group, (size, member) in enumerate(zip(gram.groups, members, strict=True)):
            index = torch.tensor(member)
            one_hot = nn.functional.one_hot(index, size).double()
            self.register_buffer(f"member_{group}", index, persistent=False)
            self.register_buffer(f"one_hot_{group}", one_hot, persistent=False)

    def member(self, group: int) -> Int[Tensor, " j"]:
        """The part of a group that each candidate takes."""
        return self.get_buffer(f"member_{group}")

    def shares(self) -> tuple[Float[Tensor, "j 1"], ...]:
        """The factor of each candidate's part of each group."""
        raise NotImplementedError

    def ridge(self) -> Float[Tensor, "j 1"]:
        """lambda of each candidate."""
        raise NotImplementedError

    def matrix(self, power: float = 1.0) -> Float[Tensor, "j s"]:
        """c, or its entries to a power."""
        columns = [
            share**power * self.get_buffer(f"one_hot_{group}").double()
            for group, share in enumerate(self.shares())
        ]
        return torch.cat(columns, 1)

    def combined(self, parts: Float[Tensor, "b s m n"]) -> Float[Tensor, "b j m n"]:
        """The kernels made of these parts."""
        return (self.matrix() @ parts.flatten(2)).unflatten(2, parts.shape[2:])

    def spread(self, c: Float[Tensor, "b j n q"]) -> Float[Tensor, "b s n q"]:
        """Factors of the kernels as factors of the parts."""
        return (self.matrix().mT @ c.flatten(2)).unflatten(2, c.shape[2:])

    def between(
        self, a: Points, b: Points, scale: Float[Tensor, "b k"]
    ) -> Float[Tensor, "b j m n"]:
        """k_j of all pairs."""
        return self.combined(self.gram.between(a, b, scale))

    def among(
        self, points: Points, there: Float[Tensor, "b n"]
    ) -> tuple[Float[Tensor, "b j n n"], Float[Tensor, "b k"]]:
        """k_j of all pairs of examples, and the scale."""
        parts, scale = self.gram.among(points, there)
        return self.combined(parts), scale

    def diagonal(self, points: Points, scale: Float[Tensor, "b k"]) -> Float[Tensor, "b j n"]:
        """k_j(v, v)."""
        return self.matrix() @ self.gram.diagonal(points, scale)

    def design(
        self, points: Points, scale: Float[Tensor, "b k"], landmarks: Landmarks
    ) -> Float[Tensor, "b j n r"]:
        """Features whose inner products are k_j on the landmarks' span."""
        groups = self.gram.design(points, scale, landmarks)
        parts = [
            share[..., None].sqrt() * psi[:, self.member(group)]
            for group, (psi, share) in enumerate(zip(groups, self.shares(), strict=True))
        ]
        return torch.cat(parts, -1)

    def unspanned(
        self, points: Points, scale: Float[Tensor, "b k"], psi: Float[Tensor, "b j n r"]
    ) -> Float[Tensor, "b j n"]:
        """The part of k_j(v, v) that the landmarks do not span."""
        return (self.diagonal(points, scale) - psi.square().sum(-1)).clamp(min=0)

    def fold(
        self,
        points: Points,
        scale: Float[Tensor, "b k"],
        landmarks: Landmarks | None,
        c: Float[Tensor, "b j r q"],
    ) -> Points:
        """Factors of the kernels, or of their features, in the form that `Gram.answer` takes."""
        if landmarks is None:
            return self.gram.fold(points, scale, self.spread(c))
        one = tuple(part[..., :1, :] for part in points)
        widths = [psi.shape[-1] for psi in self.gram.design(one, scale, landmarks)]
        roots = self.matrix(0.5).mT.split(list(self.gram.groups))
        theta = tuple(
            (root @ part.flatten(2)).unflatten(2, part.shape[2:])
            for root, part in zip(roots, c.split(widths, 2), strict=True)
        )
        return self.gram.fold_design(theta, scale, landmarks)
