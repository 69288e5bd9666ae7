"""Linear equations between neighbouring points of a grid, whose coefficients depend on features.

    u_i = f_i . b + sum_d (f_i . w_d) u_d(i),      d(i) the points above, below, left and right of i

Points inside, on each side and at each corner have coefficients of their own. On sides and corners
there are fewer features, and those neighbours that exist. On periodic grids all points are inside.
The system of all points is sparse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

FAR = 4  # clipped values, in units of the largest that need no second solution
FEWEST = 3  # points along an axis, so that one is inside
AROUND = ((-1, 0), (1, 0), (0, -1), (0, 1))
DIAGONAL = ((1, 1), (1, -1), (-1, 1), (-1, -1))


class Neighbours:
    """The points next to each point of a grid, and where they stand in a sparse matrix.

    Args:
        grid: number of points along each axis.
        periodic: whether the last points are next to the first.

    Attributes:
        numbers: of the neighbours; a point's own where there is none.
        exist: whether there is one.
    """

    numbers: Int[Tensor, "4 p"]
    exist: Bool[Tensor, "4 p"]

    def __init__(self, grid: tuple[int, int], periodic: bool = False):
        rows, columns = torch.meshgrid(*map(torch.arange, grid), indexing="ij")
        numbers, exist = [], []
        for i, j in AROUND:
            k, l = rows + i, columns + j
            inside = (k >= 0) & (k < grid[0]) & (l >= 0) & (l < grid[1])
            numbers.append((k % grid[0]) * grid[1] + l % grid[1])
            exist.append(inside | periodic)
        own = rows * grid[1] + columns
        self.exist = torch.stack(exist).flatten(1)
        self.numbers = torch.where(self.exist, torch.stack(numbers).flatten(1), own.flatten())
        self.place, self.indices, self.starts = self._pattern()

    def of(self, f: Float[Tensor, "n p *r"], k: int) -> Float[Tensor, "n p *r"]:
        """The values at the neighbours in one direction."""
        return f[:, self.numbers[k].to(f.device)]

    def matrix(self, entries: Float[np.ndarray, " e"]) -> csc_matrix:
        """The matrix with ones on its diagonal and minus the weights of the neighbours."""
        from scipy.sparse import csc_matrix

        return csc_matrix((entries[self.place], self.indices, self.starts))

    def _pattern(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the entries of the matrix by columns are among those by direction and row, their
        rows, and the start of each column."""
        from scipy.sparse import csc_matrix

        points = self.numbers.shape[1]
        columns = np.concatenate([np.arange(points)[None], self.numbers.numpy()])
        exist = np.concatenate([np.ones((1, points), bool), self.exist.numpy()])
        rows = np.broadcast_to(np.arange(points), columns.shape)
        place = 1 + np.arange(columns.size).reshape(columns.shape)  # 0 would not be stored
        matrix = csc_matrix((place[exist], (rows[exist], columns[exist])))
        return matrix.data - 1, matrix.indices, matrix.indptr


class Place(NamedTuple):
    """Points with common coefficients.

    Attributes:
        points: their numbers.
        neighbours: the numbers of those among `AROUND` that exist.
        features: how many are used.
        own: the coefficients.
    """

    points: Tensor
    neighbours: list[int]
    features: int
    own: slice


class Stencil:
    """The equations on a grid.

    Args:
        grid: number of points along each axis.
        inside: number of the features that points inside depend on, the first of all.
        on_edges: the same of points on sides and corners.
        periodic: whether all points are inside.
    """

    def __init__(self, grid: tuple[int, int], inside: int, on_edges: int, periodic: bool = False):
        self.neighbours = Neighbours(grid, periodic)
        self.places = list(_places(grid, inside, on_edges, periodic))

    def mean_of_neighbours(self) -> Float[Tensor, " t"]:
        """The coefficients by which each value is the mean of its neighbours."""
        w = torch.zeros(self.places[-1].own.stop, dtype=torch.float64)
        for place in self.places:
            for k in range(len(place.neighbours)):
                w[place.own.start + place.features * (1 + k)] = 1 / len(place.neighbours)
        return w

    def columns(
        self, f: Float[Tensor, "n p k"], u: Float[Tensor, "n p"], place: Place, points: Tensor
    ) -> Float[Tensor, "n s t"]:
        """What the coefficients of a place are multiplied by, at some of its points."""
        numbers = self.neighbours.numbers[:, points.cpu()].to(points.device)
        near = torch.stack([u[:, numbers[k]] for k in place.neighbours], -1)
        near = torch.cat([torch.ones_like(near[..., :1]), near], -1)
        return (near[..., None] * f[:, points, None, : place.features]).flatten(2)

    def solve(
        self, f: Float[Tensor, "n p k"], w: Float[Tensor, " t"], largest: Float[Tensor, ""]
    ) -> Float[Tensor, "n p"]:
        """u at all points. If a value exceeds `largest`, solve again with neighbour weights whose
        sum is at most 1, and clip what is still far beyond."""
        weights, constant = self._system(f, w)
        u = self._solved(weights, constant[..., None])[..., 0]
        beyond = ~(u.detach().abs().amax(1) <= largest)
        if beyond.any():
            few = weights[beyond] / weights[beyond].sum(1, keepdim=True).clamp(min=1)
            again = self._solved(few, constant[beyond][..., None])[..., 0]
            again = torch.nan_to_num(again, nan=0.0).clamp(-FAR * largest, FAR * largest)
            u = u.index_copy(0, beyond.nonzero()[:, 0], again)
        return u

    def derivatives(
        self, f: Float[Tensor, "n p k"], u: Float[Tensor, "n p"], w: Float[Tensor, " t"]
    ) -> Float[Tensor, "n p t"]:
        """Of the answers u with respect to w."""
        right = u.new_zeros(*u.shape, len(w))
        for place in self.places:
            right[:, place.points, place.own] = self.columns(f, u, place, place.points)
        return self._solved(self._system(f, w)[0], right)

    def _solved(self, weights: Tensor, right: Tensor) -> Tensor:
        answers: Tensor = SparseSolution.apply(weights, right, self.neighbours)
        return answers

    def _system(
        self, f: Float[Tensor, "n p k"], w: Float[Tensor, " t"]
    ) -> tuple[Float[Tensor, "n 4 p"], Float[Tensor, "n p"]]:
        """The weights of the neighbours of each point, and the constants."""
        rows = f.new_zeros(len(f), 1 + len(AROUND), f.shape[1])
        for place in self.places:
            own = f[:, place.points, : place.features] @ w[place.own].view(-1, place.features).T
            for column, k in enumerate([0, *(1 + k for k in place.neighbours)]):
                rows[:, k, place.points] = own[..., column]
        return rows[:, 1:], rows[:, 0]


class SparseSolution(torch.autograd.Function):
    """Solutions of u_i - sum_d w_di u_d(i) = b_i, one system for each example. They are nan where
    there is none."""

    @staticmethod
    def forward(
        ctx: Any, w: Float[Tensor, "n 4 p"], b: Float[Tensor, "n p r"], neighbours: Neighbours
    ) -> Float[Tensor, "n p r"]:
        ctx.factors, ctx.neighbours = factorised(w, neighbours), neighbours
        u = _solved(ctx.factors, b, "N")
        ctx.save_for_backward(u)
        return u

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor, None]:
        (u,) = ctx.saved_tensors
        b = _solved(ctx.factors, slopes[0], "T")
        parts = [(b * ctx.neighbours.of(u, k)).sum(-1) for k in range(len(AROUND))]
        return torch.stack(parts, 1), b, None


def factorised(w: Float[Tensor, "n 4 p"], neighbours: Neighbours) -> list[Any]:
    """The factors of each system; None where it is singular."""
    from scipy.sparse.linalg import splu

    entries = torch.cat([torch.ones_like(w[:, :1]), -w], 1).detach().cpu().double().numpy()
    found = []
    for own in entries.reshape(len(entries), -1):
        A = neighbours.matrix(own)
        try:
            factor = splu(A, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        except RuntimeError:
            factor = None
        found.append(factor)
    return found


def _solved(factors: list[Any], b: Float[Tensor, "n p r"], turned: str) -> Float[Tensor, "n p r"]:
    found = np.full(b.shape, np.nan)
    right = b.detach().cpu().double().numpy()
    for k, factor in enumerate(factors):
        if factor is not None:
            found[k] = factor.solve(np.ascontiguousarray(right[k]), turned)
    return torch.from_numpy(found).to(b)


def _places(grid: tuple[int, int], inside: int, on_edges: int, periodic: bool) -> Iterator[Place]:
    """Inside, the sides and the corners."""
    numbers = torch.arange(grid[0] * grid[1]).view(grid)
    if periodic:
        every = list(range(len(AROUND)))
        yield Place(numbers.flatten(), every, inside, slice(0, inside * (1 + len(every))))
        return
    along = [(slice(1, -1), (-1, 1)), (slice(0, 1), (1,)), (slice(-1, None), (-1,))]
    first = 0
    for rows, down in along:
        for columns, right in along:
            points = numbers[rows, columns].flatten()
            near = [k for k, (i, j) in enumerate(AROUND) if i in (*down, 0) and j in (*right, 0)]
            count = inside if len(near) == len(AROUND) else on_edges
            last = first + count * (1 + len(near))
            yield Place(points, near, count, slice(first, last))
            first = last


def feature_counts(channels: int) -> list[tuple[int, int]]:
    """Numbers of features to choose from, of points inside and on edges: values alone, and for one
    channel products of two and of three of them."""
    near, around = len(AROUND), len(AROUND) + len(DIAGONAL)
    values, few, more = 1 + channels * (1 + around), 1 + channels, 1 + channels * (1 + near)
    if channels > 1:
        return [(values, few), (values, more)]
    pairs = near * (near - 1) // 2
    twice = values + around + pairs
    return [(values, few), (twice, few), (twice + pairs, more)]


def features_of(
    v: Float[Tensor, "n c p"], grid: tuple[int, int], periodic: bool = False
) -> Float[Tensor, "n p k"]:
    """1, and v at each point, at the four nearest and at the diagonal ones. For one channel also
    products of v there with those, of pairs of the four nearest, and of all three. Values beyond
    the edges repeat those at the edges, or are those at the opposite edges."""
    p, q = grid
    wide = pad(v.unflatten(2, grid), (1, 1, 1, 1), mode="circular" if periodic else "replicate")
    around = [
        wide[..., 1 + i : 1 + i + p, 1 + j : 1 + j + q].flatten(2)
        for i, j in ((0, 0), *AROUND, *DIAGONAL)
    ]
    parts = [torch.ones_like(v[:, :1]), *around]
    if v.shape[1] == 1:
        here, near = around[0], around[1 : 1 + len(AROUND)]
        pairs = [f * g for k, f in enumerate(near) for g in near[k + 1 :]]
        parts += [*(here * f for f in around[1:]), *pairs, *(here * f for f in pairs)]
    return torch.cat(parts, 1).mT
