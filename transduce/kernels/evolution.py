"""A law of evolution with constant coefficients, and the step in time that it makes.

    d_t s = sum_j w_j D_j(s),       s(0) = v,      s(1) = u_hat

on a periodic uniform grid. For one channel the terms D_j are

    s, s_x, s_xx, s_xxx, s_xxxx;   s^2, s^3 and their first two derivatives;   s_x^2;   1

and with several channels the same of all of them and of their products. `law_fitting` finds w.
Steps are exponential Runge-Kutta steps of fourth order (Cox and Matthews 2002); h is the spectrum
of s, L the linear terms, N the others:

    d_t h = L h + N(h)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import torch
from jaxtyping import Bool, Complex, Float
from torch import Tensor

ORDERS = 5  # of derivatives in linear terms, from 0
MOST_CHANNELS = 2
MOST_GROWTH = 3.0  # log of the factor by which a wave may grow in a step


@dataclass(frozen=True)
class Terms:
    """The terms D_j on a grid.

    Attributes:
        channels: of the states.
        points: of the grid, over one period.
    """

    channels: int
    points: int

    @cached_property
    def slope(self) -> Complex[Tensor, " k"]:
        """Factor of each wave in d_x, in units of the shortest wave that is not cut."""
        waves = torch.arange(self.points // 2 + 1, dtype=torch.float64)
        return 1j * waves / (self.points / 3)

    @cached_property
    def kept(self) -> Float[Tensor, " k"]:
        """1 for waves whose squares do not fold."""
        return (self.slope.imag <= 1).double()

    @cached_property
    def products(self) -> list[tuple[int, ...]]:
        """Channels that are multiplied."""
        every = range(self.channels)
        return [c for k in (2, 3) for c in combinations_with_replacement(every, k)]

    @property
    def linear(self) -> int:
        """How many terms are linear."""
        return ORDERS * self.channels

    def linear_of(self, h: Complex[Tensor, "n c k"]) -> Complex[Tensor, "n j k"]:
        """The linear terms of spectra: all orders of the first channel, then of the next."""
        powers = torch.stack([self.slope**order for order in range(ORDERS)])
        return (h[:, :, None] * powers).flatten(1, 2)

    def made_of(self, h: Complex[Tensor, "n c k"]) -> Complex[Tensor, "n j k"]:
        """The products, and those of slopes."""
        s, s_x = (torch.fft.irfft(f * self.kept, self.points) for f in (h, h * self.slope))
        made = [s[:, list(c)].prod(1) for c in self.products]
        made += [s_x[:, list(c)].prod(1) for c in self.products if len(c) == 2]
        return torch.fft.rfft(torch.stack(made, 1)) * self.kept

    def others_of(self, h: Complex[Tensor, "n c k"]) -> Complex[Tensor, "n j k"]:
        """The nonlinear terms of spectra, and the constant."""
        made, slope = self.made_of(h), self.slope
        few = made[:, : len(self.products)]
        constant = torch.zeros_like(h[:, :1])
        constant[..., 0] = self.points
        return torch.cat([made, few * slope, few * slope**2, constant], 1)


@dataclass(frozen=True)
class Evolution:
    """A law that was fitted.

    Attributes:
        terms: of the law.
        w: weight of each term in each channel, in units of a step and of `size`.
        size: unit of the states.
        closed: whether states hold the first point again at the end.
        substeps: in one step.
        error: squared error at the examples that were fitted, in units of the variation of u.
        active: which weights are fitted; None for all. The others are 0.
    """

    terms: Terms
    w: Float[Tensor, "j c"]
    size: float
    closed: bool
    substeps: int
    error: float = float("inf")
    active: Bool[Tensor, "j c"] | None = None

    def __call__(self, s: Float[Tensor, "n c p"]) -> Float[Tensor, "n c p"]:
        """The states one step later."""
        found = self._step((s[..., :-1] if self.closed else s) / self.size) * self.size
        return torch.cat([found, found[..., :1]], -1) if self.closed else found

    def _step(self, s: Float[Tensor, "n c p"]) -> Float[Tensor, "n c p"]:
        h = torch.fft.rfft(s)
        E, half, Q, f_1, f_2, f_3 = self._factors
        for _ in range(self.substeps):
            n_0, moved = self._others(h), _times(half, h)
            a = moved + _times(Q, n_0)
            n_a = self._others(a)
            n_b = self._others(moved + _times(Q, n_a))
            n_c = self._others(_times(half, a) + _times(Q, 2 * n_b - n_0))
            h = _times(E, h) + _times(f_1, n_0) + _times(f_2, n_a + n_b) + _times(f_3, n_c)
        return torch.fft.irfft(h, self.terms.points)

    @cached_property
    def _weights(self) -> list[tuple[int, Float[Tensor, "j c"]]]:
        """Weights of the products with 0, 1 and 2 derivatives, without those that are all 0; then,
        as number 3, those of products of slopes."""
        w, count = self.w[self.terms.linear :], len(self.terms.products)
        slopes = len(w) - 3 * count - 1
        plain, squares, first, second, _ = w.split([count, slopes, count, count, 1])
        each = enumerate((plain, first, second, squares))
        return [(order, part) for order, part in each if part.any()]

    def _others(self, h: Complex[Tensor, "n c k"]) -> Complex[Tensor, "n c k"]:
        """N(h)."""
        terms, total = self.terms, torch.zeros_like(h)
        total[..., 0] = self.w[-1].to(h) * terms.points
        s = torch.fft.irfft(h * terms.kept, terms.points)
        for order, w in self._weights:
            f = s if order < 3 else torch.fft.irfft(h * terms.kept * terms.slope, terms.points)
            used = [(c, row) for c, row in zip(terms.products, w, strict=False) if row.any()]
            made = torch.stack([f[:, list(c)].prod(1) for c, _ in used], -1)
            flux = (made @ torch.stack([row for _, row in used])).mT
            power = terms.slope ** (order % 3) * terms.kept
            total = total + torch.fft.rfft(flux) * power
        return total

    @cached_property
    def _factors(self) -> tuple[Complex[Tensor, "a b k"], ...]:
        """exp(L d), exp(L d / 2), and the weights of N in a substep d."""
        d, L = 1 / self.substeps, self._linear()
        E, p_1, p_2, p_3 = _phi(L * d)
        half, q_1, *_ = _phi(L * d / 2)
        weights = p_1 - 3 * p_2 + 4 * p_3, 2 * p_2 - 4 * p_3, 4 * p_3 - p_2
        return (E, half, q_1 * d / 2, *(d * f for f in weights))

    def _linear(self) -> Complex[Tensor, "k c c"]:
        """L for each wave. Growth is bounded."""
        c, slope = self.terms.channels, self.terms.slope
        powers = torch.stack([slope**order for order in range(ORDERS)], 1)
        w = self.w[: self.terms.linear].unflatten(0, (c, ORDERS))
        L = torch.einsum("ko,boa->kab", powers, w.to(powers))
        growth = L.diagonal(dim1=1, dim2=2).real
        return L - torch.diag_embed((growth - MOST_GROWTH).clamp(min=0)).to(L)


def _phi(A: Complex[Tensor, "k c c"]) -> Sequence[Complex[Tensor, "c c k"]]:
    """exp(A), (exp(A) - 1) / A and the next two of these functions, from the exponential of one
    larger matrix."""
    c = A.shape[1]
    large = torch.zeros(len(A), 4 * c, 4 * c, dtype=A.dtype)
    large[:, :c, :c] = A
    for block in range(3):
        rows = slice(block * c, (block + 1) * c)
        large[:, rows, (block + 1) * c : (block + 2) * c] = torch.eye(c)
    top = torch.linalg.matrix_exp(large)[:, :c]
    return [part.movedim(0, -1) for part in top.split(c, -1)]


def _times(M: Complex[Tensor, "a b k"], h: Complex[Tensor, "n b k"]) -> Complex[Tensor, "n a k"]:
    """The matrix of each wave times its amplitudes."""
    return (M * h[:, None]).sum(2)
