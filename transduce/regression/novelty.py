"""How far queries are from the examples.

    novelty(v) = min_i |v - v_i| / median_j min_{i != j} |v_j - v_i|

A query like the examples scores about 1. Parameters count in units of their standard deviation,
functions in units of theirs.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from ..inputs import Functions, Pairs, Query
from ..inputs.messages import caution, named

FAR = 5.0  # novelty beyond which queries are warned of
SAME = 1e-9  # of the largest distance: examples that are nearer are equal


def novelty_of(pairs: Pairs, query: Query) -> np.ndarray:
    """The novelty of each query, shape (m,)."""
    v, q = pairs.v.array, _on_grid(query, pairs.v)
    unit = _unit(pairs.v)
    own, asked = (f.reshape(len(f), -1) / unit for f in (v, q))
    if pairs.parameters is not None and query.parameters is not None:
        p, spread = pairs.parameters, pairs.parameters.std(0)
        spread = np.where(spread > 0, spread, 1.0)
        own = np.concatenate([own, p / spread], 1)
        asked = np.concatenate([asked, query.parameters / spread], 1)
    found: np.ndarray = cdist(asked, own).min(1) / _typical(own)
    far = np.flatnonzero(found > FAR)
    if len(far):
        caution(
            f"{named(far.tolist(), 'query row')}: more than {FAR:g} times as far from the "
            "examples as these are from each other. Answers there are extrapolations: add "
            "examples like them."
        )
    return found


def _typical(own: np.ndarray) -> float:
    """The median distance of an example to the nearest other one that differs from it."""
    between = cdist(own, own)
    between[between <= SAME * between.max()] = np.inf
    nearest = between.min(1)
    known = nearest[np.isfinite(nearest)]
    return float(np.median(known)) if len(known) else _size(own)


def _unit(v: Functions) -> np.ndarray | float:
    """The root mean square norm of centred functions, or of each column of plain numbers."""
    deviation = v.array - v.array.mean(0)
    if v.layout.kind != "numbers":
        return _size(deviation) * deviation[0].size ** 0.5
    spread = np.sqrt(np.square(deviation).mean((0, 1)))
    return np.where(spread > 0, spread, 1.0)


def _on_grid(query: Query, examples: Functions) -> np.ndarray:
    """Queries at the positions of the examples."""
    values, grid = query.v.array, query.v.grid
    if query.same_grid or grid is None or examples.grid is None:
        return values
    at, x = examples.grid.unit, grid.unit
    return np.apply_along_axis(lambda f: np.interp(at, x, f), -1, values)


def _size(f: np.ndarray) -> float:
    return float(np.sqrt(np.square(f).mean())) or 1.0
