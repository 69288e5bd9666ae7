"""Evolution equations: start or forcing to the state at a later time, and single trajectories.

    u_t = (kappa u_x)_x + a u_x + b u + c u_xxx + d u_xxxx - (f(u))_x + r(u) + s(x)

Each term is there or not; coefficients are constant or functions of x. The linear part is advanced
exactly by its matrix exponential, the rest by midpoint steps between two halves of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..laws import Dice, Law, Map, Pairs, RejectedError, of_map, require_bounded
from .grid import N, derivative, x
from .measures import draw_measure, field

STEPS = 40  # of the nonlinear part
LONGEST = 160  # states of a trajectory that are drawn at once
CONDITIONS = ("periodic", "zero", "even")


@dataclass(frozen=True)
class Generator:
    """The right-hand side of an evolution equation.

    Args:
        boundary: "periodic", "zero" or "even", as in `grid.derivative`.
        linear: the matrix of its linear part.
        nonlinear: its other terms, each a function of states of shape (n, N).
    """

    boundary: str
    linear: Float[Tensor, "N N"]
    nonlinear: tuple[Callable[[Tensor], Tensor], ...]

    def rate(self, q: Tensor) -> Tensor:
        """The part of u_t that is not linear."""
        change = torch.zeros_like(q)
        for term in self.nonlinear:
            change = change + term(q)
        if self.boundary == "zero":
            change[:, [0, -1]] = 0
        return change

    def flow(self, time: float, steps: int = STEPS) -> Map:
        """v -> the state after `time`: exact in time if all is linear, else of second order in
        `time / steps`."""
        if not self.nonlinear:
            whole = torch.linalg.matrix_exp(self.linear * time).T
            return lambda v: v @ whole
        dt = time / steps
        half = torch.linalg.matrix_exp(self.linear * dt / 2).T
        whole = half @ half

        def advance(v: Tensor) -> Tensor:
            q = v @ half
            for i in range(steps):
                q = q + dt * self.rate(q + dt / 2 * self.rate(q))
                q = q @ (whole if i + 1 < steps else half)
                if i % 8 == 0:
                    require_bounded(q)
            require_bounded(q)
            return q

        return advance


def draw_generator(dice: Dice) -> Generator:
    """A random right-hand side for states of about unit size and times of about 1."""
    boundary = dice.pick(CONDITIONS)
    D1, D2 = derivative(1, boundary), derivative(2, boundary)
    periodic, varies = boundary == "periodic", dice.chance(0.4)
    one = torch.ones(N, dtype=torch.float64)

    def coefficient() -> Tensor:
        return field(dice, 0.1, 0.5, periodic) if varies else one

    kappa = dice.log_uniform(3e-4, 3e-2) * (torch.exp(0.7 * coefficient()) if varies else one)
    L = kappa[:, None] * D2 + (D1 @ kappa)[:, None] * D1
    if dice.chance(0.6):
        L = L + (dice.uniform(-0.6, 0.6) * coefficient())[:, None] * D1
    if dice.chance(0.4):
        L = L + torch.diag(dice.uniform(-1.5, 1.5) * coefficient())
    if periodic and dice.chance(0.35):
        L = L + dice.uniform(-1, 1) * dice.log_uniform(1e-5, 2e-3) * derivative(3, boundary)
    if periodic and dice.chance(0.15):
        L = L - dice.log_uniform(1e-7, 1e-5) * derivative(4, boundary)
        L = L - dice.uniform(0, 1) * 2 * torch.diag(kappa) @ D2
    if boundary == "zero":
        L[0] = L[-1] = 0 * one
    return Generator(boundary, L, _terms(dice, D1, periodic))


def _terms(dice: Dice, D1: Tensor, periodic: bool) -> tuple[Callable[[Tensor], Tensor], ...]:
    """Transport, reactions and sources, each there or not."""
    c, c2, c3 = dice.uniform(-0.7, 0.7), dice.uniform(-1, 1), dice.log_uniform(0.2, 4)
    c4, a4, cubic = dice.uniform(-2, 2), dice.log_uniform(0.5, 2.5), dice.uniform(-0.3, 0.3)
    source = field(dice, 0.08, 0.5, periodic) * dice.uniform(0, 1.5)
    options: tuple[tuple[float, Callable[[Tensor], Tensor]], ...] = (
        (0.45, lambda q: -c / 2 * (q * q) @ D1.T),
        (0.1, lambda q: -cubic * q**3 @ D1.T),
        (0.25, lambda q: c2 * q * q),
        (0.25, lambda q: c3 * (q - q**3)),
        (0.12, lambda q: c4 / a4 * torch.sin(a4 * q)),
        (0.25, lambda q: source.expand_as(q)),
    )
    return tuple(term for share, term in options if dice.chance(share))


def state(dice: Dice) -> Law:
    """Start to the state at a later time."""
    generator = draw_generator(dice)
    measure = draw_measure(dice, "free" if generator.boundary == "even" else generator.boundary)
    return of_map(measure, generator.flow(dice.log_uniform(0.02, 1.5)))


def forced_state(dice: Dice) -> Law:
    """A forcing that is constant in time to the state at a later time, from one start."""
    generator = draw_generator(dice)
    boundary = "free" if generator.boundary == "even" else generator.boundary
    measure, time = draw_measure(dice, boundary), dice.log_uniform(0.1, 2)
    start = draw_measure(dice, boundary)(1, dice) * dice.uniform(0, 1)
    strength = dice.log_uniform(0.5, 4)

    def respond(v: Tensor) -> Tensor:
        def force(_: Tensor) -> Tensor:
            return strength * v

        forced = Generator(generator.boundary, generator.linear, (*generator.nonlinear, force))
        return forced.flow(time)(start.expand_as(v))

    return of_map(measure, respond)


def wave(dice: Dice) -> Law:
    """Start to later displacement of u_tt + mu u_t = c(x)^2 u_xx - q u, from rest."""
    boundary = dice.pick(CONDITIONS)
    D2, c = derivative(2, boundary), dice.log_uniform(0.1, 1.5)
    speed = c * torch.ones(N, dtype=torch.float64)
    if dice.chance(0.3):
        speed = speed * torch.exp(0.3 * field(dice, 0.1, 0.5, boundary == "periodic"))
    mu, q = dice.uniform(0, 2) * dice.chance(0.5), dice.uniform(0, 10) * dice.chance(0.4)
    A = speed[:, None] ** 2 * D2 - q * torch.eye(N).double()
    if boundary == "zero":
        A[0] = A[-1] = 0 * A[0]
    identity, zero = torch.eye(N, dtype=torch.float64), torch.zeros(N, N, dtype=torch.float64)
    block = torch.cat([torch.cat([zero, identity], 1), torch.cat([A, -mu * identity], 1)])
    time = dice.log_uniform(0.05, 1.5)
    E = torch.linalg.matrix_exp(block * time)[:N, :N]
    measure = draw_measure(dice, "free" if boundary == "even" else boundary)
    if boundary == "zero":
        E[0] = E[-1] = 0 * E[0]
    return of_map(measure, lambda v: v @ E.T)


def trajectory(dice: Dice) -> Law:
    """Consecutive states of one trajectory: u(., t) to u(., t + dt), in random order."""
    generator = draw_generator(dice)
    boundary = "free" if generator.boundary == "even" else generator.boundary
    start = draw_measure(dice, boundary)(1, dice)
    step = dice.log_uniform(2e-3, 0.1)
    advance = generator.flow(step, steps=dice.pick((1, 2, 4)) if step < 0.03 else 8)

    def states(count: int) -> Tensor:
        found = [start]
        for _ in range(count):
            found.append(advance(found[-1]))
        return torch.cat(found)

    q = states(LONGEST)
    if q.std(0).square().mean() < 1e-8 * q.square().mean():
        raise RejectedError

    def sample(n: int, dice: Dice) -> Pairs:
        drawn = q if n <= LONGEST else states(n)
        order = dice.order(len(drawn) - 1)[:n]
        return drawn[order], drawn[order + 1]

    return sample


def advected(dice: Dice) -> Law:
    """Transport of a periodic function, u(x) = g (1 + b x) w(x - a), where w is v with a little
    diffusion."""
    shift = dice.uniform(-0.4, 0.4)
    k = torch.fft.rfftfreq(N - 1, 1 / (N - 1), dtype=torch.float64)
    symbol = torch.exp(-2j * torch.pi * k * shift - dice.log_uniform(1e-5, 1e-2) * k**2)
    measure, gain = draw_measure(dice, "periodic"), dice.uniform(0.5, 1.5)
    tilt = dice.uniform(-1, 1) * dice.chance(0.3)

    def move(v: Tensor) -> Tensor:
        inner = torch.fft.irfft(symbol * torch.fft.rfft(v[:, :-1]), N - 1)
        return gain * torch.cat([inner, inner[:, :1]], 1) * (1 + tilt * x())

    return of_map(measure, move)
