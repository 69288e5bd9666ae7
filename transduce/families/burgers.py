"""Burgers' equation in two dimensions, periodic (section 5.2 and the supplement's "Burger's
equation").

    d_t s + (s . grad) s = nu laplacian s,
    s = (s_1, s_2),
    O: v = s(., t) -> u = s(., t'),
    t' = t + increment

    s_1(., 0), s_2(., 0) ~ amplitude G(0, k_l) made periodic,      nu ~ U[0.1, 0.5]

The domain is a square of 64 x 64 cells of size 1, its coordinates reported in [0, 1]^2. On the unit
square that the paper writes, diffusion would leave 1e-17 of the slowest mode at t = 10.

With omega = d_1 s_2 - d_2 s_1 and q = |s|^2 / 2, advection takes three inverse transforms and three
forward ones:

    (s . grad) s = grad q + omega (-s_2, s_1)

Only modes below a third of the points advect and are advected, so that no product is aliased; those
above diffuse. Diffusion is exact, E = exp(-nu |k|^2 h / 2), and the rest is the Runge-Kutta scheme
of fourth order. With N s = -(s . grad) s, one step is

    a = N s,      b = N E(s + h a / 2),      c = N (E s + h b / 2),      d = N E(E s + h c),
    s <- E(E(s + h a / 6) + h (b + c) / 3) + h d / 6

At nu = 0.1 and t = 10, 64 points leave a relative L2 error of 2e-6 at amplitude 0.1, but 7e-3 at
0.3, whose fronts are thinner than a cell. `resolution` solves on a finer grid than is reported: 128
points leave 1e-3 (validation/burgers_phiflow.py)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ..random_fields import periodic_field, uniform
from ..types import ExampleSet, Task, TransduceError, like, to_tensor

SIDE = 64.0
DT = 1 / 3
TOGETHER = 16  # trajectories that fit the processor's cache

Range = float | tuple[float, float]


def evolve(
    s: Float[Tensor, "n 2 x y"], nu: float, duration: float, dt: float = DT
) -> Float[Tensor, "n 2 x y"]:
    """The states a time `duration` after s, in equal steps of at most dt, on the grid and in the
    precision of s."""
    steps = math.ceil(duration / dt)
    flow = _Flow(s, nu, duration / max(steps, 1))
    u = torch.cat([flow.run(part, steps) for part in s.split(TOGETHER)])
    first, last = (state.detach().abs().amax((1, 2, 3)) for state in (s, u))
    if not (last <= 2 * first).all():  # the true solution never exceeds its first maximum
        raise TransduceError(
            f"a state of size {first.max():.3g} grew to {last.max():.3g}, which no solution of "
            "Burgers' equation does; expected one that "
            f"its grid and its steps resolve. Lower dt={dt:.3g}, raise the resolution, or scale v "
            "down."
        )
    return u


class _Flow:
    """Steps of length h, on the grid and in the precision of s."""

    def __init__(self, s: Float[Tensor, "n 2 x y"], nu: float, h: float):
        p, q = s.shape[-2:]
        self.h, self.q, self.columns = h, q, (q - 1) // 3 + 1
        precise: dict[str, Any] = {"dtype": torch.float64, "device": s.device}
        j_1, j_2 = (
            torch.fft.fftfreq(p, 1 / p, **precise)[:, None],
            torch.fft.rfftfreq(q, 1 / q, **precise),
        )
        k_1, k_2 = 2 * torch.pi / SIDE * j_1, 2 * torch.pi / SIDE * j_2
        kept = (3 * j_1.abs() < p).expand(-1, self.columns)
        rate = -nu * (k_1**2 + k_2**2)
        self.rate = rate.to(s.dtype)
        self.kept = kept.to(s.dtype.to_complex())
        self.E = torch.exp(rate[:, : self.columns] * h / 2).to(s.dtype.to_complex())
        self.ik = (1j * torch.stack([k_1 * kept, k_2[: self.columns] * kept])).to(
            s.dtype.to_complex()
        )

    def run(self, s: Float[Tensor, "n 2 x y"], steps: int) -> Float[Tensor, "n 2 x y"]:
        """The states after so many steps: the low modes by the equation, those above by diffusion
        alone."""
        modes = torch.fft.rfft2(s)
        low = start = self.kept * modes[..., : self.columns]
        for _ in range(steps):
            low = self.step(low)
        above = modes - torch.nn.functional.pad(start, (0, modes.shape[-1] - self.columns))
        diffused = torch.exp(self.rate * self.h * steps) * above
        return torch.fft.irfft2(diffused, s=s.shape[-2:]) + self._field(low)

    def step(self, s: Complex[Tensor, "n 2 x k"]) -> Complex[Tensor, "n 2 x k"]:
        h, E, N = self.h, self.E, self.advection
        a, Es = N(s), E * s
        b = N(Es + h / 2 * E * a)
        c = N(Es + h / 2 * b)
        d = N(E * (Es + h * c))
        return E * (Es + h / 6 * E * a + h / 3 * (b + c)) + h / 6 * d

    def advection(self, s: Complex[Tensor, "n 2 x k"]) -> Complex[Tensor, "n 2 x k"]:
        """-(s . grad) s"""
        omega = self.ik[0] * s[:, 1] - self.ik[1] * s[:, 0]
        s_1, s_2, omega = self._field(torch.cat([s, omega[:, None]], 1)).unbind(1)
        turned_1, turned_2, q = self._modes(
            torch.stack([omega * s_2, omega * s_1, s_1**2 + s_2**2], 1)
        ).unbind(1)
        return (
            torch.stack([self.kept * turned_1, -self.kept * turned_2], 1) - self.ik / 2 * q[:, None]
        )

    def _modes(self, f: Float[Tensor, "n c x y"]) -> Complex[Tensor, "n c x k"]:
        """The low columns of the real transform."""
        return torch.fft.fft(torch.fft.rfft(f)[..., : self.columns], dim=-2)

    def _field(self, modes: Complex[Tensor, "n c x k"]) -> Float[Tensor, "n c x y"]:
        return torch.fft.irfft(torch.fft.ifft(modes, dim=-2), n=self.q)


@dataclass(frozen=True)
class Burgers2dOperator:
    """O: v -> s(., start + increment) from v = s(., start), for one nu: a solver, and an
    `Operator`.

    v has shape (n, 2, p, q): two components on a periodic grid of any size, v[:, 0] being along the
    axis of p. The result is on the same grid. A v of fewer points a side than `resolution` is
    interpolated to a multiple of its grid first. The equation does not depend on the time itself:
    start and amplitude say what states the operator's pairs are drawn from."""

    nu: float
    increment: float = 10.0
    start: float = 0.0
    amplitude: float = 0.1
    resolution: int = 64
    dt: float = DT

    def __post_init__(self) -> None:
        _check(self, ("nu", "increment", "start", "amplitude"), {"resolution": 1, "dt": 1e-6})

    def __call__(self, v: Any) -> Any:
        s = to_tensor(v, "v")
        if s.ndim != 4 or s.shape[1] != 2 or len(s) < 1 or min(s.shape[2:]) < 4:
            raise TransduceError(
                f"v has shape {tuple(s.shape)}; this solver expects (n, 2, p, q), two components "
                "on a periodic grid of at least 4 points "
                "a side. For a single field, give v[None]."
            )
        across, along = (-(-self.resolution // points) for points in s.shape[2:])
        s = _refine(
            _refine(s.to(torch.promote_types(s.dtype, torch.float32)), -2, across), -1, along
        )
        return like(evolve(s, self.nu, self.increment, self.dt)[..., ::across, ::along], v)


def _refine(s: Float[Tensor, "n 2 x y"], axis: int, stride: int) -> Float[Tensor, "n 2 _ _"]:
    """The trigonometric interpolant of s on a grid `stride` times finer along one axis."""
    if stride == 1:
        return s
    points = s.shape[axis]
    modes = torch.fft.rfft(s.transpose(axis, -1))
    if points % 2 == 0:
        # Half of the last mode is its conjugate's.
        modes = torch.cat([modes[..., :-1], modes[..., -1:] / 2], -1)
    return stride * torch.fft.irfft(modes, n=stride * points).transpose(axis, -1)


@dataclass
class Burgers2d:
    """The family B of Burgers operators: the pairs of a task share nu, the time t = start of v and
    the time start + increment of u.

    The first four arguments are numbers, or (low, high) to draw one for each operator.

    Args:
        amplitude: standard deviation of each component at time 0.
        nu: the viscosity.
        start: the time of v.
        increment: the time from v to u.
        points: number of points along each axis of the fields that are returned.
        length_scale: of the fields at time 0.
        resolution: smallest number of points along each axis that the equation is solved on.
        dt: the largest time step; 1/3 has a relative L2 error of 1e-5 at amplitude 0.3, nu = 0.1,
            t = 10.
    """

    amplitude: Range = 0.1
    nu: Range = (0.1, 0.5)
    start: Range = 0.0
    increment: Range = 10.0
    points: int = 64
    length_scale: float = 0.125
    resolution: int = 64
    dt: float = DT

    parameters: ClassVar[dict[str, tuple[str, tuple[str, ...]]]] = {
        name: ("float64", ()) for name in ("nu", "start", "increment", "amplitude")
    }

    def __post_init__(self) -> None:
        _check(
            self,
            ("amplitude", "nu", "start", "increment"),
            {"points": 4, "length_scale": 0.01, "resolution": 1, "dt": 1e-6},
        )

    @property
    def x(self) -> Float[Tensor, " x"]:
        """The grid along each side on which functions are reported, which leaves out 1."""
        return torch.arange(self.points, dtype=torch.float64) / self.points

    @property
    def axes(self) -> dict[str, Tensor]:
        """The dimensions of a function, with their coordinates."""
        return {"component": torch.arange(2), "x": self.x, "y": self.x}

    def parameters_of(self, operator: Burgers2dOperator) -> dict[str, Any]:
        """What is stored of an operator."""
        return {name: getattr(operator, name) for name in self.parameters}

    def sample_operator(self, generator: torch.Generator) -> Burgers2dOperator:
        """Draw nu, the two times and the amplitude."""
        ranges = (self.nu, self.increment, self.start, self.amplitude)
        nu, increment, start, amplitude = (uniform(*_ends(value), generator) for value in ranges)
        return Burgers2dOperator(nu, increment, start, amplitude, self.resolution, self.dt)

    def sample_starts(
        self, operator: Burgers2dOperator, n: int, generator: torch.Generator
    ) -> Float[Tensor, "n 2 x x"]:
        """Draw states at the operator's start, in single precision, on the grid that they are
        solved on."""
        points = self.points * self._stride
        s = operator.amplitude * periodic_field(2 * n, points, self.length_scale, generator)
        return evolve(s.float().reshape(n, 2, points, points), operator.nu, operator.start, self.dt)

    def sample_pairs(
        self, operator: Burgers2dOperator, n: int, generator: torch.Generator
    ) -> ExampleSet:
        """n pairs (v, O(v)) of one operator in single precision, on the points that are
        reported."""
        v = self.sample_starts(operator, n, generator)
        u = operator(v)
        return ExampleSet(*(s[..., :: self._stride, :: self._stride].contiguous() for s in (v, u)))

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        """Draw an operator, n example pairs and m query pairs of it."""
        pairs = self.sample_pairs(self.sample_operator(generator), n + m, generator)
        return Task(pairs[:n], pairs[n:])

    @property
    def _stride(self) -> int:
        return -(-self.resolution // self.points)


def _check(owner: Any, ranges: tuple[str, ...], least: dict[str, float | int]) -> None:
    """Raise if a range is not one of numbers from 0 up, or a number is below its least."""
    for name in ranges:
        low, high = _ends(getattr(owner, name))
        if not 0 <= low <= high < math.inf:
            raise TransduceError(
                f"{name}={getattr(owner, name)}; expected a number from 0, or (low, high) with "
                "low first. Swap them or change the sign."
            )
    for name, smallest in least.items():
        value = getattr(owner, name)
        if not value >= smallest or (name in ("points", "resolution") and value != int(value)):
            whole = "a whole number of " if name in ("points", "resolution") else ""
            raise TransduceError(
                f"{name}={value}; expected {whole}at least {smallest:g}. Raise it."
            )


def _ends(value: Range) -> tuple[float, float]:
    return value if isinstance(value, tuple) else (value, value)
