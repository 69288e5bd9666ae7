"""Notes about examples, for the report; those that need the user's attention are warnings too."""

from __future__ import annotations

import numpy as np

from .checks import (
    MANY_POINTS,
    conflicting_rows,
    is_constant,
    is_sweep,
    looks_swapped,
    neighbours_correlated,
)
from .covariates import Groups
from .functions import Functions
from .messages import caution, named
from .sources import Source


def notes_of(
    v: Functions,
    u: Functions,
    parameters: np.ndarray | None,
    groups: Groups | None,
    sources: tuple[Source, Source],
) -> list[str]:
    """Sentences about the examples.

    Args:
        v: inputs.
        u: outputs.
        parameters: of each pair, or None.
        groups: of the pairs, or None.
        sources: v and u as the user gave them.
    """
    notes: list[str] = []
    for functions, source in zip((v, u), sources, strict=True):
        notes += _of_reading(functions, source)
    _of_labels(*sources, notes)
    if len(v) == 1:
        return [*notes, "There is one example: the answer to every query is its u."]
    constant = is_constant(v.array)
    if constant and parameters is None:
        notes.append("All v are equal: answers cannot depend on v. Check that v was read right.")
    if is_constant(u.array):
        notes.append("All u are equal: answers are constant. Check that u was read right.")
    if not (constant and parameters is None):
        _of_conflicts(v, u, parameters, notes)
    _of_order(v, u, groups, notes)
    return notes


def _of_labels(v: Source, u: Source, notes: list[str]) -> None:
    """A note if half of the labels of rows are common to v and u, but at other places."""
    one, other = v.template.labels(), u.template.labels()
    if one is None or other is None or one == other:
        return
    try:
        common = set(one) & set(other)
    except TypeError:  # labels that cannot be hashed
        return
    moved = [i for i, label in enumerate(other) if label in common and one[i] != label]
    if 2 * len(moved) >= len(other):
        i = moved[0]
        caution(
            f"v and u are paired by place, and their labels differ: row {i} is {one[i]!r} in v and "
            f"{other[i]!r} in u. To pair by label, give the rows that both have.",
            notes,
        )


def _of_reading(functions: Functions, source: Source) -> list[str]:
    """Notes about how an array was read."""
    layout, name = functions.layout, source.name
    notes = []
    if layout.points > MANY_POINTS:
        notes.append(f"{name} has {layout.points} points: time and memory grow with them.")
    if layout.kind == "field" and len(layout.shape) == 2:
        a, b = layout.shape
        notes.append(
            f"{name} is read as fields of {a} x {b}; channels={a} reads {a} channels of {b} points."
        )
    if layout.grid is not None and source.names and not layout.grid.given:
        notes.append(
            f"The columns of {name} are names, not positions: they are read as points of a uniform "
            f"grid. Give x_{name} for others."
        )
    return notes


def _of_conflicts(
    v: Functions, u: Functions, parameters: np.ndarray | None, notes: list[str]
) -> None:
    """Warn about equal v with different u."""
    keys = v.array.reshape(len(v), -1)
    if parameters is not None:
        keys = np.concatenate([keys, parameters], axis=1)
    found = conflicting_rows(keys, u.array)
    if found:
        caution(
            f"equal v with different u, in {named([f'{i}/{j}' for i, j in found], 'row pair')}: an "
            "operator has one answer to each v, so these are averaged. If something else differs "
            "between them, give it as parameters=.",
            notes,
        )


def _of_order(v: Functions, u: Functions, groups: Groups | None, notes: list[str]) -> None:
    """Note arrays that look transposed, warn about correlated neighbours."""
    one, other = v.array, u.array
    flat = one.shape[1] == other.shape[1] == 1 and one.shape == other.shape
    if flat and looks_swapped(one[:, 0]) and looks_swapped(other[:, 0]):
        notes.append(
            "Columns of v and u are smooth and rows are not: if there are "
            f"{one.shape[2]} functions of {len(v)} points, give v.T and u.T."
        )
        return
    if groups is not None:
        return
    sweep = v.layout.kind == "numbers" and is_sweep(one)
    if not sweep and neighbours_correlated(one) and neighbours_correlated(other):
        caution(
            "neighbouring pairs are much more alike than others, as in time series, so that "
            "errors estimated by leaving out single pairs are too small. Give groups= with one "
            "label for each series, year or run.",
            notes,
        )
