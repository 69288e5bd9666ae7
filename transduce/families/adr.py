"""Advection-diffusion-reaction operators on [0, 1] with Dirichlet ends (section 5.1, supplement
S.3.1).

    d_t s = d_x(delta(x) d_x s) + nu(x) d_x s + k s^2,
    s(0, t) = s(1, t) = 0,
    O: s(., 0) -> s(., t)

    delta = 0.01 a(x)^2 m(x),   nu = 0.05 b(x) m(x),   k ~ U[0, k_max],
    v = c(x) m(x),   a, b, c ~ G(0, k_l),
    m(x) = 1 - (2x - 1)^10

The explicit scheme that the paper states is unstable for most of these operators, so the family is
defined by another: a fixed grid of 401 points with conservative second-order differences (delta at
half points, central advection), and Strang splitting in time, both parts exact. With A the linear
part's matrix and h = t / steps, one step is

    s <- R_{h/2} exp(h A) R_{h/2} s,      R_h s = s / (1 - k s h)

Every fourth point is reported. Solutions that leave [-8, 8] are redrawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..random_fields import gaussian_field, uniform
from ..types import ExampleSet, Task, TransduceError, like, to_tensor

STRIDE = 4
BLOW_UP = 8.0
REDRAWS = 1000


def boundary_mask(x: Float[Tensor, " x"]) -> Float[Tensor, " x"]:
    """m(x) = 1 - (2x - 1)^10: one inside, zero at both ends."""
    return 1 - (2 * x - 1) ** 10


def _at_half_points(f: Float[Tensor, " x"]) -> Float[Tensor, " x-1"]:
    """f between its grid points by the cubic through the four nearest."""
    inner = (9 * (f[1:-2] + f[2:-1]) - (f[:-3] + f[3:])) / 16
    first = (5 * f[0] + 15 * f[1] - 5 * f[2] + f[3]) / 16
    last = (5 * f[-1] + 15 * f[-2] - 5 * f[-3] + f[-4]) / 16
    return torch.cat([first[None], inner, last[None]])


def linear_flow(
    delta: Float[Tensor, " x"], nu: Float[Tensor, " x"], h: float
) -> Float[Tensor, "y y"]:
    """exp(h A) on the inner points, A s = d_x(delta d_x s) + nu d_x s by second-order differences.

    Scaling and squaring. A is tridiagonal, so its products with a matrix are three shifted copies:
    a Taylor polynomial of high degree costs little, and only the squarings are dense."""
    dx = 1 / (len(delta) - 1)
    half = _at_half_points(delta).clamp(min=0) / dx**2
    advection = nu[1:-1] / (2 * dx)
    lower, diagonal, upper = half[:-1] - advection, -(half[:-1] + half[1:]), half[1:] + advection
    norm = float(h * (lower.abs() + diagonal.abs() + upper.abs()).max())
    squarings = max(0, int(torch.tensor(norm / 2).log2().ceil())) if norm > 0 else 0
    lower, diagonal, upper = (h / 2**squarings * band[:, None] for band in (lower, diagonal, upper))

    flow, spare = (
        torch.eye(len(delta) - 2, dtype=delta.dtype),
        torch.empty(len(delta) - 2, len(delta) - 2, dtype=delta.dtype),
    )
    for degree in range(
        24, 0, -1
    ):  # Horner: I + A (I + A/2 (I + A/3 (...))); 2^24 / 24! is below 1e-16
        torch.mul(diagonal, flow, out=spare)
        spare[1:].addcmul_(lower[1:], flow[:-1])
        spare[:-1].addcmul_(upper[:-1], flow[1:])
        spare.div_(degree).diagonal().add_(1)
        flow, spare = spare, flow
    for _ in range(squarings):
        torch.mm(flow, flow, out=spare)
        flow, spare = spare, flow
    return flow


@dataclass(frozen=True, eq=False)
class AdvectionDiffusionReactionOperator:
    """O: v -> s(., t) for one (delta, nu, k): a solver, and an `Operator`.

    delta and nu are given on the internal grid. v may come on any uniform grid of which the
    internal one is a refinement (101 points, 401, ...); the result is on the grid of v. With
    further leading axes on delta, nu, k and t it is as many operators at once, and v has those axes
    too: (operators, n, points)."""

    delta: Float[Tensor, "*b x"]
    nu: Float[Tensor, "*b x"]
    k: Float[Tensor, "*b"] | float
    t: Float[Tensor, "*b"] | float = 1.0
    steps: int = 16

    @cached_property
    def _flow(self) -> Float[Tensor, "*b y y"]:
        """The transpose of exp(h A) for each operator."""
        *batch, points = self.delta.shape
        h = torch.as_tensor(self.t, dtype=torch.float64).expand(batch).reshape(-1) / self.steps
        each = zip(
            self.delta.reshape(-1, points), self.nu.reshape(-1, points), h.tolist(), strict=True
        )
        return torch.stack([linear_flow(*operator).T for operator in each]).reshape(
            *batch, points - 2, points - 2
        )

    def solve(
        self, s: Float[Tensor, "*b n x"]
    ) -> tuple[Float[Tensor, "*b n x"], Float[Tensor, "*b n"]]:
        """The states at time t from those at 0, on the internal grid, and how large each became on
        the way."""
        # K h / 2.
        growth = torch.as_tensor(self.k * self.t / (2 * self.steps), dtype=torch.float64)[
            ..., None, None
        ]
        inner, largest = s[..., 1:-1], s.abs().amax(-1)
        for _ in range(self.steps):
            inner = _react(_react(inner, growth) @ self._flow, growth)
            largest = torch.maximum(largest, inner.abs().amax(-1).nan_to_num(nan=torch.inf))
        return torch.nn.functional.pad(inner, (1, 1)), largest

    def __call__(self, v: Any) -> Any:
        s = to_tensor(v, "v").to(torch.float64)
        *batch, points = self.delta.shape
        stride, rest = divmod(points - 1, s.shape[-1] - 1) if s.shape[-1:] > (1,) else (0, 1)
        if s.ndim != len(batch) + 2 or rest:
            raise TransduceError(
                f"v has shape {tuple(s.shape)}; this solver expects "
                f"({', '.join(map(str, [*batch, 'n', 'points']))}) on a uniform "
                f"grid of [0, 1] with both ends, of which its own {points} points are a "
                "refinement. Interpolate v to 101 points first."
            )
        u, _ = self.solve(_refine(s, stride))
        return like(u[..., ::stride], v)


def _react(s: Tensor, growth: Tensor) -> Tensor:
    """The exact flow of d_t s = k s^2 over a time h, growth being k h; infinite once it has blown
    up."""
    remaining = 1 - growth * s
    return torch.where(remaining > 0, s / remaining, torch.inf)


def _refine(s: Float[Tensor, "*b x"], stride: int) -> Float[Tensor, "*b y"]:
    """The sine interpolant of s, which is zero at both ends, on a grid `stride` times finer."""
    if stride == 1:
        return s
    intervals = s.shape[-1] - 1
    odd = torch.cat([s[..., :-1], -s[..., 1:].flip(-1)], -1)
    fine = torch.fft.irfft(torch.fft.rfft(odd), n=2 * intervals * stride) * stride
    return fine[..., : intervals * stride + 1]


@dataclass
class AdvectionDiffusionReaction:
    """The family B of ADR operators.

    Args:
        length_scale: of delta and nu.
        k_max: k ~ U[0, k_max]; the paper says 0.1 in its text and 0.3 in its supplement.
        t: the target time, or (t_min, t_max) to draw one for each operator.
        points: of the internal grid; the default defines the family.
        steps: number of time steps; the default defines the family.
        v_length_scale: of the initial states.

    `redrawn` counts the solutions that diverged and were drawn again.
    """

    length_scale: float = 0.2
    k_max: float = 0.3
    t: float | tuple[float, float] = 1.0
    points: int = 401
    steps: int = 16
    v_length_scale: float = 0.2
    redrawn: int = field(default=0, init=False, repr=False)

    parameters: ClassVar[dict[str, tuple[str, tuple[str, ...]]]] = {
        "delta": ("float64", ("x",)),
        "nu": ("float64", ("x",)),
        "k": ("float64", ()),
        "t": ("float64", ()),
        "redrawn": ("int64", ()),
    }

    def __post_init__(self) -> None:
        if self.points < 9 or (self.points - 1) % STRIDE:
            raise TransduceError(
                f"points={self.points}; expected 4 j + 1, of which every fourth is reported: 401, "
                "or 201, or 801."
            )

    @property
    def x(self) -> Float[Tensor, " x"]:
        """The grid on which functions are reported: 101 points, both ends included."""
        return torch.linspace(0, 1, self.points, dtype=torch.float64)[::STRIDE]

    @property
    def axes(self) -> dict[str, Tensor]:
        """The dimensions of a function, with their coordinates."""
        return {"x": self.x}

    def parameters_of(self, operator: AdvectionDiffusionReactionOperator) -> dict[str, Any]:
        """What is stored of an operator; the coefficients on the points that are reported."""
        delta, nu = operator.delta[::STRIDE], operator.nu[::STRIDE]
        return {"delta": delta, "nu": nu, "k": operator.k, "t": operator.t, "redrawn": self.redrawn}

    def sample_operator(self, generator: torch.Generator) -> AdvectionDiffusionReactionOperator:
        """Draw delta, nu and k, and t if it is a range."""
        a, b = gaussian_field(2, self.points, self.length_scale, generator)
        mask = boundary_mask(torch.linspace(0, 1, self.points, dtype=torch.float64))
        k = uniform(0.0, self.k_max, generator)
        t = uniform(*self.t, generator) if isinstance(self.t, tuple) else self.t
        return AdvectionDiffusionReactionOperator(
            0.01 * a**2 * mask, 0.05 * b * mask, k, t, self.steps
        )

    def sample_operators(
        self, count: int, generator: torch.Generator
    ) -> AdvectionDiffusionReactionOperator:
        """Draw several operators, as one with a leading axis."""
        drawn = [self.sample_operator(generator) for _ in range(count)]
        delta, nu = (
            torch.stack([getattr(operator, name) for operator in drawn]) for name in ("delta", "nu")
        )
        k, t = (
            torch.tensor([getattr(operator, name) for operator in drawn], dtype=torch.float64)
            for name in ("k", "t")
        )
        return AdvectionDiffusionReactionOperator(delta, nu, k, t, self.steps)

    def sample_inputs(self, n: int, generator: torch.Generator) -> Float[Tensor, "n x"]:
        """Draw initial states on the internal grid."""
        mask = boundary_mask(torch.linspace(0, 1, self.points, dtype=torch.float64))
        return gaussian_field(n, self.points, self.v_length_scale, generator) * mask

    def sample_pairs(
        self, operator: AdvectionDiffusionReactionOperator, n: int, generator: torch.Generator
    ) -> ExampleSet:
        """n pairs (v, O(v)) of one operator in single precision, on 101 points."""
        v, u = self.sample_states(operator, n, generator)
        return ExampleSet(v[:, ::STRIDE].float(), u[:, ::STRIDE].float())

    def sample_states(
        self, operator: AdvectionDiffusionReactionOperator, n: int, generator: torch.Generator
    ) -> tuple[Float[Tensor, "n x"], Float[Tensor, "n x"]]:
        """n initial states and their images on the internal grid, those that blow up drawn
        again."""
        v = self.sample_inputs(n, generator)
        u, largest = operator.solve(v)
        for _ in range(REDRAWS):
            lost = largest > BLOW_UP
            if not lost.any():
                return v, u
            self.redrawn += int(lost.sum())
            v[lost] = self.sample_inputs(int(lost.sum()), generator)
            u[lost], largest[lost] = operator.solve(v[lost])
        raise TransduceError(
            f"a solution blew up in each of {REDRAWS} draws; expected some to stay below "
            f"{BLOW_UP:g}. Lower k_max or t."
        )

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        """Draw an operator, n example pairs and m query pairs of it, on 101 points."""
        pairs = self.sample_pairs(self.sample_operator(generator), n + m, generator)
        return Task(pairs[:n], pairs[n:])
