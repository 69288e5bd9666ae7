"""Flow through porous media, and potentials: coefficient to solution.

    -div(a(v) grad u) + q u = f      or      -laplacian u + s (1 + tanh v) u = f

a is a function of v with two or more values, a lognormal or a smooth one, of contrast 1.5 to 50.
Sides hold zero values, no flux, or a fall of pressure from one side to the other; or fields are
periodic. v may be a itself, its logarithm or the field that makes it, and hold f in its second
channel. In some operators the answer is the flux -a grad u. The usual benchmark is among them: a of
values 3 and 12, f = 1, u = 0 around.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..laws import Dice, Law, Map, Measure, Pairs, of_map, require_bounded
from .elliptic import Medium, periodic
from .grid import FINE, FINE_TORUS, Grid, gradient
from .measures import Gaussian, bumps, draw_gaussian, draw_measure, field, gaussian, levels, scaled

CONTRASTS = (1.5, 50)
SIDES = (("zero", "zero"), ("even", "even"), ("zero", "even"))


@dataclass(frozen=True)
class Problem:
    """Everything but the coefficient.

    Args:
        f: the source, if it is not in v.
        q: of the term q u.
        conditions: of the sides; None for periodic fields.
        g: values at sides, if not zero.
        harmonic: how coefficients are averaged.
    """

    f: Float[Tensor, "p p"]
    q: float
    conditions: tuple[str, str] | None
    g: Float[Tensor, "p p"] | None = None
    harmonic: bool = True

    @property
    def grid(self) -> Grid:
        return FINE_TORUS if self.conditions is None else FINE

    def solve(
        self,
        a: Float[Tensor, "n p p"],
        f: Float[Tensor, "n p p"] | None = None,
        q: Float[Tensor, "n p p"] | None = None,
    ) -> Float[Tensor, "n p p"]:
        f = self.f if f is None else f
        q = torch.full((1, 1, 1), self.q).double().expand(1, *a.shape[1:]) if q is None else q
        if self.conditions is None:
            return periodic(a, q, f, self.grid)
        return Medium(a, q, self.conditions, self.grid, self.harmonic).solve(f, self.g)


def darcy(dice: Dice) -> Law:
    """A diffusion coefficient, or the field that makes it, to the solution or its flux."""
    problem = draw_problem(dice)
    measure, coefficient = draw_coefficient(dice, problem.grid)
    if dice.chance(0.1):
        return _with_source(measure, coefficient, problem, draw_gaussian(dice, problem.grid))
    flux, shown = dice.chance(0.12), dice.pick(("v", "a", "log a"), (5, 1, 1))

    def sample(n: int, dice: Dice) -> Pairs:
        v = measure(n, dice)
        a = coefficient(v[:, 0])
        u = problem.solve(a)
        require_bounded(u, 1e6)
        seen = {"v": v[:, 0], "a": a, "log a": a.log()}[shown][:, None]
        if not flux:
            return seen, u[:, None]
        return seen, -a[:, None] * torch.stack(gradient(problem.grid, u), 1)

    return sample


def potential(dice: Dice) -> Law:
    """A potential to the solution."""
    problem, strength = draw_problem(dice), dice.log_uniform(3, 200)
    measure = draw_measure(dice, problem.grid)

    def solve(v: Tensor) -> Tensor:
        a = torch.ones_like(v[:, 0])
        return problem.solve(a, q=strength * (1.02 + torch.tanh(v[:, 0])))[:, None]

    return of_map(measure, solve)


def draw_problem(dice: Dice) -> Problem:
    """Conditions, source and q; the solution is unique."""
    around = dice.chance(0.2)
    grid = FINE_TORUS if around else FINE
    conditions = None if around else dice.pick(SIDES, (6, 1.5, 1))
    f = torch.ones(grid.points, grid.points, dtype=torch.float64)
    q = dice.log_uniform(0.5, 100) if dice.chance(0.25) else 0.0
    free = conditions is not None and "zero" not in conditions
    if free and q == 0:
        q = dice.log_uniform(0.5, 100)
    if around or free or dice.chance(0.35):
        f = field(dice, grid, 0.1, 0.5) + dice.uniform(0, 1)
    if conditions is None or free or dice.chance(0.75):
        return Problem(f, q, conditions, harmonic=dice.chance(0.5))
    fall = (1 - grid.x)[:, None].expand_as(f)  # of pressure, from the first side to the last
    return Problem(f * dice.uniform(0, 5), q, conditions, fall, dice.chance(0.5))


def draw_coefficient(dice: Dice, grid: Grid) -> tuple[Measure, Callable[[Tensor], Tensor]]:
    """A measure of v and the coefficient that it makes, of geometric mean about 1."""
    kind = dice.pick(("levels", "lognormal", "smooth"), (4, 3, 2))
    contrast = dice.log_uniform(*CONTRASTS if not grid.periodic else (1.5, 12))
    span = math.log(contrast)
    if kind == "levels":
        measure = scaled(levels(dice, grid, 1), dice, grid, False)
        low, high = (end.item() for end in measure(16, dice).aminmax())
        return measure, lambda v: torch.exp(span * (((v - low) / (high - low)).clamp(0, 1) - 0.5))
    raw = dice.pick((gaussian, bumps), (4, 1))(dice, grid, 1)
    measure = scaled(raw, dice, grid, False)
    if kind == "lognormal":
        return measure, lambda v: torch.exp((span / 4 * v).clamp(-span, span))
    steep = dice.log_uniform(0.5, 8)
    return measure, lambda v: 1 + (contrast - 1) * torch.sigmoid(steep * v)


def _with_source(measure: Measure, coefficient: Map, problem: Problem, source: Gaussian) -> Law:
    """v holds the coefficient and the source of each pair."""

    def sample(n: int, dice: Dice) -> Pairs:
        v, f = measure(n, dice)[:, 0], source(n, dice) + 1
        return torch.stack([v, f], 1), problem.solve(coefficient(v), f)[:, None]

    return sample
