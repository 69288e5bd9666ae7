"""Gaussian fields as a prior on unknown inputs.

v = sum_i xi_i root_i,   xi ~ N(0, I)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..random_fields import _covariance_root, _periodic_root
from ..types import TransduceError, to_tensor

NEGLIGIBLE = 1e-8  # variance of a direction of the prior, in units of the largest


@dataclass(frozen=True, eq=False)
class GaussianPrior:
    """v = sum_i xi_i root_i with white xi: a Gaussian field of mean zero.

    root: (d, *grid), or (d, channels, *grid) for functions of several components.

    >>> # what ADR's initial states are drawn from
    >>> prior = GaussianPrior.interval(101, 0.2, boundary_mask(family.x))
    >>> # and those of Burgers' equation
    >>> prior = GaussianPrior.periodic(64, 0.125, amplitude=0.1, channels=2)
    """

    root: Float[Tensor, "d ..."]

    def __post_init__(self) -> None:
        if self.root.ndim < 2 or not len(self.root):
            raise TransduceError(
                f"root has shape {tuple(self.root.shape)}; expected (d, *grid) or (d, channels, "
                "*grid), one function or more to be summed."
            )
        object.__setattr__(self, "root", to_tensor(self.root, "root").double())

    @classmethod
    def interval(
        cls, points: int, length_scale: float, mask: Float[Tensor, " x"] | None = None
    ) -> GaussianPrior:
        """The squared-exponential field on a uniform grid of [0, 1] with both ends, times
        `mask`."""
        root = _covariance_root(points, length_scale).T
        return cls(_ample(root if mask is None else root * mask))

    @classmethod
    def periodic(
        cls, points: int, length_scale: float, amplitude: float = 1.0, channels: int = 1
    ) -> GaussianPrior:
        """The periodic field on a grid of [0, 1]^2 that leaves out the last points; `amplitude` is
        its standard deviation."""
        side = _periodic_root(points, length_scale)
        root = _ample(amplitude * torch.einsum("xi,yj->ijxy", side, side).flatten(0, 1))
        if channels > 1:
            root = torch.einsum(
                "ce,dxy->cdexy", torch.eye(channels, dtype=root.dtype), root
            ).flatten(0, 1)
        return cls(root)

    def fields(self, xi: Float[Tensor, "n d"]) -> Float[Tensor, "n ..."]:
        return torch.tensordot(xi, self.root, 1)

    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n ..."]:
        """Draw n functions."""
        return self.fields(torch.randn(n, len(self.root), dtype=torch.float64, generator=generator))


def _ample(root: Float[Tensor, "d ..."]) -> Float[Tensor, "e ..."]:
    """The directions whose variance is not negligible."""
    variance = root.flatten(1).square().sum(1)
    return root[variance > NEGLIGIBLE * variance.max()]
