"""The terms that an equation may have: products of channels and their derivatives.

    u^a d^k u / dx^k,   (u_x)^2,   (u u_x)_x

Products have up to three factors and derivatives up to order 4. With several channels a product
may take each factor from another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement as multisets
from itertools import groupby, product

import numpy as np
from jaxtyping import Float

HIGHEST = 4  # order of derivatives
FEW_CHANNELS = 2  # up to which u^2 u_x and the like are tried

Factor = tuple[int, int]
"""A channel, and how often it is differentiated."""


@dataclass(frozen=True)
class Product:
    """A product of factors, or its derivative.

    Attributes:
        factors: channel and order of differentiation of each; none for the constant.
        divergence: whether the whole product of two factors is differentiated once more.
    """

    factors: tuple[Factor, ...]
    divergence: bool = False

    @property
    def degree(self) -> int:
        """The power of the unit of u."""
        return len(self.factors)

    @property
    def order(self) -> int:
        """The power of the unit of x that divides it."""
        return sum(order for _, order in self.factors) + self.divergence

    def name(self, channels: Sequence[str]) -> str:
        """As in "u^2 u_x"."""
        if not self.factors:
            return "1"
        shown = [
            _power(factor, len(list(same)), channels) for factor, same in groupby(self.factors)
        ]
        return f"({' '.join(shown)})_x" if self.divergence else " ".join(shown)

    def of(self, d: Float[np.ndarray, "orders n c q"]) -> Float[np.ndarray, "n q"]:
        """The values of the product.

        Args:
            d: the derivatives of each channel, from order 0.
        """
        if not self.divergence:
            return _multiplied(d, self.factors)
        (a, i), (b, j) = self.factors
        return d[i + 1, :, a] * d[j, :, b] + d[i, :, a] * d[j + 1, :, b]


def _power(factor: Factor, power: int, channels: Sequence[str]) -> str:
    channel, order = factor
    name = channels[channel] + ("_" + "x" * order if order else "")
    if power == 1:
        return name
    return f"({name})^{power}" if order else f"{name}^{power}"


def _multiplied(
    d: Float[np.ndarray, "orders n c q"], factors: Sequence[Factor]
) -> Float[np.ndarray, "n q"]:
    value = np.ones_like(d[0, :, 0])
    for channel, order in factors:
        value = value * d[order, :, channel]
    return value


def library(channels: int) -> list[Product]:
    """All terms, the simplest first."""
    each = range(channels)
    powers = [tuple((a, 0) for a in chosen) for m in range(4) for chosen in multisets(each, m)]
    linear = [((a, order),) for order in range(1, HIGHEST + 1) for a in each]
    mixed = [((a, 0), (b, order)) for order in (1, 2) for a, b in product(each, each)]
    squares = [((a, 1), (b, 1)) for a, b in multisets(each, 2)]
    cubic = [(*((a, 0) for a in chosen), (b, 1)) for chosen in multisets(each, 2) for b in each] * (
        channels <= FEW_CHANNELS
    )
    fluxes = [Product(((a, 0), (b, 1)), divergence=True) for a, b in product(each, each)]
    plain = [*powers, *linear, *mixed, *cubic, *squares]
    return [*(Product(factors) for factors in plain), *fluxes]


def columns(
    terms: Sequence[Product], d: Float[np.ndarray, "orders n c q"]
) -> Float[np.ndarray, "n q terms"]:
    """The values of all terms."""
    return np.stack([term.of(d) for term in terms], -1)
