"""Functions by the coefficients of a fixed orthonormal basis, so that |c|^2 is the mean square of
f, in units of one.

    f(x) = sum_k c_k phi_k(x)

On a uniform grid, encoding is the discrete Fourier (sine) transform, by a small matrix for each
axis. From scattered sensors it solves the least squares problem

    min_c  sum_j (f(x_j) - sum_k c_k phi_k(x_j))^2 + a touch of smoothness,

whose solution the transform is where the sensors form a grid. Decoding sums the basis at any
points."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from ..types import TransduceError
from .base import Space, grid_or_positions, unit_positions

KEPT_BYTES = 2**26  # of the matrices of grids that a space keeps at hand


class Modes(Space):
    """A fixed basis. Subclasses define its functions, and how many of them a grid resolves.

    Attributes:
        closed: whether uniform grids include both ends.
        constant: 1 if the constant function is one of the modes, 0 if not.
        unit: what coefficients are measured in.
    """

    closed: bool
    constant: int = 0
    unit: float = 1.0

    def __init__(self) -> None:
        super().__init__()
        self._matrices: dict[object, Tensor] = {}

    def basis(self, x: Float[Tensor, "p dims"]) -> Float[Tensor, "k p"]:
        """The basis functions of one channel at the points x, in double precision."""
        raise NotImplementedError

    def frequencies(self) -> Float[Tensor, "k dims"]:
        """How often each basis function changes sign along each axis, about."""
        raise NotImplementedError

    def order(self) -> Tensor:
        frequencies = self.frequencies().repeat(self.channels, 1)
        keys = [frequencies.amax(1), frequencies.sum(1), *frequencies.T]
        return torch.tensor(sorted(range(self.size), key=lambda i: [float(key[i]) for key in keys]))

    def carried(self, points: int) -> int:
        """How many modes along an axis a uniform grid of this many points tells apart."""
        raise NotImplementedError

    def points_for(self, modes: int) -> int:
        """The coarsest uniform grid that carries this many modes along an axis."""
        raise NotImplementedError

    def grid(self, shape: tuple[int, ...]) -> Float[Tensor, "p dims"]:
        """The points of a uniform grid; a periodic one leaves out its last point."""
        axes = [torch.arange(p, dtype=torch.float64) / max(p - self.closed, 1) for p in shape]
        return torch.stack([axis.flatten() for axis in torch.meshgrid(*axes, indexing="ij")], -1)

    def check(self, f: Tensor, x: Tensor | None, name: str) -> tuple[int, ...]:
        shape = super().check(f, x, name)
        if x is not None:
            return shape
        wanted = [int(axis.max()) for axis in self.frequencies().T]
        carried = [max(self.carried(points), 0) for points in shape]
        if any(have < want for have, want in zip(carried, wanted, strict=True)):
            enough, read = min(carried) + self.constant, max(wanted) + self.constant
            problem = (
                f"{name} has {' x '.join(map(str, shape))} points, enough for {enough} "
                f"modes; this model reads {read}"
            )
            remedy = (
                f"Give at least {' x '.join(str(self.points_for(want)) for want in wanted)} points"
            )
            if any(4 * have < want for have, want in zip(carried, wanted, strict=True)):
                raise TransduceError(f"{problem}. {remedy}{self._otherwise}.")
            warnings.warn(
                f"{problem}: those above are taken to be zero. {remedy} for all{self._otherwise}.",
                stacklevel=5,
            )
        return shape

    @property
    def _otherwise(self) -> str:
        """Another remedy, which the general model is for functions of one variable."""
        return ", or use model='general', which takes any grid" if self.dims == 1 else ""

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        c = self._encode_grid(f) if x is None else f @ self._scattered_encoder(x).to(f)
        c = c if self.unit == 1 else c / self.unit
        return c if self.channels == 1 else c.flatten(-2)

    def decode(self, c: Tensor, at: object) -> Tensor:
        at = grid_or_positions(at, self.dims)
        c = c if self.unit == 1 else c * self.unit
        if self.channels > 1:
            c = c.unflatten(-1, (self.channels, -1))
        return self._decode_grid(c, at) if isinstance(at, tuple) else c @ self.basis(at).to(c)

    def _encode_grid(self, f: Tensor) -> Tensor:
        """Coefficients of each channel of functions on a uniform grid."""
        raise NotImplementedError

    def _decode_grid(self, c: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Each channel on a uniform grid."""
        raise NotImplementedError

    def _kept(self, key: object, f: Tensor, make: Callable[[], Tensor]) -> Tensor:
        """The matrix `make()` in f's precision and place, made once for each of the grids last
        used; threads may ask at once."""
        key = (key, f.dtype, f.device)
        matrix = self._matrices.pop(key, None)
        if matrix is None:
            with torch.inference_mode(False):
                matrix = make().to(f)
        self._matrices[key] = matrix  # stands last
        held = 0
        for used, other in reversed(list(self._matrices.items())):
            held += other.nbytes
            if held > KEPT_BYTES and used != key:
                self._matrices.pop(used, None)
        return matrix

    def _scattered_encoder(self, x: Tensor) -> Float[Tensor, "p k"]:
        x = unit_positions(x, self.dims, "x")
        frequencies = self.frequencies()
        if len(x) < len(frequencies):
            raise TransduceError(
                f"{len(x)} sensors are too few for the {len(frequencies)} coefficients of this "
                f"model. Give at least {len(frequencies)}{self._otherwise}."
            )
        basis = self.basis(x)
        # A little smoothness settles what the gaps between sensors leave open.
        rough = 1e-12 * (1 + frequencies.square().sum(1)) ** 2
        return torch.linalg.solve(basis @ basis.T / len(x) + torch.diag(rough), basis / len(x)).T
