"""Notes about examples, for the report; those that need the user's attention are warnings too."""

from __future__ import annotations

from collections.abc import Collection

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
from .layouts import FEW
from .messages import caution, named
from .sources import Source

FEW_REPEATS = 10  # a smaller share of the pairs than one in so many hardly matters


def notes_of_reading(
    sources: tuple[Source, Source], v: Functions, u: Functions, unclear: bool
) -> list[str]:
    """Sentences about how the arrays were read.

    Args:
        sources: v and u as the user gave them.
        v: inputs.
        u: outputs.
        unclear: whether the user has not said what the axes mean.
    """
    notes: list[str] = []
    for functions, source in zip((v, u), sources, strict=True):
        notes += _of_reading(functions, source, unclear)
    _of_labels(*sources, notes)
    return notes


def notes_of_pairs(
    v: Functions,
    u: Functions,
    parameters: np.ndarray | None,
    groups: Groups | None,
    sources: tuple[Source, Source] | None = None,
    known: Collection[str] | None = (),
) -> list[str]:
    """Sentences about the examples together.

    Args:
        v: inputs.
        u: outputs.
        parameters: of each pair, or None.
        groups: of the pairs, or None.
        sources: v and u as the user gave them; None if they came in parts.
        known: sentences that give no further warning; None if none gives one.
    """
    notes, serious = [], []
    single, constant = len(v) == 1, is_constant(v.array) and parameters is None
    if single:
        serious.append("There is one example: the answer to every query is its u.")
    elif constant:
        serious.append("All v are equal: answers cannot depend on v. Check that v was read right.")
    if not single and is_constant(u.array):
        notes.append("All u are equal: answers are constant. Check that u was read right.")
    if not (single or constant):
        serious += _of_conflicts(v, u, parameters)
        serious += _of_repeats(v, u, parameters) if groups is None else []
    swapped = [] if sources is None or single else _of_swapped(v, u, sources)
    if not (swapped or single) and groups is None:
        serious += _of_order(v, u)
    for text in serious:
        if known is not None and text not in known:
            caution(text)
    return [*notes, *serious, *swapped]


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
            f"{v.name} and u are paired by place, and their labels differ: row {i} is {one[i]!r} "
            f"in {v.name} and {other[i]!r} in u. To pair by label, give the rows that both have.",
            notes,
        )


def _of_reading(functions: Functions, source: Source, unclear: bool) -> list[str]:
    """Notes about how an array was read. unclear: as above."""
    layout, name = functions.layout, source.name
    notes = []
    if layout.points > MANY_POINTS:
        notes.append(f"{name} has {layout.points} points: time and memory grow with them.")
    if layout.kind == "field" and len(layout.shape) == 2 and unclear:
        a, b = layout.shape
        other = f"channels={a} reads {a} channels of {b} points"
        if b < FEW <= a:
            other = f"if these are {b} channels of {a} points, give np.moveaxis({name}, -1, 1)"
        notes.append(f"{name} is read as fields of {a} x {b}; {other}.")
    if layout.grid is not None and source.names and not layout.grid.given:
        notes.append(
            f"The columns of {name} are names, not positions: they are read as points of a uniform "
            f"grid. Give x_{name} for others."
        )
    return notes


def _of_conflicts(v: Functions, u: Functions, parameters: np.ndarray | None) -> list[str]:
    """A warning of equal v with different u."""
    keys = v.array.reshape(len(v), -1)
    if parameters is not None:
        keys = np.concatenate([keys, parameters], axis=1)
    found = conflicting_rows(keys, u.array)
    if not found:
        return []
    return [
        f"equal v with different u, in {named([f'{i}/{j}' for i, j in found], 'row pair')}: an "
        "operator has one answer to each v, so these are averaged. If something else differs "
        "between them, give it as parameters=."
    ]


def _of_repeats(v: Functions, u: Functions, parameters: np.ndarray | None) -> list[str]:
    """A warning if many pairs stand there twice."""
    parts = [v.array, u.array] if parameters is None else [v.array, u.array, parameters]
    rows = np.concatenate([part.reshape(len(v), -1) for part in parts], 1)
    first: dict[bytes, int] = {}
    repeats = [i for i, row in enumerate(rows) if first.setdefault(row.tobytes(), i) != i]
    if FEW_REPEATS * len(repeats) < len(v):
        return []
    return [
        f"{named(repeats)} of v and u repeat others exactly: errors that leave out single pairs "
        "are too small, and so are bands. Leave the repeats out."
    ]


def _of_swapped(v: Functions, u: Functions, sources: tuple[Source, Source]) -> list[str]:
    """A note about arrays that look transposed."""
    one, other = v.array[:, 0], u.array[:, 0]
    if not (_may_be_swapped(v, u, sources) and looks_swapped(one) and looks_swapped(other)):
        return []
    return [
        "Columns of v and u are smooth and rows are not: if there are "
        f"{v.array.shape[2]} functions of {len(v)} points, give {sources[0].transposed} and "
        f"{sources[1].transposed}."
    ]


def _of_order(v: Functions, u: Functions) -> list[str]:
    """A warning of correlated neighbours."""
    one, other = v.array, u.array
    if v.layout.kind == "numbers" and is_sweep(one):
        return []
    if not (neighbours_correlated(one) and neighbours_correlated(other)):
        return []
    return [
        "neighbouring pairs are much more alike than others, as in time series, so that errors "
        "estimated by leaving out single pairs are too small. Give groups= with one label for "
        "each series, year or run; of a single series, for each part of it, such as "
        "np.arange(len(v)) // 10."
    ]


def _may_be_swapped(v: Functions, u: Functions, sources: tuple[Source, Source]) -> bool:
    """Whether v and u could be transposed: tables of functions of equal shape, without x."""
    placed = any(f.grid is not None and f.grid.given for f in (v, u))
    tables = all(source.transposes for source in sources) and sources[0].name == "v"
    return tables and not placed and v.array.shape == u.array.shape
