"""Properties of examples that are worth a note or a warning: they raise nothing."""

from __future__ import annotations

import numpy as np

ALIKE = 0.35  # of the median distance of random pairs: nearer neighbours are correlated
FEWEST = 10  # rows from which neighbours are compared
MOST = 2000  # rows that are compared
MANY_POINTS = 5000


def neighbours_correlated(values: np.ndarray) -> bool:
    """Whether neighbouring rows are much more alike than random pairs of rows, as in time series.

    The median distance of neighbours is below 0.35 of that of random pairs. Fewer than 10 rows
    are not judged. Columns count alike, whatever their units.

    Args:
        values: shape (n, ...).
    """
    rows = _scaled(np.asarray(values, dtype=np.float64).reshape(len(values), -1))
    n = len(rows)
    if n < FEWEST:
        return False
    scale = rows.std(axis=0)
    rows = rows[:, scale > 0] / scale[scale > 0]
    generator = np.random.default_rng(0)
    first = np.arange(n - 1) if n <= MOST else generator.choice(n - 1, MOST, replace=False)
    other = (first + generator.integers(1, n, len(first))) % n  # never the row itself
    near = np.median(_distances(rows, first, first + 1))
    return bool(near < ALIKE * np.median(_distances(rows, first, other)))


def is_sweep(values: np.ndarray) -> bool:
    """Whether a column of plain numbers ascends or descends: rows are ordered on purpose."""
    steps = np.diff(values.reshape(len(values), -1), axis=0)
    return bool(((steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)).any())


def looks_swapped(values: np.ndarray) -> bool:
    """Whether columns look like functions and rows do not: smooth along columns, rough along rows.

    The measure is von Neumann's ratio, mean squared step / (2 variance): about 1 in random order,
    about 0 along a smooth function. Only arrays with more than 8 times as many rows as columns,
    and with at least two columns, are judged.

    Args:
        values: shape (n, points).
    """
    n, points = values.shape
    if points < 2 or n <= 8 * points:
        return False
    values = _scaled(values)
    return _roughness(values, 0) < 0.05 and _roughness(values, 1) > 0.5


def is_constant(values: np.ndarray) -> bool:
    """Whether all rows are equal, up to rounding."""
    rows = values.reshape(len(values), -1)
    spread = np.abs(rows - rows[0]).max()
    return len(rows) > 1 and bool(spread <= 1e-12 * np.abs(rows[0]).max())


def conflicting_rows(v: np.ndarray, u: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of rows with equal v and different u.

    Args:
        v: shape (n, ...).
        u: shape (n, ...).
    """
    seen: dict[bytes, int] = {}
    v, u = v.reshape(len(v), -1) + 0.0, u.reshape(len(u), -1)  # + 0.0: -0 becomes 0
    tolerance = 1e-9 * np.abs(u).max()
    found = []
    for i, row in enumerate(v):
        first = seen.setdefault(row.tobytes(), i)
        if first != i and np.abs(u[i] - u[first]).max() > tolerance:
            found.append((first, i))
    return found


def scale_change(examples: np.ndarray, queries: np.ndarray) -> float:
    """The largest ratio of scales between queries and examples among channels; 1 if equal.

    Args:
        examples: shape (n, channels, points).
        queries: shape (m, channels, points), other points allowed.
    """
    one, other = (np.abs(values).max(axis=(0, 2)) for values in (examples, queries))
    known = (one > 0) & (other > 0)
    ratios = np.log(other[known]) - np.log(one[known])
    return float(np.exp(ratios[np.abs(ratios).argmax()])) if known.any() else 1.0


def _scaled(values: np.ndarray) -> np.ndarray:
    """Values of at most 1, whose squares do not overflow."""
    largest = np.abs(values).max()
    return values / largest if largest > 0 else values


def _distances(rows: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return np.array([np.linalg.norm(rows[a] - rows[b]) for a, b in zip(i, j, strict=True)])


def _roughness(values: np.ndarray, axis: int) -> float:
    """The median of von Neumann's ratio of all lines along an axis."""
    variance = values.var(axis=axis)
    ratio = (np.diff(values, axis=axis) ** 2).mean(axis=axis)[variance > 0]
    return float(np.median(ratio / (2 * variance[variance > 0]))) if ratio.size else 0.0
