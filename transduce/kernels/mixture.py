"""Kernels in parallel: each answers by itself, and a mixer weights them by leave-one-out error.

    u_hat(v) = sum_j w_j u_hat_j(v)

u_hat_j is the answer of kernel j, and w_j its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..types import TransduceError
from .kappa import Fit, Kappa, Reading
from .mixer import Mixer, blame, mixed
from .systems import SMALLEST_RIDGE


@dataclass(frozen=True, kw_only=True)
class MixtureFit(Fit):
    """The kernels' fits and their weights.

    Attributes:
        fits: of the kernels.
        mix: weight of each kernel for each coefficient of u.
        typical: root mean square of each kernel's deviations at the examples, which is the unit of
            its deviations at queries.
    """

    residual: Float[Tensor, "b n q"]
    deviation: Float[Tensor, "b n"]
    fits: tuple[Fit, ...]
    mix: Float[Tensor, "b j q"]
    typical: Float[Tensor, "b j 1"]


class Mixture(Kappa[MixtureFit, Reading]):
    """Kernels in parallel.

    Args:
        kernels: at least two; each has leave-one-out residuals.
        mixer: weights them.
    """

    leaves_out = True

    def __init__(self, kernels: Sequence[Kappa], mixer: Mixer):
        super().__init__()
        averaging = [type(kernel).__name__ for kernel in kernels if not kernel.leaves_out]
        if averaging:
            raise TransduceError(
                f"a Mixture of {', '.join(averaging)}, without leave-one-out residuals; expected "
                "kernels that solve for their coefficients. Use these as layers instead."
            )
        if mixer.answers != len(kernels):
            raise TransduceError(
                f"{len(kernels)} kernels and a mixer of {mixer.answers}; expected the same number."
            )
        self.kernels, self.mixer = nn.ModuleList(kernels), mixer
        self.chunk = min(kernel.chunk for kernel in kernels)

    @property
    def _kernels(self) -> tuple[Kappa, ...]:
        return tuple(cast(Kappa, kernel) for kernel in self.kernels)

    @property
    def systems(self) -> int:
        return sum(kernel.systems for kernel in self._kernels)

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        for kernel in self._kernels:
            kernel.standardised(spread, size)

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> MixtureFit:
        fits = tuple(kernel.condition(v, u, mask) for kernel in self._kernels)
        return self._mixed(fits, u, mask)

    def refit(
        self,
        fit: MixtureFit,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> MixtureFit:
        """Each kernel's choices and the weights stay those of `fit`."""
        pairs = zip(self._kernels, fit.fits, strict=True)
        return self._mixed(tuple(k.refit(f, v, u, mask) for k, f in pairs), u, mask, fit.mix)

    def update(
        self,
        fit: MixtureFit,
        rows: Sequence[int],
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
    ) -> MixtureFit:
        pairs = zip(self._kernels, fit.fits, strict=True)
        return self._mixed(tuple(k.update(f, rows, v, u) for k, f in pairs), u, None)

    def forward(self, fit: MixtureFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        pairs = zip(self._kernels, fit.fits, fit.mix.unbind(1), strict=True)
        return sum(w[:, None].to(v) * kernel(f, v) for kernel, f, w in pairs)

    def deviations(self, fit: MixtureFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """In units in which the examples' own deviations have mean square 1 for every kernel."""
        pairs = zip(self._kernels, fit.fits, strict=True)
        deviations = torch.stack([kernel.deviations(f, v).double() for kernel, f in pairs], 1)
        return _overall(fit.mix, fit.residual, deviations / fit.typical)

    def _mixed(
        self,
        fits: tuple[Fit, ...],
        u: Float[Tensor, "b n q"],
        mask: Bool[Tensor, "b n"] | None,
        mix: Float[Tensor, "b j q"] | None = None,
    ) -> MixtureFit:
        there = torch.ones_like(u[..., 0]) if mask is None else mask.to(u.dtype)
        target = u.double() * there[..., None]
        residuals = torch.stack([_residual(fit).double() for fit in fits], 1)
        residuals = residuals * there[:, None, :, None]
        if mix is None:
            mix = self.mixer(residuals, target, there.double().sum(-1))
        residual = mixed(mix, residuals, target)
        own = torch.stack([_deviation(fit).double() for fit in fits], 1)
        share = (there / there.sum(-1, keepdim=True)).double()[:, None]
        typical = (share * own.square()).sum(-1, keepdim=True).sqrt()
        return MixtureFit(
            residual=residual.to(u),
            deviation=_overall(mix, residual, own / typical),
            fits=fits,
            mix=mix,
            typical=typical,
        )


def _residual(fit: Fit) -> Tensor:
    assert fit.residual is not None
    return fit.residual


def _deviation(fit: Fit) -> Tensor:
    assert fit.deviation is not None
    return fit.deviation


def _overall(
    mix: Float[Tensor, "b j q"], residual: Float[Tensor, "b n q"], ratios: Float[Tensor, "b j m"]
) -> Float[Tensor, "b m"]:
    """Deviations of all kernels, by their share in the error."""
    squares = ratios.square().clamp(min=SMALLEST_RIDGE)
    return (blame(mix, residual)[..., None] * squares).sum(1).sqrt()
