"""Functions by the coefficients of a fixed orthonormal basis, so that |c|^2 is the mean square of
f, in units of one.

    f(x) = sum_k c_k phi_k(x)

On a uniform grid, encoding is the discrete Fourier (sine) transform, by a small matrix for each
axis. From scattered sensors it solves the least squares problem

    min_c  sum_j (f(x_j) - sum_k c_k phi_k(x_j))^2 + a touch of smoothness,

whose solution the transform is where the sensors form a grid. Decoding sums the basis at any
points."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..types import TransduceError
from .base import Space, grid_or_positions, unit_positions

KEPT_BYTES = 2**26  # of the matrices of grids that a space keeps at hand


class Modes(Space):
    """A fixed basis; subclasses give the functions and which of them a grid carries.

    closed: whether uniform grids include both ends. constant: 1 if the constant function counts
    among the modes, else 0. unit: what coefficients are measured in."""

    closed: bool
    constant: int = 0
    unit: float = 1.0

    def __init__(self) -> None:
        super().__init__()
        self._matrices: dict[Any, Tensor] = {}

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
                raise TransduceError(f"{problem}. {remedy}.")
            warnings.warn(
                f"{problem}: those above are taken to be zero. {remedy} for all.", stacklevel=5
            )
        return shape

    def encode(self, f: Tensor, x: Tensor | None = None) -> Tensor:
        c = self._encode_grid(f) if x is None else f @ self._scattered_encoder(x).to(f)
        c = c if self.unit == 1 else c / self.unit
        return c if self.channels == 1 else c.flatten(-2)

    def decode(self, c: Tensor, at: Any) -> Tensor:
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

    def _kept(self, key: Any, f: Tensor, make: Callable[[], Tensor]) -> Tensor:
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
                f"model. Give at least {len(frequencies)}."
            )
        basis = self.basis(x)
        rough = (
            1e-12 * (1 + frequencies.square().sum(1)) ** 2
        )  # settles what the gaps between sensors leave open
        return torch.linalg.solve(basis @ basis.T / len(x) + torch.diag(rough), basis / len(x)).T


# of the root mean square: what functions that vanish at the ends may be there, of rounding and
# noise
AT_ENDS = 0.1


class SineModes(Modes):
    """phi_k(x) = sqrt(2) sin(k pi x), k = 1..modes: functions that vanish at both ends of [0, 1].

    >>> SineModes(64).encode(torch.zeros(50, 101)).shape
    torch.Size([50, 64])
    """

    closed = True

    def __init__(self, modes: int, channels: int = 1):
        super().__init__()
        self.modes, self.channels, self.size = modes, channels, modes * channels

    def config(self) -> dict[str, Any]:
        return {"space": "SineModes", "modes": self.modes, "channels": self.channels}

    def check(self, f: Tensor, x: Tensor | None, name: str) -> tuple[int, ...]:
        shape = super().check(f, x, name)
        if (
            x is None
            and (at_ends := f.detach()[..., [0, -1]].abs().max())
            > AT_ENDS * f.detach().square().mean().sqrt()
        ):
            warnings.warn(
                f"{name} is up to {at_ends:.3g} at the ends of [0, 1]; this model knows functions "
                "that are zero there, and answers so. "
                "Subtract a line through the ends, or train on your own family.",
                stacklevel=5,
            )
        return shape

    def frequencies(self) -> Float[Tensor, "k dims"]:
        return torch.arange(1, self.modes + 1, dtype=torch.float64)[:, None]

    def basis(self, x: Float[Tensor, "p dims"]) -> Float[Tensor, "k p"]:
        return math.sqrt(2) * torch.sin(math.pi * self.frequencies() @ x.T)

    def carried(self, points: int) -> int:
        return points - 2

    def points_for(self, modes: int) -> int:
        return modes + 2

    def isometry(self, grid: tuple[int, ...]) -> float | None:
        return float(grid[0] - 1) if grid[0] >= self.points_for(self.modes) else None

    def _encode_grid(self, f: Tensor) -> Tensor:
        return f @ self._kept(("encode", f.shape[-1]), f, lambda: self._encoder(f.shape[-1]))

    def _decode_grid(self, c: Tensor, shape: tuple[int, ...]) -> Tensor:
        return c @ self._kept(("decode", shape), c, lambda: self.basis(self.grid(shape)))

    def _encoder(self, points: int) -> Float[Tensor, "p k"]:
        """The trapezoidal rule: the modes vanish at both ends. Those that the grid does not carry
        are taken to be zero."""
        carried = self.frequencies().flatten() <= self.carried(points)
        return self.basis(self.grid((points,))).T * carried / max(points - 1, 1)


class FourierModes(Modes):
    """The first complex modes of the discrete Fourier transform, their real and imaginary parts one
    after the other.

    In 1-D: k = 0..modes-1, so 2 modes reals. In 2-D, modes = (a, b): the two corner blocks k_1 in
    0..a-1 and -a..-1, k_2 in 0..b-1, so 4 a b reals a channel. closed: grids include both ends (of
    functions that agree there) rather than leaving out the last point. unit: what coefficients are
    measured in, for functions so small that weights of a usual size would not see them.

    >>> FourierModes((10, 10), channels=2).encode(torch.zeros(50, 2, 64, 64)).shape
    torch.Size([50, 800])
    """

    constant = 1

    def __init__(
        self,
        modes: int | tuple[int, int] | list[int],
        channels: int = 1,
        closed: bool = False,
        unit: float = 1.0,
    ):
        super().__init__()
        self.modes = (modes,) if isinstance(modes, int) else tuple(modes)
        if len(self.modes) not in (1, 2) or min(self.modes) < 1:
            raise TransduceError(f"modes={modes}; expected one number or two, each at least 1.")
        if not unit > 0:
            raise TransduceError(
                f"unit={unit}; expected a positive number, about the size of a coefficient."
            )
        self.dims, self.channels, self.closed, self.unit = len(self.modes), channels, closed, unit
        first, last = (
            torch.arange(self.modes[0], dtype=torch.float64),
            torch.arange(self.modes[-1], dtype=torch.float64),
        )
        self._axes = [last] if self.dims == 1 else [torch.cat([first, first - self.modes[0]]), last]
        self._k = torch.cartesian_prod(*self._axes).reshape(-1, self.dims)
        mirrored = (
            (self._k[:, None] == -self._k[None, :]).all(-1).any(1)
        )  # its conjugate is among the modes too
        self._amplitude = torch.where(mirrored, 1.0, math.sqrt(2)).to(torch.float64)
        self.size = 2 * len(self._k) * channels

    def config(self) -> dict[str, Any]:
        return {
            "space": "FourierModes",
            "modes": list(self.modes),
            "channels": self.channels,
            "closed": self.closed,
            "unit": self.unit,
        }

    def frequencies(self) -> Float[Tensor, "k dims"]:
        return self._k.abs().repeat(2, 1)

    def basis(self, x: Float[Tensor, "p dims"]) -> Float[Tensor, "k p"]:
        phase = 2 * math.pi * self._k @ x.T
        return torch.cat([torch.cos(phase), -torch.sin(phase)]) * self._amplitude.repeat(2)[:, None]

    def carried(self, points: int) -> int:
        return (points - self.closed) // 2

    def points_for(self, modes: int) -> int:
        return 2 * modes + self.closed

    def isometry(self, grid: tuple[int, ...]) -> float | None:
        resolved = all(points > 2 * modes for points, modes in zip(grid, self.modes, strict=True))
        return self.unit**2 * math.prod(grid) if resolved and not self.closed else None

    def _encode_grid(self, f: Tensor) -> Tensor:
        """The discrete Fourier transform, one axis at a time."""
        if self.closed:  # both ends are one point
            for axis in range(-self.dims, 0):
                first, inside, last = f.tensor_split([1, f.shape[axis] - 1], axis)
                f = torch.cat([(first + last) / 2, inside], axis)
        shape = tuple(f.shape[f.ndim - self.dims :])
        waves = self._waves(f, -1, shape[-1], shape[-1])
        c = torch.view_as_complex((f @ waves.flatten(1)).unflatten(-1, (-1, 2)))
        if self.dims == 2:
            c = torch.view_as_complex(self._waves(f, 0, shape[0], shape[0])).T @ c
        weights = self._kept(("weights", shape), f, lambda: self._weights(shape))
        return torch.view_as_real(c.flatten(-self.dims)).movedim(-1, -2).mul(weights).flatten(-2)

    def _decode_grid(self, c: Tensor, shape: tuple[int, ...]) -> Tensor:
        period = [max(points - self.closed, 1) for points in shape]
        parts = c.unflatten(-1, (2, -1)) * self._kept("amplitude", c, lambda: self._amplitude)
        f = torch.view_as_complex(parts.movedim(-2, -1).contiguous()).unflatten(
            -1, [len(k) for k in self._axes]
        )
        if self.dims == 2:
            f = torch.view_as_complex(self._waves(c, 0, shape[0], period[0])).conj() @ f
        return (
            torch.view_as_real(f).flatten(-2)
            @ self._waves(c, -1, shape[-1], period[-1]).flatten(1).T
        )

    def _waves(self, f: Tensor, axis: int, points: int, period: int) -> Float[Tensor, "p k 2"]:
        """Real and imaginary parts of exp(-2 pi i k x), x = 0, 1 / period, ...: what both
        transforms are made of."""

        def waves() -> Tensor:
            phase = (
                2
                * math.pi
                * torch.arange(points, dtype=torch.float64)[:, None]
                / period
                * self._axes[axis]
            )
            return torch.stack([torch.cos(phase), -torch.sin(phase)], -1)

        return self._kept(("waves", axis, points, period), f, waves)

    def _weights(self, shape: tuple[int, ...]) -> Float[Tensor, " k"]:
        """What a coefficient is of the mean of f exp(-2 pi i k x), over the number of points.

        Modes k that are the same up to sign on this grid share it, in proportion to their
        amplitudes; those that the grid does not carry are taken to be zero."""
        sides = torch.tensor(shape)
        carried = (self._k.abs() <= sides // 2).all(1)
        k, minus = self._k.remainder(sides), (-self._k).remainder(sides)
        alike = (k[:, None] == k).all(-1) | (k[:, None] == minus).all(-1)
        shared = alike.double() @ (carried * self._amplitude**2)
        terms = torch.where(
            (k == minus).all(1), 1.0, 2.0
        )  # a mode and its conjugate, unless they are one
        return terms * self._amplitude * carried / shared.clamp(min=1) / math.prod(shape)
