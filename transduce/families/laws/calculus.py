"""Matrices of derivatives of functions on uniform grids.

    (A f)_i = f^(k)(x_i),      x_i = i h

Points of [0, 1] include both ends, h = 1 / (N - 1), but for periodic functions, h = 1 / N.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor


@lru_cache(maxsize=32)
def free(N: int, order: int) -> Float[Tensor, "N N"]:
    """Derivatives of functions without conditions at the ends.

    Orders 1 and 2 have stencils of 6 points, orders 3 and 4 of 8 points, so that the error is of
    order h^4 or less. Stencils reach one point further to the left, and are shifted inwards at the
    ends.
    """
    A, width = torch.zeros(N, N, dtype=torch.float64), order + 4 + order % 2
    h = 1 / (N - 1)
    for i in range(N):
        first = min(max(i - width // 2, 0), N - width)
        A[i, first : first + width] = _stencil(first - i, width, order, h)
    return A


@lru_cache(maxsize=64)
def _stencil(first: int, width: int, order: int, h: float) -> Float[Tensor, " width"]:
    """Weights of the values at x + h (first, ..., first + width - 1) for a derivative at x."""
    offsets = torch.arange(first, first + width, dtype=torch.float64)
    powers = offsets[None] ** torch.arange(width, dtype=torch.float64)[:, None]
    target = torch.zeros(width, dtype=torch.float64)
    target[order] = math.factorial(order)
    return torch.linalg.solve(powers, target) / h**order


@lru_cache(maxsize=32)
def periodic(N: int, order: int) -> Float[Tensor, "N N"]:
    """Derivatives of periodic functions by Fourier series, exact below N / 2 waves."""
    k = torch.fft.fftfreq(N, 1 / N, dtype=torch.float64)
    symbol = (2j * math.pi * k) ** order
    if order % 2 and N % 2 == 0:
        symbol[N // 2] = 0  # the highest frequency has no odd derivative on the grid
    identity = torch.eye(N, dtype=torch.float64)
    return torch.fft.ifft(symbol[:, None] * torch.fft.fft(identity, dim=0), dim=0).real


@lru_cache(maxsize=32)
def mirrored(N: int, order: int, boundary: str) -> Float[Tensor, "N N"]:
    """Derivatives of order 1 or 2 of functions continued beyond the ends, "zero" as odd and "even"
    as even ones: centred differences with an error of order h^2, stable in time.

    The rows of the ends are 0 with "zero": values there do not change.
    """
    i, sign = torch.arange(N), -1.0 if boundary == "zero" else 1.0
    A = torch.zeros(N, N, dtype=torch.float64)
    left, middle, right = ((-0.5, 0.0, 0.5), (1.0, -2.0, 1.0))[order - 1]
    for offset, weight in ((-1, left), (0, middle), (1, right)):
        column = i + offset
        inside = torch.where(
            column < 0, -column, torch.where(column > N - 1, 2 * (N - 1) - column, column)
        )
        outside = (column < 0) | (column > N - 1)
        A.index_put_(
            (i, inside), torch.where(outside, sign, 1.0).double() * weight, accumulate=True
        )
    if boundary == "zero":
        A[0] = A[-1] = 0 * A[0]
    return A / (1 / (N - 1)) ** order
