"""A kernel on functions that come with parameters: it sees the functions alone."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor

from ..spaces import Space
from .kappa import Fit, Kappa, Reading


class OfFunctions(Kappa[Fit, Reading]):
    """A kernel of the functions, whatever the parameters.

    Args:
        kappa: the kernel.
        V: the space of the functions.
    """

    leaves_out = True

    def __init__(self, kappa: Kappa, V: Space):
        super().__init__()
        self.kappa, self.V, self.chunk = kappa, V, kappa.chunk
        self.exports, self.has_exact_gradients = kappa.exports, kappa.has_exact_gradients
        self.is_shared = kappa.is_shared

    def condition(
        self,
        v: Float[Tensor, "b n d"],
        u: Float[Tensor, "b n q"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> Fit:
        return self.kappa.condition(v[..., : self.V.size], u, mask)

    def refit(
        self,
        fit: Fit,
        v: Float[Tensor, "b n d"],
        u: Float[Tensor, "b n q"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> Fit:
        return self.kappa.refit(fit, v[..., : self.V.size], u, mask)

    def forward(self, fit: Fit, v: Float[Tensor, "b m d"]) -> Float[Tensor, "b m q"]:
        return self.kappa(fit, v[..., : self.V.size])

    def deviations(self, fit: Fit, v: Float[Tensor, "b m d"]) -> Float[Tensor, "b m"]:
        return self.kappa.deviations(fit, v[..., : self.V.size])
