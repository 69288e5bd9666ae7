"""How far queries are from the examples.

    novelty(v) = min_i |v - v_i| / median_j min_{i != j} |v_j - v_i|

A query like the examples scores about 1. Parameters count in units of their standard deviation,
functions in units of theirs.
"""

from __future__ import annotations

import warnings

import numpy as np

from ..inputs import Functions, Pairs, Query

FAR = 5.0  # novelty beyond which queries are warned of


def novelty_of(pairs: Pairs, query: Query) -> np.ndarray:
    """The novelty of each query, shape (m,)."""
    v, q = pairs.v.array, _on_grid(query, pairs.v)
    unit = _size(v - v.mean(0))
    own, asked = (f.reshape(len(f), -1) / unit for f in (v, q))
    if pairs.parameters is not None and query.parameters is not None:
        p, spread = pairs.parameters, pairs.parameters.std(0)
        spread = np.where(spread > 0, spread, 1.0)
        own = np.concatenate([own, p / spread], 1)
        asked = np.concatenate([asked, query.parameters / spread], 1)
    between = _distances(own, own)
    np.fill_diagonal(between, np.inf)
    typical = np.median(between.min(1)) if len(own) > 1 else _size(own)
    found: np.ndarray = _distances(asked, own).min(1) / max(typical, 1e-300)
    far = np.flatnonzero(found > FAR)
    if len(far):
        shown = ", ".join(map(str, far[:8])) + (f" and {len(far) - 8} more" if len(far) > 8 else "")
        warnings.warn(
            f"queries {shown} are more than {FAR:g} times as far from the examples as these are "
            "from each other. Answers there are extrapolations: add examples like them.",
            stacklevel=3,
        )
    return found


def _on_grid(query: Query, examples: Functions) -> np.ndarray:
    """Queries at the positions of the examples."""
    values, grid = query.v.array, query.v.grid
    if query.same_grid or grid is None or examples.grid is None:
        return values
    at, x = examples.grid.unit, grid.unit
    return np.apply_along_axis(lambda f: np.interp(at, x, f), -1, values)


def _size(f: np.ndarray) -> float:
    return float(np.sqrt(np.square(f).mean())) or 1.0


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    squares = np.square(a).sum(1)[:, None] + np.square(b).sum(1) - 2 * a @ b.T
    return np.sqrt(np.maximum(squares, 0))
