"""Random neural operators, of convolutions or of Fourier coefficients.

h_0 = (v, x, y),      h_(l+1) = tanh(g (W h_l + K_l h_l) + b),      u = P h_L

K_l convolves with random kernels of 3 to 9 points, or multiplies the lowest waves by random
matrices; W acts on channels.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import conv2d, pad

from ..laws import Dice, Law, Map, of_map
from .grid import Grid, draw_grid
from .linear import draw_channels
from .measures import draw_measure


def neural(dice: Dice) -> Law:
    """A network of 1 to 3 layers with random weights."""
    grid, (inputs, outputs) = draw_grid(dice), draw_channels(dice)
    measure, width = draw_measure(dice, grid, inputs), dice.pick((2, 4, 8))
    place = dice.chance(0.5) and not grid.periodic
    x, y = torch.meshgrid(grid.x, grid.x, indexing="ij")
    layers, size, kind = [], inputs + 2 * place, dice.pick((convolved, multiplied))
    for _ in range(dice.pick((1, 2, 3))):
        layers.append(layer(dice, kind(dice, grid, size, width), size, width))
        size = width
    P = dice.normal(outputs, width)

    def respond(v: Float[Tensor, "n c p p"]) -> Float[Tensor, "n d p p"]:
        h = v
        if place:
            h = torch.cat([v, torch.stack([x, y]).expand(len(v), 2, *x.shape)], 1)
        for apply in layers:
            h = apply(h)
        return torch.einsum("ij,njxy->nixy", P, h)

    return of_map(measure, respond)


def layer(dice: Dice, K: Map, inputs: int, outputs: int) -> Map:
    """One layer around an integral operator."""
    W = dice.normal(outputs, inputs) / inputs**0.5 * dice.pick((0.0, 0.5, 1.0))
    gain, bias = dice.log_uniform(0.5, 2), dice.normal(outputs, 1, 1) / 2
    return lambda h: torch.tanh(gain * (torch.einsum("ij,njxy->nixy", W, h) + K(h)) + bias)


def convolved(dice: Dice, grid: Grid, inputs: int, outputs: int) -> Map:
    """Random kernels of 3 to 9 points each way."""
    reach = dice.pick((1, 2, 4))
    size, mode = 2 * reach + 1, "circular" if grid.periodic else "replicate"
    weights = dice.normal(outputs, inputs, size, size) / (size * inputs**0.5)
    return lambda h: conv2d(pad(h, [reach] * 4, mode=mode), weights)


def multiplied(dice: Dice, grid: Grid, inputs: int, outputs: int) -> Map:
    """Random matrices for the waves up to 3 to 8 of the square, or of its double."""
    modes, p = dice.pick((3, 5, 8)), grid.points
    around = p if grid.periodic else 2 * p
    weights = torch.zeros(outputs, inputs, around, around // 2 + 1, dtype=torch.complex128)
    real, imaginary = dice.normal(2, outputs, inputs, 2 * modes - 1, modes) / inputs**0.5
    rows = torch.arange(1 - modes, modes) % around
    weights[:, :, rows, :modes] = torch.complex(real, imaginary)

    def apply(h: Tensor) -> Tensor:
        if not grid.periodic:
            h = torch.cat([h, h.flip(-1)], -1)
            h = torch.cat([h, h.flip(-2)], -2)
        series = torch.einsum("ijxk,njxk->nixk", weights, torch.fft.rfft2(h))
        return torch.fft.irfft2(series, s=(around, around))[..., :p, :p]

    return apply
