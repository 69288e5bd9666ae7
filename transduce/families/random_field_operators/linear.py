"""Linear operators between fields, and their sums.

    u_i(x) = sum_j int G_ij(x, y) v_j(y) dy + a_ij(x) v_j(phi(x))

G may be a convolution, of low rank, a product of operators along both axes or causal; there are
derivatives, warps and products with a fixed field. Of 1 or 2 channels each way: gradient,
divergence, rotation, and velocity from vorticity among them.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from ..laws import Dice, Law, Map, of_map
from .forced import by_series, draw_symbol
from .grid import Grid, along, draw_grid, frequencies, gradient
from .measures import draw_measure, field, fields
from .warp import warp


def linear(dice: Dice) -> Law:
    """A random matrix of operators between channels, with a fixed field added now and then."""
    grid, inputs, outputs = draw_grid(dice), *draw_channels(dice)
    measure, map = draw_measure(dice, grid, inputs), draw_linear(dice, grid, inputs, outputs)
    offset = fields(outputs, dice, grid) * dice.uniform(0, 2) * dice.chance(0.25)
    return of_map(measure, lambda v: map(v) + offset)


def draw_channels(dice: Dice) -> tuple[int, int]:
    """Channels of v and u."""
    return dice.pick(((1, 1), (2, 2), (1, 2), (2, 1)), (5, 3, 1, 1))


def draw_linear(dice: Dice, grid: Grid, inputs: int = 1, outputs: int = 1) -> Map:
    """A linear operator whose answers to fields of unit size are about that."""
    special = {(1, 2): (slopes, winds), (2, 1): (divergence, rotation)}
    if (inputs, outputs) in special and dice.chance(0.5):
        made = dice.pick(special[inputs, outputs])(grid)
        return unit(made, fields(8 * inputs, dice, grid).unflatten(0, (8, inputs)))
    terms = {}
    for i in range(outputs):
        for j in range(inputs):
            if i == j or dice.chance(0.6):
                terms[i, j] = dice.uniform(0.3, 1) * dice.sign(), draw_term(dice, grid)

    def apply(v: Float[Tensor, "n j p p"]) -> Float[Tensor, "n i p p"]:
        rows = [
            [size * term(v[:, j]) for (to, j), (size, term) in terms.items() if to == i]
            for i in range(outputs)
        ]
        return torch.stack([sum(row, 0 * v[:, 0]) for row in rows], 1)

    return apply


def draw_term(dice: Dice, grid: Grid) -> Map:
    """A linear operator on fields (n, p, p), or the sum of two."""
    kinds = (convolution, filtered, low_rank, separable, product, warp, differential)
    shares = (3, 2, 1, 1, 1, 2, 1)
    trial = fields(8, dice, grid, 0.1, 0.3)
    first = unit(dice.pick(kinds, shares)(dice, grid), trial)
    if dice.chance(0.7):
        return first
    second, share = unit(dice.pick(kinds, shares)(dice, grid), trial), dice.uniform(-1, 1)
    return lambda v: first(v) + share * second(v)


def unit(map: Map, trial: Tensor) -> Map:
    """The map in units of its answer to the trial."""
    size = map(trial).square().mean().sqrt().item() + 1e-9
    return lambda v: map(v) / size


def slopes(grid: Grid) -> Map:
    """The gradient."""
    return lambda v: torch.cat(gradient(grid, v), 1)


def winds(grid: Grid) -> Map:
    """The gradient, turned by a right angle: velocity from a stream function."""

    def turned(v: Tensor) -> Tensor:
        first, second = gradient(grid, v)
        return torch.cat([second, -first], 1)

    return turned


def divergence(grid: Grid) -> Map:
    return lambda v: gradient(grid, v[:, :1])[0] + gradient(grid, v[:, 1:])[1]


def rotation(grid: Grid) -> Map:
    """The vorticity."""
    return lambda v: gradient(grid, v[:, 1:])[0] - gradient(grid, v[:, :1])[1]


def convolution(dice: Dice, grid: Grid) -> Map:
    """Blurs, exponentials, damped waves and second derivatives of blurs, shifted or not. Fields are
    0 or mirrored beyond the sides if not periodic."""
    length, stretch = dice.log_uniform(0.02, 0.3), dice.log_uniform(0.5, 2)
    shift = torch.tensor([dice.uniform(-0.1, 0.1) for _ in range(2)]) * dice.chance(0.4)
    mirrored = not grid.periodic and dice.chance(0.5)
    points = grid.points if grid.periodic else 2 * grid.points
    x = torch.fft.fftfreq(points, 1 / points).double() * grid.h
    d_1, d_2 = x[:, None] - shift[0], x - shift[1]
    r = ((d_1 / stretch) ** 2 + (d_2 * stretch) ** 2) / length**2
    wave = torch.cos(dice.uniform(3, 30) * (d_1 + dice.uniform(-1, 1) * d_2) + dice.uniform(0, 6))
    K = dice.pick(
        (
            torch.exp(-0.5 * r),
            torch.exp(-r.sqrt()),
            torch.exp(-r.sqrt()) * wave,
            (1 - r / 2) * torch.exp(-0.5 * r),
            (r < 1).double(),
        )
    )
    apply = by_series(torch.fft.rfft2(K))
    if grid.periodic:
        return apply
    return lambda v: apply(_padded(v, mirrored))[..., : grid.points, : grid.points]


def _padded(v: Tensor, mirrored: bool) -> Tensor:
    """The square continued to twice its size, by 0 or its mirror image."""
    if mirrored:
        v = torch.cat([v, v.flip(-1)], -1)
        return torch.cat([v, v.flip(-2)], -2)
    return torch.nn.functional.pad(v, (0, v.shape[-1], 0, v.shape[-2]))


def filtered(dice: Dice, grid: Grid) -> Map:
    """Inverses of equations with constant coefficients, shifts, powers of the Laplacian, or a
    smooth random function of the frequencies."""
    around = grid if grid.periodic else Grid(2 * grid.points, True)
    k_1, k_2 = frequencies(around.points, grid.h)
    k, power = 1 + (k_1**2 + k_2**2).sqrt(), -dice.uniform(-0.5, 2)
    turn = dice.uniform(-0.3, 0.3) * k_1 + dice.uniform(-0.3, 0.3) * k_2
    kind = dice.pick(("inverse", "power", "shift", "random"))
    if kind == "inverse":
        symbol = draw_symbol(dice, Grid(around.points, True))
    elif kind == "random":
        w = dice.normal(6, 1, 1)
        centres = torch.arange(6, dtype=torch.float64)[:, None, None]
        symbol = (w * torch.exp(-0.5 * (k / 7 - centres) ** 2)).sum(0) + 0j
    else:
        symbol = k**power + 0j
    if kind in ("shift", "random"):
        symbol = symbol * torch.polar(torch.ones_like(turn), turn)
    apply = by_series(symbol)
    if grid.periodic:
        return apply
    return lambda v: apply(_padded(v, True))[..., : grid.points, : grid.points]


def low_rank(dice: Dice, grid: Grid) -> Map:
    """Sums of a few products g(x) h(y)."""
    rank = dice.pick((1, 2, 3, 6, 20))
    left, right = (fields(rank, dice, grid).flatten(1) for _ in range(2))
    return lambda v: ((v.flatten(-2) @ right.T) @ left).view(v.shape) * grid.h**2


def separable(dice: Dice, grid: Grid) -> Map:
    """A v B^T: integrals from 0, with memory or not, or random smooth kernels along each axis."""
    d = grid.x[:, None] - grid.x

    def matrix() -> Tensor:
        kind = dice.pick(("causal", "smooth", "identity"))
        if kind == "causal":
            return torch.tril(torch.exp(-dice.pick((0.0, dice.log_uniform(1, 20))) * d)) * grid.h
        return field(dice, grid, 0.1, 0.4) if kind == "smooth" else torch.eye(len(d)).double()

    A, B = matrix(), matrix()
    return lambda v: along(A, v, B)


def product(dice: Dice, grid: Grid) -> Map:
    """A product with a fixed field."""
    a = 1 + dice.log_uniform(0.1, 2) * field(dice, grid, 0.06, 0.6)
    return lambda v: a * v


def differential(dice: Dice, grid: Grid) -> Map:
    """A derivative of order 1 or 2 in some direction, of a blurred field."""
    K = torch.exp(-0.5 * ((grid.x[:, None] - grid.x) / dice.log_uniform(0.02, 0.06)) ** 2)
    blur, order = K / K.sum(1, keepdim=True), dice.pick((1, 1, 2))
    D, turn = grid.derivative(order), dice.uniform(0, 2 * math.pi)
    c, s = (math.cos(turn), math.sin(turn)) if dice.chance(0.7) else (1.0, 1.0)
    share = dice.uniform(-1, 1) * dice.chance(0.3) / grid.h

    def apply(v: Tensor) -> Tensor:
        w = along(blur, v)
        return c * (D @ w) + s * (w @ D.T) + share * v

    return apply
