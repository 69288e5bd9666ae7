"""What comes with the pairs: parameters of each pair, and groups of pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import numpy as np

from .messages import problem
from .numbers import detached
from .sources import Source, read_source

Label = str | int | float
"""Of a group. Dates become text."""


def names_of(parameters: object) -> tuple[str, ...]:
    """The names of the columns of parameters; () if they have none."""
    return () if parameters is None else read_source(parameters, "parameters").names


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
        remedy = _remedy(source, n, expected)
        noun = "pair" if expected is None else "query"
        in_shell = f"Write one row of parameters for each {noun}."
        raise problem(f"parameters have shape {source.shape}", shape, remedy, in_shell)
    if expected is not None and values.shape[1] != expected:
        raise problem(
            f"parameters have {values.shape[1]} columns",
            f"{expected}, as in the examples",
            "Give the same parameters in the same order.",
        )
    return values


def _remedy(source: Source, n: int, expected: int | None) -> str:
    """What to do about parameters that do not have n rows."""
    shape = source.shape
    if len(shape) == 2 and shape[1] == n and expected in (None, shape[0]):
        return f"Rows must be pairs: give {source.transposed}."
    if len(shape) > 2 and shape[0] == n and expected in (None, math.prod(shape[1:])):
        return f"Give {source.flattened}."
    if expected is not None and shape in ((expected,), (1, expected)):
        frame = source.template.kind == "pandas" and len(shape) == 2
        equal = "pd.concat([parameters] * len(v))" if frame else "np.tile(parameters, (len(v), 1))"
        return f"Give one row for each query; for equal ones, {equal}."
    return f"Give one row of parameters for each {'pair' if expected is None else 'query'}."


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
            "Add them to the file of queries, as the examples have them.",
        )
    if parameters is not None and expected is None:
        raise problem(
            "queries came with parameters",
            "none, since the examples have none",
            "Leave them out, or give parameters= with the examples too.",
            "Leave them out, or add them to the examples too (--parameters, in tables).",
        )


@dataclass(frozen=True, eq=False)
class Groups:
    """Which pairs belong together.

    Args:
        codes: of the group of each pair, numbers of `labels`; shape (n,).
        labels: of all groups, also of those that have no pair left.
    """

    codes: np.ndarray
    labels: tuple[Label, ...]

    @property
    def several(self) -> bool:
        """Whether there is more than one group, so that one can be left out."""
        return bool((self.codes != self.codes[0]).any())

    def take(self, rows: np.ndarray) -> Groups:
        """Those of these pairs."""
        return replace(self, codes=self.codes[rows])

    def joined(self, more: Groups) -> Groups:
        """These and those of further pairs: equal labels are one group."""
        numbers = {label: code for code, label in enumerate(self.labels)}
        codes = [numbers.setdefault(more.labels[code], len(numbers)) for code in more.codes]
        return Groups(np.concatenate([self.codes, codes]).astype(int), tuple(numbers))


def read_groups(groups: object, n: int) -> Groups | None:
    """The group of each pair, numbered in order of appearance, or None.

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
    codes: dict[Label, int] = {}
    found = [codes.setdefault(_label(label), len(codes)) for label in labels.tolist()]
    return Groups(np.array(found), tuple(codes))


def check_groups_present(groups: object, known: Groups | None) -> None:
    """Raise if new pairs lack groups that the examples have, or have some where those had none.

    Args:
        groups: of the new pairs.
        known: those of the examples.
    """
    if groups is None and known is not None:
        raise problem(
            "new pairs came without groups",
            "a label for each, as the examples have",
            "Give groups= with one label for each new pair: that of a group of the examples, or a "
            "new one.",
        )
    if groups is not None and known is None:
        raise problem(
            "new pairs came with groups",
            "none, since the examples have none",
            "Leave them out, or give groups= with the examples too.",
        )


def _labels(groups: object) -> np.ndarray:
    given: Any = groups
    try:
        found = detached(given)
    except ValueError:  # ragged
        return np.empty((0,))
    return found.astype("datetime64[us]") if found.dtype.kind == "M" else found


def _label(label: object) -> Label:
    """A label as text or a number; dates as text."""
    if isinstance(label, date) and not isinstance(label, datetime):
        label = datetime(label.year, label.month, label.day)
    return label if isinstance(label, str | int | float) else str(label)


def _is_missing(label: object) -> bool:
    return not isinstance(label, str) and str(label) in ("None", "nan", "NaT", "<NA>")
