"""Flows of two components, periodic.

    d_t s_i = nu_i laplacian s_i - sum_jkl c_ijkl s_j d_k s_l + sum_j m_ij s_j + g s_i (1 - |s|^2)

c is the advection of a field by itself (c_ijkl = 1 where j = k and i = l), near it, or random; m, g
are there or not. States move by 0.005 to 0.12 of the square and diffuse over 0 to 0.1 of it. u is
the later state, or its vorticity, divergence or size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ..laws import Dice, Law, Map, of_map
from .grid import FINE_TORUS, Grid
from .linear import divergence, rotation
from .measures import draw_smooth
from .spectral import FASTEST, SHOCK, WAVES, enough, evolve


@dataclass(frozen=True)
class Flow:
    """v -> s(., 1) from v = s(., 0).

    Args:
        c: of the equation.
        nu: of the equation.
        m: of the equation.
        g: of the equation.
        speed: of the fastest waves.
        grid: of the states.
    """

    c: Float[Tensor, "2 2 2 2"]
    nu: tuple[float, float]
    m: Float[Tensor, "2 2"]
    g: float = 0.0
    speed: float = 0.1
    grid: Grid = FINE_TORUS

    def __call__(self, v: Float[Tensor, "n 2 p p"]) -> Float[Tensor, "n 2 p p"]:
        waves = WAVES[self.grid]
        linear = -torch.tensor(self.nu).float()[:, None, None] * waves.square
        return evolve(v, linear, self.rate, self.speed, waves)

    def rate(self, s: Complex[Tensor, "n 2 p k"]) -> Complex[Tensor, "n 2 p k"]:
        """All but diffusion."""
        waves = WAVES[self.grid]
        slopes = torch.stack([ik * s for ik in waves.slope], 1)  # (n, k, l)
        fields = waves.field(torch.cat([s[:, None], slopes], 1))
        q, moved = fields[:, 0], torch.zeros_like(fields[:, 0])
        for i, j, k, l in self.c.nonzero().tolist():
            moved[:, i].addcmul_(q[:, j], fields[:, 1 + k, l], value=-self.c[i, j, k, l].item())
        if self.g:
            moved = moved + self.g * q * (1 - q.square().sum(1, keepdim=True))
        change = waves.series(moved)
        if self.m.any():
            change = change + torch.einsum("ij,njxk->nixk", self.m.to(s.dtype), s)
        return change


def by_itself() -> Float[Tensor, "2 2 2 2"]:
    """c of (s . grad) s."""
    eye = torch.eye(2, dtype=torch.float64)
    return torch.einsum("jk,il->ijkl", eye, eye)


def draw_flow(dice: Dice, length: float, low: float = 0.005, high: float = 0.12) -> Flow:
    """A random flow of states of unit size and this length scale that moves them by `low` to `high`
    of the square."""
    kind = dice.pick(("itself", "near", "random"), (4, 3, 3))
    c, noise = by_itself(), dice.normal(2, 2, 2, 2) * (dice.uniforms(2, 2, 2, 2) < 0.4)
    if kind == "near":
        c = c * (1 + 0.3 * dice.normal(2, 1, 1, 1)) + dice.log_uniform(0.05, 0.5) * noise
    elif kind == "random":
        c = noise + 0.2 * c
    moved, spread = dice.log_uniform(low, high) * dice.sign(), dice.uniform(0, 0.1)
    strength = max(1.0, c.abs().sum((1, 2, 3)).max().item() / 2)
    speed = abs(moved) * strength
    nu = max(spread**2 / 2, SHOCK * speed * FINE_TORUS.h * dice.uniform(0.6, 1.5))
    other = nu * dice.log_uniform(1, 4) if dice.chance(0.2) else nu
    m = dice.normal(2, 2) * dice.log_uniform(0.05, 1) * dice.chance(0.3)
    g = dice.log_uniform(0.1, 3) * dice.chance(0.15)
    return Flow(moved * c, (nu, other), m, g, FASTEST * speed, enough(length, speed, nu))


def flow(dice: Dice) -> Law:
    """Start to the state at a later time, or a scalar made from it."""
    length = dice.log_uniform(0.05, 0.4)
    equation = draw_flow(dice, length)
    grid = equation.grid
    seen: Map = lambda u: u  # noqa: E731
    if dice.chance(0.15):
        seen = dice.pick(
            (rotation(grid), divergence(grid), lambda u: u.norm(dim=1, keepdim=True), _first)
        )
    return of_map(draw_smooth(dice, grid, 2, length=length), lambda v: seen(equation(v)))


def _first(u: Tensor) -> Tensor:
    return u[:, :1]
