"""Solvers of -div(a grad u) + q u = f on the square, one coefficient a for each field.

    (A u)_ij = sum over four neighbours of a_face (u_ij - u_neighbour) + w_ij h^2 q u_ij

a_face is the harmonic or arithmetic mean of both points; w halves cells and faces at free sides.
Conditions of each pair of opposite sides: "zero" (u = g there) or "even" (no flux). Matrices are
banded, and solved by banded Cholesky; periodic fields by conjugate gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.linalg import lapack
from torch import Tensor

from ..laws import Map, RejectedError
from .grid import Grid, frequencies

TOLERANCE = 1e-7  # of conjugate gradients, as a share of f


def between(a: Tensor, b: Tensor, harmonic: bool) -> Tensor:
    """The mean of neighbouring coefficients."""
    return 2 * a * b / (a + b) if harmonic else (a + b) / 2


@dataclass(frozen=True)
class Medium:
    """The equation on a square with sides.

    Args:
        a: positive.
        q: zero or positive, one for all points or each.
        conditions: of the sides at both ends of the first axis, and of the second.
        grid: with both ends.
        harmonic: how a is averaged.
    """

    a: Float[Tensor, "n p p"]
    q: Float[Tensor, "*#n p p"]
    conditions: tuple[str, str]
    grid: Grid
    harmonic: bool = True

    @property
    def weights(self) -> Float[Tensor, " p"]:
        """Halves at the ends."""
        w = torch.ones(self.grid.points, dtype=torch.float64)
        w[0] = w[-1] = 0.5
        return w

    @property
    def inside(self) -> tuple[slice, slice]:
        """Where u is unknown."""
        ends = {"zero": slice(1, -1), "even": slice(None)}
        return ends[self.conditions[0]], ends[self.conditions[1]]

    def faces(self) -> tuple[Float[Tensor, "n m p"], Float[Tensor, "n p m"]]:
        """Conductance between neighbours along the first axis and along the second."""
        a, w = self.a, self.weights
        down = between(a[:, 1:], a[:, :-1], self.harmonic) * w
        across = between(a[:, :, 1:], a[:, :, :-1], self.harmonic) * w[:, None]
        return down, across

    def mass(self) -> Float[Tensor, "p p"]:
        return self.grid.h**2 * self.weights[:, None] * self.weights

    def __call__(self, u: Float[Tensor, "*#n p p"]) -> Float[Tensor, "n p p"]:
        """A u, at all points, without conditions."""
        (down, across), out = self.faces(), (self.q * self.mass() * u).expand_as(self.a).clone()
        for axis, face in ((-2, down), (-1, across)):
            flux = face * u.diff(dim=axis)
            size = self.grid.points - 1
            out.narrow(axis, 0, size).sub_(flux)
            out.narrow(axis, 1, size).add_(flux)
        return out

    def solve(
        self, f: Float[Tensor, "*#n p p"], g: Float[Tensor, "p p"] | None = None
    ) -> Float[Tensor, "n p p"]:
        """u, with the values of g at sides of condition "zero"."""
        rows, columns = self.inside
        u = torch.zeros_like(self.a) if g is None else g.expand_as(self.a).clone()
        u[:, rows, columns] = 0
        right = (self.mass() * f - self(u))[:, rows, columns]
        bands = self.bands()
        for i in range(len(u)):
            flat = right[i].flatten().numpy()
            _, solution, failed = lapack.dpbsv(bands[i].T, flat, lower=1, overwrite_ab=1)
            if failed:
                raise RejectedError
            u[i, rows, columns] = torch.from_numpy(solution).view(right[i].shape)
        return u

    def bands(self) -> np.ndarray:
        """The lower bands of each A, transposed: (n, unknowns, width)."""
        (down, across), (rows, columns) = self.faces(), self.inside
        diagonal = (self.q * self.mass()).expand_as(self.a).clone()
        diagonal[:, :-1] += down
        diagonal[:, 1:] += down
        diagonal[:, :, :-1] += across
        diagonal[:, :, 1:] += across
        diagonal = diagonal[:, rows, columns]
        n, r, c = diagonal.shape
        bands = np.zeros((n, r, c, c + 1))
        bands[..., 0] = diagonal
        bands[:, :, :-1, 1] = -_inner(across, columns, 2)[:, rows]
        bands[:, :-1, :, c] = -_inner(down, rows, 1)[..., columns]
        return bands.reshape(n, r * c, c + 1)


def _inner(faces: Tensor, kept: slice, axis: int) -> Tensor:
    """The faces between two unknowns."""
    return faces.narrow(axis, 1, faces.shape[axis] - 2) if kept.start else faces


def periodic(
    a: Float[Tensor, "n p p"], q: Tensor, f: Tensor, grid: Grid, most: int = 80
) -> Float[Tensor, "n p p"]:
    """u of periodic fields, of mean 0 where q = 0, by conjugate gradients preconditioned with the
    equation of the mean coefficient."""
    down, across = (between(a, a.roll(-1, axis), True) / grid.h**2 for axis in (1, 2))

    def apply(u: Tensor) -> Tensor:
        flux_1, flux_2 = down * (u.roll(-1, 1) - u), across * (u.roll(-1, 2) - u)
        return q * u - flux_1 + flux_1.roll(1, 1) - flux_2 + flux_2.roll(1, 2)

    invert = _inverse(a.mean((1, 2)), q.mean(), grid)
    r = f.expand_as(a) if q.any() else (f - f.mean((-2, -1), keepdim=True)).expand_as(a)
    u, z, goal = torch.zeros_like(a), invert(r), TOLERANCE * r.square().sum((1, 2)).sqrt().max()
    d, rz = z, (r * z).sum((1, 2), keepdim=True)
    for _ in range(most):
        image = apply(d)
        step = rz / (d * image).sum((1, 2), keepdim=True).clamp(min=1e-300)
        u, r = u + step * d, r - step * image
        if r.square().sum((1, 2)).sqrt().max() < goal:
            return u
        z, old = invert(r), rz
        rz = (r * z).sum((1, 2), keepdim=True)
        d = z + rz / old.clamp(min=1e-300) * d
    raise RejectedError


def _inverse(a: Float[Tensor, " n"], q: Tensor, grid: Grid) -> Map:
    """The solution for a constant coefficient; of mean 0 if q = 0."""
    k_1, k_2 = frequencies(grid.points, grid.h)
    symbol = a[:, None, None] * ((k_1 * grid.h / 2).sin() ** 2 + (k_2 * grid.h / 2).sin() ** 2)
    symbol = 4 / grid.h**2 * symbol + q
    symbol[:, 0, 0] = 1.0 if q == 0 else q
    inverse = 1 / symbol
    if q == 0:
        inverse[:, 0, 0] = 0

    def invert(r: Tensor) -> Tensor:
        return torch.fft.irfft2(inverse * torch.fft.rfft2(r), s=r.shape[-2:])

    return invert
