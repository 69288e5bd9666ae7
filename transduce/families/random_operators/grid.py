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

from ..laws import calculus

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
    """The matrix of a derivative of order 1 to 4; "zero" and "even" differ for orders 1 and 2.

    Periodic functions repeat their first value at the last point, and are differentiated exactly up
    to 78 waves.
    """
    if boundary == "periodic":
        inner = calculus.periodic(N - 1, order)
        A = torch.zeros(N, N, dtype=torch.float64)
        A[:-1, :-1], A[-1, :-1] = inner, inner[0]
        return A
    if boundary in ("zero", "even") and order <= 2:
        return calculus.mirrored(N, order, boundary)
    return calculus.free(N, order)


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
