"""How far queries are from the examples.

    novelty(v) = min_i |v - v_i| / median_j min_{i != j} |v_j - v_i|

A query like the examples scores about 1. Parameters count in units of their standard deviation,
functions in units of theirs. Answers come with a warning if v is also outside the examples:

    |v - mean| > 1.5 (1 + 5 / n) max_i |v_i - mean|

The factor grows with few examples, whose spread says little of that of others.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from ..inputs import Functions, Pairs, Query
from ..inputs.messages import caution, named

FAR = 5.0  # novelty beyond which queries are warned of
SAME = 1e-9  # of the largest distance: examples that are nearer are equal
OUTSIDE, FEW = 1.5, 5  # the factor above, and how it grows with few examples
MOST = 1000  # examples whose distances to their neighbours are measured


class Surroundings:
    """The examples, as queries are compared with them.

    Args:
        pairs: the examples.
    """

    def __init__(self, pairs: Pairs):
        self.pairs = pairs
        self.unit, self.spread = _unit(pairs.v), np.ones(1)
        if pairs.parameters is not None:
            spread = pairs.parameters.std(0)
            self.spread = _varying(spread, pairs.parameters.mean(0))
        self.points = self._placed(pairs.v.array, pairs.parameters)
        self.center = self.points.mean(0)
        self.reach = OUTSIDE * (1 + FEW / len(pairs)) * self._from_center(self.points).max()

    def novelty(self, query: Query) -> np.ndarray:
        """The novelty of each query, shape (m,). Warns of queries far from the examples."""
        found = self._novelty(self._asked(query))
        _warn(found, np.flatnonzero(found > FAR))
        return found

    def check(self, query: Query) -> None:
        """Warn of queries that are far from the examples and outside them."""
        if not query.other_scale:
            found = self._beyond(query)
            _warn(found, np.flatnonzero(found > FAR))

    def outside(self, query: Query) -> np.ndarray:
        """Whether each query is far from the examples and outside them, shape (m,)."""
        return self._beyond(query) > FAR

    def _beyond(self, query: Query) -> np.ndarray:
        """The novelty of queries outside the examples, 0 of others. Distances to single examples
        are computed for those that are outside alone."""
        found = np.zeros(len(query))
        if len(self.points) > 1:
            asked = self._asked(query)
            outside = np.flatnonzero(self._from_center(asked) > self.reach)
            if len(outside):
                found[outside] = self._novelty(asked[outside])
        return found

    @cached_property
    def remoteness(self) -> np.ndarray:
        """The distance of each example to the nearest other one, in units of `typical`. Examples
        that are not measured have 1."""
        found = np.ones(len(self.points))
        rows, nearest = self._nearest
        found[rows] = np.where(np.isfinite(nearest), nearest, 0.0) / self.typical
        return found

    @cached_property
    def typical(self) -> float:
        """The median distance of an example to the nearest other one that differs from it."""
        nearest = self._nearest[1]
        known = nearest[np.isfinite(nearest)]
        return float(np.median(known)) if len(known) else _size(self.points)

    @cached_property
    def _nearest(self) -> tuple[np.ndarray, np.ndarray]:
        """The examples that are measured, and the distance of each to the nearest other one that
        differs from it; infinite if there is none."""
        own = self.points
        rows = np.linspace(0, len(own) - 1, min(len(own), MOST)).round().astype(int)
        between = cdist(own[rows], own)
        between[between <= SAME * between.max()] = np.inf
        return rows, between.min(1)

    def _novelty(self, asked: np.ndarray) -> np.ndarray:
        found: np.ndarray = cdist(asked, self.points).min(1) / self.typical
        return found

    def _from_center(self, points: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.linalg.norm(points - self.center, axis=1)
        return found

    def _asked(self, query: Query) -> np.ndarray:
        return self._placed(_on_grid(query, self.pairs.v), query.parameters)

    def _placed(self, v: np.ndarray, parameters: np.ndarray | None) -> np.ndarray:
        """Functions and parameters as points, each in units of the examples."""
        points = v.reshape(len(v), -1) / self.unit
        return points if parameters is None else np.hstack([points, parameters / self.spread])


def _warn(novelty: np.ndarray, far: np.ndarray) -> None:
    """Warn of these queries, the furthest ones by name."""
    if not len(far):
        return
    worst = far[np.argsort(-novelty[far], kind="stable")].tolist()
    caution(
        f"{len(far)} of {len(novelty)} queries ({named(worst, 'row')}, furthest first): more than "
        f"{FAR:g} times as far from the examples as these are from each other. Answers there are "
        "extrapolations: add examples like them, and see O.novelty."
    )


def _unit(v: Functions) -> np.ndarray | float:
    """The root mean square norm of centred functions, or of each column of plain numbers."""
    deviation = v.array - v.array.mean(0)
    if v.layout.kind != "numbers":
        return _size(deviation) * deviation[0].size ** 0.5
    spread = np.sqrt(np.square(deviation).mean((0, 1)))
    return _varying(spread, v.array.mean((0, 1)))


def _varying(spread: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The spread of columns; 1 for constant ones, whose spread is rounding."""
    return np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)


def _on_grid(query: Query, examples: Functions) -> np.ndarray:
    """Queries at the positions of the examples."""
    values, grid = query.v.array, query.v.grid
    if query.same_grid or grid is None or examples.grid is None:
        return values
    at, x = examples.grid.unit, grid.unit
    return np.apply_along_axis(lambda f: np.interp(at, x, f), -1, values)


def _size(f: np.ndarray) -> float:
    return float(np.sqrt(np.square(f).mean())) or 1.0
