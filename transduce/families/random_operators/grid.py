"""The fine grid on which operators act, and its calculus.

    x_j = j h,      j = 0, ..., N - 1,      h = 1 / (N - 1)

Every mechanism works with N points; the family keeps every second one. Boundaries are "free" (no
condition), "zero" (functions vanish at both ends), "even" (no flux) or "periodic".
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

POINTS = 80  # that the family keeps
N = 2 * POINTS - 1
H = 1 / (N - 1)
BOUNDARIES = ("free", "zero", "periodic")


@lru_cache(maxsize=1)
def x() -> Float[Tensor, " N"]:
    """The grid."""
    return torch.linspace(0, 1, N, dtype=torch.float64)


@lru_cache(maxsize=1)
def differences() -> Float[Tensor, "N N"]:
    """x_i - x_j."""
    return x()[:, None] - x()


def distances(periodic: bool) -> Float[Tensor, "N N"]:
    """|x_i - x_j|, or the length of the chord on a circle of circumference 1."""
    d = differences().abs()
    return torch.sin(math.pi * d) / math.pi if periodic else d


@lru_cache(maxsize=1)
def quadrature() -> Float[Tensor, " N"]:
    """Weights of the trapezoidal rule."""
    w = torch.full((N,), H, dtype=torch.float64)
    w[0] = w[-1] = H / 2
    return w


@lru_cache(maxsize=1)
def integral() -> Float[Tensor, "N N"]:
    """The matrix of v -> the integral of v from 0 to x, by the trapezoidal rule."""
    A = torch.tril(torch.full((N, N), H, dtype=torch.float64))
    A -= torch.diag(torch.full((N,), H / 2, dtype=torch.float64))
    A[:, 0] -= H / 2
    A[0] = 0
    return A


@lru_cache(maxsize=16)
def derivative(order: int, boundary: str = "free") -> Float[Tensor, "N N"]:
    """The matrix of a derivative of order 1 to 4.

    Periodic functions are differentiated by Fourier series, exactly up to 78 waves. For others,
    derivatives of order 1 and 2 have stencils of 6 points, those of order 3 and 4 of 8 points, so
    that the error is of order h^4 or less. Stencils reach one point further to the left, and are
    shifted inwards at the ends.

    With "zero" and "even" boundaries, orders 1 and 2 have centred stencils of 3 points and
    functions continued as odd or even, with an error of order h^2, which is stable in time. The
    rows of the ends are 0 with "zero": values there do not change.
    """
    if boundary == "periodic":
        return _fourier(order)
    if boundary in ("zero", "even") and order <= 2:
        return _mirrored(order, boundary)
    A, width = torch.zeros(N, N, dtype=torch.float64), order + 4 + order % 2
    for i in range(N):
        first = min(max(i - width // 2, 0), N - width)
        A[i, first : first + width] = _stencil(first - i, width, order)
    return A


@lru_cache(maxsize=64)
def _stencil(first: int, width: int, order: int) -> Float[Tensor, " width"]:
    """Weights of the values at x + h (first, ..., first + width - 1) for a derivative at x."""
    offsets = torch.arange(first, first + width, dtype=torch.float64)
    powers = offsets[None] ** torch.arange(width, dtype=torch.float64)[:, None]
    target = torch.zeros(width, dtype=torch.float64)
    target[order] = math.factorial(order)
    return torch.linalg.solve(powers, target) / H**order


def _fourier(order: int) -> Float[Tensor, "N N"]:
    """Differentiation of periodic functions, whose last point repeats the first."""
    period = N - 1
    k = torch.fft.fftfreq(period, 1 / period, dtype=torch.float64)
    symbol = (2j * math.pi * k) ** order
    if order % 2:
        symbol[period // 2] = 0  # the highest frequency has no odd derivative on the grid
    identity = torch.eye(period, dtype=torch.float64)
    inner = torch.fft.ifft(symbol[:, None] * torch.fft.fft(identity, dim=0), dim=0).real
    A = torch.zeros(N, N, dtype=torch.float64)
    A[:-1, :-1], A[-1, :-1] = inner, inner[0]
    return A


def _mirrored(order: int, boundary: str) -> Float[Tensor, "N N"]:
    """Centred differences of functions that are continued as odd or even beyond the ends."""
    i, sign = torch.arange(N), -1.0 if boundary == "zero" else 1.0
    A = torch.zeros(N, N, dtype=torch.float64)
    left, middle, right = ((-0.5, 0.0, 0.5), (1.0, -2.0, 1.0))[order - 1]
    for offset, weight in ((-1, left), (0, middle), (1, right)):
        column = i + offset
        mirrored = torch.where(
            column < 0, -column, torch.where(column > N - 1, 2 * (N - 1) - column, column)
        )
        outside = (column < 0) | (column > N - 1)
        A.index_put_(
            (i, mirrored), torch.where(outside, sign, 1.0).double() * weight, accumulate=True
        )
    if boundary == "zero":
        A[0] = A[-1] = 0 * A[0]
    return A / H**order


@lru_cache(maxsize=64)
def _field_root(smoothness: float, length: float, periodic: bool) -> Float[Tensor, "N r"]:
    """S with S S^T the covariance of a random field."""
    d = distances(periodic) / length
    if smoothness == 0.5:
        K = torch.exp(-d)
    elif smoothness == 1.5:
        K = (1 + 3**0.5 * d) * torch.exp(-(3**0.5) * d)
    elif smoothness == 2.5:
        K = (1 + 5**0.5 * d + 5 / 3 * d**2) * torch.exp(-(5**0.5) * d)
    else:
        K = torch.exp(-(d**2) / 2)
    variance, directions = torch.linalg.eigh(K)
    kept = variance > 1e-10 * variance[-1]
    return directions[:, kept] * variance[kept].sqrt()


LENGTHS = 48  # length scales are rounded to so many, so that their factors can be kept


def field_root(smoothness: float, length: float, periodic: bool = False) -> Float[Tensor, "N r"]:
    """S with S S^T the covariance of a random field of variance 1: Matern of smoothness 1/2, 3/2
    or 5/2, or squared exponential. Lengths from 0.01 to 1 are rounded to one of `LENGTHS`."""
    step = math.log(100) / (LENGTHS - 1)
    rounded = 0.01 * math.exp(step * round(math.log(length / 0.01) / step))
    return _field_root(smoothness, rounded, periodic)
