"""Rows of v and u: as many in both, in the same order, and complete."""

from __future__ import annotations

import numpy as np

from .messages import MOST_NAMED, caution, named, problem
from .sources import Source

FEW_MISSING = 0.2  # share of rows: a smaller difference looks like missing rows


def check_counts(v: Source, u: Source) -> None:
    """Raise unless v and u have the same number of rows."""
    if v.shape[0] == u.shape[0]:
        return
    remedy = "Drop those that have no partner."
    same_columns = len(v.shape) == len(u.shape) == 2 and v.shape[1] == u.shape[1]
    if same_columns and abs(v.shape[0] - u.shape[0]) > FEW_MISSING * max(v.shape[0], u.shape[0]):
        remedy = f"Rows must be functions: give {v.transposed} and {u.transposed}. {remedy}"
    for one, other in ((v, u), (u, v)):
        if len(one.shape) == 2 and one.shape[1] == other.shape[0]:
            remedy = f"Rows must be functions: {one.name} looks transposed; give {one.transposed}."
        if len(one.shape) == 1 and len(other.shape) == 2 and other.shape[0] == 1:
            remedy = f"For a single pair, give {one.one}."
    raise problem(
        f"v holds {v.shape[0]} functions and u {u.shape[0]}",
        "the same number, u[i] being the image of v[i]",
        remedy,
    )


def check_row_labels(v: Source, u: Source) -> None:
    """Raise if v and u have the same labels of rows in another order: they are paired by place."""
    one, other = v.template.labels(), u.template.labels()
    if one is None or other is None or one == other:
        return
    try:
        shuffled = len(set(one)) == len(one) and set(one) == set(other)
    except TypeError:  # labels that cannot be hashed
        return
    if shuffled:
        place = next(i for i, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
        pandas = v.template.kind == u.template.kind == "pandas"
        raise problem(
            f"row {place} is labelled {one[place]!r} in v and {other[place]!r} in u",
            "the same order of rows, u[i] being the image of v[i]",
            "Give u.loc[v.index], or u.to_numpy() if the order is right."
            if pandas
            else "Sort both by their labels, or give arrays without labels.",
        )


def missing_rows(values: np.ndarray) -> np.ndarray:
    """The numbers of rows that hold NaN or infinite values."""
    return np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))


def complete_rows(arrays: dict[str, np.ndarray], missing: str, notes: list[str]) -> np.ndarray:
    """The numbers of rows without missing values.

    Args:
        arrays: v, u and parameters by name, each of shape (n, ...).
        missing: "raise" or "drop".
        notes: the notes of the report, to which a warning is added.
    """
    n = len(next(iter(arrays.values())))
    found = {name: rows for name, a in arrays.items() if len(rows := missing_rows(a))}
    if not found:
        return np.arange(n)
    bad = np.unique(np.concatenate(list(found.values())))
    where = "; ".join(f"{name} in {named(rows.tolist())}" for name, rows in found.items())
    if len(bad) == n:
        raise problem(
            f"all {n} pairs have missing or infinite values ({where})",
            "at least one complete pair",
            "Leave out points that are missing in all rows, or fill gaps by interpolation.",
        )
    if missing == "raise":
        raise problem(
            f"missing or infinite values: {where} ({len(bad)} of {n} pairs)",
            "finite numbers",
            "Give missing='drop' to leave these pairs out, or fill gaps by interpolation.",
        )
    noun = "1 pair" if len(bad) == 1 else f"{len(bad)} pairs"
    caution(f"left out {noun} of {n} with missing or infinite values: {where}.", notes)
    return np.setdiff1d(np.arange(n), bad)


def check_query_rows(values: np.ndarray, name: str, without: str) -> None:
    """Raise if queries have missing values.

    Args:
        values: shape (m, ...).
        name: "v" or "parameters".
        without: code that leaves out {rows} of v.
    """
    bad = missing_rows(values)
    if len(bad):
        rows = bad.tolist() if len(bad) <= MOST_NAMED else "rows"
        raise problem(
            f"{name} of the queries has missing or infinite values in {named(bad.tolist())} "
            f"({len(bad)} of {len(values)})",
            "finite numbers",
            f"Leave those out, {without.format(rows=rows)}, or fill gaps by interpolation.",
        )
