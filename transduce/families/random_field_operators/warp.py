"""Warps, by cubic interpolation.

u(x) = a(x) v(phi(x)),      phi(x) = x + shift + distortion, turned and zoomed or not
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float
from scipy import sparse
from torch import Tensor

from ..laws import Dice, Map
from .grid import Grid
from .measures import field, fields


def warp(dice: Dice, grid: Grid) -> Map:
    """u(x) = a(x) v(phi(x)): shifts, turns, zooms and random distortions."""
    x = torch.stack(torch.meshgrid(grid.x, grid.x, indexing="ij"))
    moved = x + (dice.uniforms(2, 1, 1) - 0.5) * 0.3 * dice.chance(0.6)
    moved = moved + dice.log_uniform(0.003, 0.06) * fields(2, dice, grid, 0.15, 0.6)
    if not grid.periodic and dice.chance(0.3):
        turn, zoom = dice.uniform(-1, 1), dice.uniform(0.5, 1)
        c, s = zoom * math.cos(turn), zoom * math.sin(turn)
        moved = 0.5 + torch.tensordot(torch.tensor([[c, -s], [s, c]]).double(), moved - 0.5, 1)
    A = interpolation(moved, grid)
    a = 1 + dice.uniform(0, 0.6) * field(dice, grid, 0.1, 0.6) * dice.chance(0.4)
    return lambda v: a * interpolated(A, v)


def interpolation(places: Float[Tensor, "2 a b"], grid: Grid) -> sparse.csr_matrix:
    """The matrix of cubic interpolation, 4 x 4 points each. Places beyond sides are moved there."""
    t = places.flatten(1).numpy() / grid.h
    if not grid.periodic:
        t = t.clip(0, grid.points - 1)
    i = np.floor(t).astype(int)
    if not grid.periodic:
        i = i.clip(1, grid.points - 3)
    s, offsets = t - i, np.arange(-1, 3)
    nodes = (i[..., None] + offsets) % grid.points  # (2, places, 4)
    weights = np.ones((*s.shape, 4))
    for a in range(4):
        for b in range(4):
            if a != b:
                weights[..., a] *= (s - offsets[b]) / (offsets[a] - offsets[b])
    columns = nodes[0][:, :, None] * grid.points + nodes[1][:, None]
    values = weights[0][:, :, None] * weights[1][:, None]
    starts = np.arange(t.shape[1] + 1) * 16
    shape = (t.shape[1], grid.points**2)
    return sparse.csr_matrix((values.ravel(), columns.ravel(), starts), shape=shape)


def interpolated(A: sparse.csr_matrix, v: Float[Tensor, "*n p p"]) -> Float[Tensor, "*n p p"]:
    """A acts on fields."""
    flat = np.ascontiguousarray(v.reshape(-1, A.shape[1]).numpy().T)
    return torch.from_numpy((A @ flat).T.copy()).view(v.shape)
