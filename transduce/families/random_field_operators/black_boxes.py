"""Operators without an equation: local functions, Volterra series, extremes, compositions.

u = q(A p(v)) + g r(v),      u = A v + (B v)(C v),      u = f(v, v_x, v_y, laplacian v)
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from ..laws import Dice, Law, Pairs, draw_pointwise, of_map
from .grid import Grid, draw_grid, gradient, laplacian
from .linear import draw_channels, draw_linear, unit
from .measures import draw_measure, draw_smooth, field


def _pieces(dice: Dice) -> tuple[Grid, int, int]:
    return draw_grid(dice), *draw_channels(dice)


def sandwich(dice: Dice) -> Law:
    """Pointwise, linear, pointwise; a second such layer or v itself added now and then."""
    grid, inputs, outputs = _pieces(dice)
    measure = draw_measure(dice, grid, inputs)
    p, trial = draw_pointwise(dice, 0.3), measure(8, dice)
    A = unit(draw_linear(dice, grid, inputs, outputs), p(trial))
    q, deep = draw_pointwise(dice, 0.4), dice.chance(0.3)
    B, r = draw_linear(dice, grid, outputs, outputs), draw_pointwise(dice, 0.5)
    C = unit(draw_linear(dice, grid, inputs, outputs), trial)
    direct = dice.uniform(-1, 1) * dice.chance(0.4)
    gain = 1 + dice.chance(0.3) * field(dice, grid, 0.15, 0.6)

    def respond(v: Tensor) -> Tensor:
        u = q(A(p(v)))
        if deep:
            u = r(B(u))
        if not direct:
            return u
        return u + direct * gain * (r(v) if inputs == outputs else C(v))

    return of_map(measure, respond)


def volterra(dice: Dice) -> Law:
    """The first two terms of a Volterra series."""
    grid, inputs, outputs = _pieces(dice)
    measure = draw_measure(dice, grid, inputs)
    trial = measure(8, dice)
    A, B, C = (unit(draw_linear(dice, grid, inputs, outputs), trial) for _ in range(3))
    share = dice.log_uniform(0.1, 3)
    return of_map(measure, lambda v: A(v) + share * B(v) * C(v))


def local(dice: Dice) -> Law:
    """A function of the values and derivatives of v at each point."""
    grid, inputs, outputs = _pieces(dice)
    measure = draw_smooth(dice, grid, inputs)
    sizes = [f.square().mean().sqrt() + 1e-9 for f in _jet(grid, measure(8, dice))]
    size, kind = 4 * inputs, dice.pick(("network", "products", "length", "minimal"))
    weights = [dice.normal(outputs, size) for _ in range(3)]
    keep = (dice.uniforms(outputs, size) < 0.5).double()
    hidden, out = dice.normal(8, size) / size**0.5, dice.normal(outputs, 8)

    def respond(v: Tensor) -> Tensor:
        jet = [f / unit for f, unit in zip(_jet(grid, v), sizes, strict=True)]
        f = torch.cat(jet, 1)
        if kind == "length":
            return (jet[1].square() + jet[2].square()).sum(1, keepdim=True).sqrt()
        if kind == "minimal":  # minus the curvature of a surface, roughly
            return jet[3][:, :1] / (1 + jet[1][:, :1].square() + jet[2][:, :1].square()).sqrt()
        if kind == "network":
            return _mixed(out, torch.tanh(1.5 * _mixed(hidden, f)))
        a, b, c = (_mixed(keep * w, f) for w in weights)
        return a + b * c

    return of_map(measure, respond)


def _jet(grid: Grid, v: Tensor) -> list[Tensor]:
    """v, its two slopes and its Laplacian."""
    first, second = gradient(grid, v)
    return [v, first, second, laplacian(grid, v)]


def _mixed(A: Tensor, f: Tensor) -> Tensor:
    """A acts on channels."""
    return torch.einsum("ij,njxy->nixy", A, f)


def extremes(dice: Dice) -> Law:
    """Greatest values nearby or so far, local energies, excess over a level, levels."""
    grid = draw_grid(dice)
    measure = draw_measure(dice, grid)
    kind = dice.pick(("dilated", "running", "envelope", "above", "level"))
    reach, level = dice.pick((1, 2, 4)), dice.uniform(-0.5, 0.5)
    width, steep = dice.log_uniform(0.03, 0.15), dice.log_uniform(1, 20)
    K = torch.exp(-0.5 * ((grid.x[:, None] - grid.x) / width) ** 2)
    blur = K / K.sum(1, keepdim=True)

    def respond(v: Tensor) -> Tensor:
        if kind == "dilated":
            mode = "circular" if grid.periodic else "replicate"
            return max_pool2d(pad(v, [reach] * 4, mode=mode), 2 * reach + 1, 1)
        if kind == "running":
            return v.cummax(-2).values
        if kind == "level":
            return torch.sigmoid(steep * (v - level))
        local = v.square() if kind == "envelope" else (v - level).clamp(min=0)
        return blur @ local @ blur.T

    return of_map(measure, respond)


def unrelated(dice: Dice) -> Law:
    """u that does not depend on v, or hardly: the answer is the mean."""
    grid, inputs, outputs = _pieces(dice)
    of_v, of_u = draw_measure(dice, grid, inputs), draw_measure(dice, grid, outputs)
    share = dice.pick((0.0, dice.log_uniform(0.02, 0.4)))
    A = unit(draw_linear(dice, grid, inputs, outputs), of_v(8, dice))

    def sample(n: int, dice: Dice) -> Pairs:
        v, u = of_v(n, dice), of_u(n, dice)
        return v, (1 - share) * u + share * A(v)

    return sample


def maps(dice: Dice) -> Law:
    """Two measured maps of the same days: both are driven by a few hidden numbers."""
    grid, inputs, outputs = _pieces(dice)
    hidden = dice.pick((2, 3, 5, 8, 15))
    left, right = (draw_smooth(dice, grid, c)(hidden, dice) for c in (inputs, outputs))
    mean, rough = draw_measure(dice, grid, inputs)(1, dice), draw_measure(dice, grid, inputs)
    mean = mean * dice.log_uniform(0.3, 10) * dice.chance(0.6)
    bend, noise = dice.uniform(0, 0.5) * dice.chance(0.5), dice.log_uniform(0.003, 0.3)
    shared = dice.uniform(0.3, 1) if dice.chance(0.7) else 1.0
    weights = torch.exp(-dice.uniform(0, 0.8) * torch.arange(hidden, dtype=torch.float64))
    A = dice.normal(hidden, hidden) / math.sqrt(hidden)

    def sample(n: int, dice: Dice) -> Pairs:
        z = dice.normal(n, hidden) * weights
        own = shared * z + (1 - shared) * dice.normal(n, hidden) * weights
        v = torch.tensordot(z, left, 1) + mean + noise * rough(n, dice)
        return v, torch.tensordot((own + bend * own.square()) @ A, right, 1)

    return sample
