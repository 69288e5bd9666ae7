"""Advection, diffusion and reaction of one scalar.

    s_t + b(x) . grad s = kappa_1 s_xx + kappa_2 s_yy + r(s) + f(x),      v = s(., 0),  u = s(., t)

Displacement t |b| is 0 to 0.15 of the square. Fields are periodic, keep zero values at the sides,
or lose nothing there. Each step is half of diffusion (exact), reaction, transport along the
characteristics of b (cubic interpolation), reaction, and half of diffusion: second order in time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..laws import Dice, Law, Map, of_map, require_bounded
from .grid import FINE, FINE_TORUS, Grid, along, gradient
from .measures import draw_smooth, field
from .warp import interpolated, interpolation

CONDITIONS = ("periodic", "zero", "even")
Reaction = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Transport:
    """The equation with unit time: s after `steps` steps of 1 / steps.

    Args:
        grid: of the states.
        condition: "periodic", "zero" or "even".
        wind: b, or None.
        kappa: along both axes.
        reaction: r + f, or None.
        steps: of the splitting.
    """

    grid: Grid
    condition: str
    wind: Float[Tensor, "2 p p"] | None
    kappa: tuple[float, float]
    reaction: Reaction | None
    steps: int

    def flow(self) -> Map:
        """v -> s(., 1), for states (n, 1, p, p)."""
        dt, L = 1 / self.steps, self.grid.laplacian(self.condition)
        A, B = (torch.linalg.matrix_exp(kappa * dt / 2 * L) for kappa in self.kappa)
        carried = (
            None if self.wind is None else interpolation(self.departures(self.wind, dt), self.grid)
        )

        def advance(s: Tensor) -> Tensor:
            for _ in range(self.steps):
                s = self._react(along(A, s, B), dt / 2)
                if carried is not None:
                    s = self._pinned(interpolated(carried, s))
                s = along(A, self._react(s, dt / 2), B)
                require_bounded(s)
            return s

        return advance

    def departures(self, wind: Tensor, dt: float, substeps: int = 4) -> Float[Tensor, "2 p p"]:
        """Where what arrives at each point was a time dt before, by Runge-Kutta of order 4."""
        x, b = torch.stack(torch.meshgrid(self.grid.x, self.grid.x, indexing="ij")), -wind

        def velocity(places: Tensor) -> Tensor:
            at = interpolation(places, self.grid)
            return torch.from_numpy(at @ b.flatten(1).numpy().T).T.reshape(places.shape)

        h = dt / substeps
        for _ in range(substeps):
            k_1 = velocity(x)
            k_2 = velocity(x + h / 2 * k_1)
            k_3 = velocity(x + h / 2 * k_2)
            x = x + h / 6 * (k_1 + 2 * k_2 + 2 * k_3 + velocity(x + h * k_3))
        return x

    def _react(self, s: Tensor, dt: float) -> Tensor:
        if self.reaction is None:
            return s
        middle = s + dt / 2 * self.reaction(s)
        return self._pinned(s + dt * self.reaction(middle))

    def _pinned(self, s: Tensor) -> Tensor:
        """States whose values at the sides are kept at zero."""
        if self.condition == "zero":
            s = torch.nn.functional.pad(s[..., 1:-1, 1:-1], (1, 1, 1, 1))
        return s


def draw_transport(dice: Dice, steps: int = 6) -> Transport:
    """A random equation, for states of about unit size."""
    condition = dice.pick(CONDITIONS, (3, 1, 1.5))
    grid = FINE_TORUS if condition == "periodic" else FINE
    moved, spread = dice.uniform(0, 0.15), dice.uniform(0, 0.1) * dice.chance(0.8)
    wind = draw_wind(dice, grid) * moved if dice.chance(0.7) else None
    tilt = dice.log_uniform(0.5, 2) if dice.chance(0.3) else 1.0
    kappa = spread**2 / 2
    reaction = draw_reaction(dice, grid) if dice.chance(0.6) or wind is None else None
    steps = 1 if reaction is None and spread == 0 else steps
    return Transport(grid, condition, wind, (kappa * tilt, kappa / tilt), reaction, steps)


def draw_wind(dice: Dice, grid: Grid) -> Float[Tensor, "2 p p"]:
    """A velocity of unit size: uniform, turning about stream lines, or any. It stays within the
    sides if fields are not periodic."""
    psi = field(dice, grid, 0.15, 0.5)
    window = 1 - (2 * grid.x - 1).abs() ** 4
    around = torch.ones_like(psi) if grid.periodic else window[:, None] * window
    first, second = gradient(grid, psi * around)
    kind = dice.pick(("stream", "uniform", "any"), (3, 2 if grid.periodic else 0.5, 1))
    b = torch.stack([second, -first])
    if kind == "uniform":
        turn = dice.uniform(0, 2 * math.pi)
        b = torch.tensor([math.cos(turn), math.sin(turn)]).double()[:, None, None] * around
    elif kind == "any":
        b = torch.stack([psi * around, field(dice, grid, 0.15, 0.5) * around])
    return b / (b.square().sum(0).mean().sqrt() + 1e-9)


def draw_reaction(dice: Dice, grid: Grid) -> Reaction:
    """Allen-Cahn, logistic and quadratic growth, decay, waves; and sources, each there or not."""
    c, rate = dice.uniform(-1.5, 1.5), dice.log_uniform(0.2, 5)
    level, gain = dice.uniform(-0.5, 0.5), dice.log_uniform(0.5, 3)
    source = field(dice, grid) * dice.uniform(0, 1.5) * dice.chance(0.3)
    options: tuple[Reaction, ...] = (
        lambda s: rate * (s - s**3),
        lambda s: rate * (s - level) * (1 - s * s),
        lambda s: c * s * s,
        lambda s: c * s,
        lambda s: rate * torch.sin(gain * s),
        lambda s: -rate * s * s.abs(),
    )
    term = dice.pick(options, (2, 1, 1, 1, 1, 0.5))
    return lambda s: term(s) + source


def transport(dice: Dice) -> Law:
    """Start to the state at a later time."""
    equation = draw_transport(dice)
    measure = draw_smooth(dice, equation.grid, pinned=equation.condition == "zero")
    return of_map(measure, equation.flow())
