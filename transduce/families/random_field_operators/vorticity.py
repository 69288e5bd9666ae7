"""Flow of an incompressible fluid in two dimensions, periodic, by its vorticity.

    w_t + r q . grad w = nu laplacian w - m w + f,      q = (d_2 psi, -d_1 psi),  laplacian psi = -w

v = w(., 0), or the force f from a fixed start; u = w(., 1), its stream function or its velocity.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ..laws import Dice, Law, of_map
from .grid import FINE_TORUS, Grid
from .measures import draw_smooth, field
from .spectral import FASTEST, SHOCK, WAVES, Waves, enough, evolve


@dataclass(frozen=True)
class Fluid:
    """The equation.

    Args:
        r: of the equation.
        nu: of the equation.
        m: of the equation.
        speed: of the fastest parts, r included.
        grid: of the states.
    """

    r: float
    nu: float
    m: float
    speed: float
    grid: Grid = FINE_TORUS

    def __call__(
        self, w: Float[Tensor, "n 1 p p"], f: Float[Tensor, "*#n p p"]
    ) -> Float[Tensor, "n 1 p p"]:
        """w(., 1) from w = w(., 0) and the force."""
        both = torch.stack([w[:, 0], f.expand_as(w[:, 0])], 1)  # the force does not change
        waves = WAVES[self.grid]
        linear = torch.stack([-self.nu * waves.square - self.m, 0 * waves.square])
        return evolve(both, linear, self.rate, self.speed, waves)[:, :1]

    def rate(self, s: Complex[Tensor, "n 2 p k"]) -> Complex[Tensor, "n 2 p k"]:
        waves, w = WAVES[self.grid], s[:, 0]
        slopes = torch.stack([ik * w for ik in waves.slope], 1)
        q, slopes = waves.field(torch.cat([velocity(w, waves), slopes], 1)).split(2, 1)
        change = s[:, 1] - self.r * waves.series((q * slopes).sum(1))
        return torch.stack([change, torch.zeros_like(change)], 1)


def stream(w: Complex[Tensor, "*n p k"], waves: Waves) -> Complex[Tensor, "*n p k"]:
    """psi of mean 0."""
    return w * (waves.square > 0) / waves.square.clamp(min=1.0)


def velocity(w: Complex[Tensor, "n p k"], waves: Waves) -> Complex[Tensor, "n 2 p k"]:
    """Both components of q."""
    psi, (ik_1, ik_2) = stream(w, waves), waves.slope
    return torch.stack([ik_2 * psi, -ik_1 * psi], 1)


def vorticity(dice: Dice) -> Law:
    """Start or force to the vorticity at a later time, its stream function or its velocity."""
    length, moved = dice.log_uniform(0.06, 0.4), dice.log_uniform(0.02, 0.2)
    nu = max(dice.uniform(0, 0.08) ** 2 / 2, SHOCK / 4 * moved * FINE_TORUS.h)
    grid = enough(length, moved, 2 * nu)
    measure, waves = draw_smooth(dice, grid, length=length), WAVES[grid]
    trial = waves.field(velocity(waves.series(measure(8, dice)[:, 0].float()), waves))
    r = moved / (trial.square().sum(1).mean().sqrt().item() + 1e-9)
    m, forced = dice.uniform(0, 1) * dice.chance(0.3), dice.chance(0.25)
    fluid = Fluid(r, nu, m, FASTEST * moved * (2 if forced else 1), grid)
    other = field(dice, grid, 0.15) * (1 if forced else dice.uniform(0, 3) * dice.chance(0.3))
    seen = dice.pick(("vorticity", "stream", "velocity"), (7, 1, 1.5))

    def later(v: Tensor) -> Tensor:
        w = fluid(other.expand_as(v), v[:, 0]) if forced else fluid(v, other)
        s = waves.series(w[:, 0].float())
        if seen == "stream":
            return waves.field(stream(s, waves))[:, None].double()
        return waves.field(velocity(s, waves)).double() if seen == "velocity" else w

    return of_map(measure, later)
