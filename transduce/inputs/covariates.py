"""What comes with the pairs: parameters of each pair, and groups of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .messages import problem
from .numbers import detached
from .sources import read_source


def read_parameters(parameters: object, n: int, expected: int | None = None) -> np.ndarray | None:
    """Parameters as a float64 array of shape (n, p), or None.

    Args:
        parameters: numbers of shape (n,) or (n, p).
        n: the number of rows.
        expected: for queries, the number p of the examples' parameters; None for examples.
    """
    if parameters is None:
        return None
    shape = f"(n, {'p' if expected is None else expected}) with n = {n}"
    source = read_source(parameters, "parameters")
    values = detached(source.values)
    if values.shape == (expected,) and n == 1:
        values = values[None]
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or len(values) != n:
        remedy = "Give one row of parameters for each pair."
        if expected is not None:
            remedy = (
                "Give one row for each query; for equal ones, np.tile(parameters, (len(v), 1))."
            )
        if values.ndim == 2 and values.shape[1] == n:
            remedy = "Rows must be pairs: give parameters.T."
        elif values.ndim > 2 and len(values) == n:
            remedy = "Give parameters.reshape(len(parameters), -1)."
        raise problem(f"parameters have shape {source.shape}", shape, remedy)
    if expected is not None and values.shape[1] != expected:
        raise problem(
            f"parameters have {values.shape[1]} columns",
            f"{expected}, as in the examples",
            "Give the same parameters in the same order.",
        )
    return values


def check_parameters_present(parameters: object, expected: int | None) -> None:
    """Raise if queries lack the parameters of the examples, or have some where those had none.

    Args:
        parameters: of the queries.
        expected: number of parameters of the examples; None if they have none.
    """
    if parameters is None and expected is not None:
        raise problem(
            "queries came without parameters",
            f"{expected} for each query, as in the examples",
            "Give parameters= with one row for each query.",
        )
    if parameters is not None and expected is None:
        raise problem(
            "queries came with parameters",
            "none, since the examples have none",
            "Leave them out, or give parameters= with the examples too.",
        )


def read_groups(groups: object, n: int) -> np.ndarray | None:
    """Group labels as codes 0, 1, ... in order of appearance, shape (n,), or None.

    Args:
        groups: one label for each pair: numbers, text or dates.
        n: the number of pairs.
    """
    if groups is None:
        return None
    labels = _labels(groups)
    if labels.shape != (n,):
        remedy = "Give one label for each row of v."
        if labels.size == n:
            remedy = "Give one axis: np.ravel(groups)."
        raise problem(f"groups have shape {labels.shape}", f"({n},)", remedy)
    unknown = [i for i, label in enumerate(labels.tolist()) if _is_missing(label)]
    if unknown:
        raise problem(
            f"groups[{unknown[0]}] is missing",
            "a label for each pair",
            "Give pairs that belong to no group a label of their own.",
        )
    codes: dict[object, int] = {}
    return np.array([codes.setdefault(label, len(codes)) for label in labels.tolist()])


def _labels(groups: object) -> np.ndarray:
    given: Any = groups
    try:
        return detached(given)
    except ValueError:  # ragged
        return np.empty((0,))


def _is_missing(label: object) -> bool:
    return not isinstance(label, str) and str(label) in ("None", "nan", "NaT", "<NA>")
