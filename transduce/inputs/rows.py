"""Rows of v and u: as many in both, in the same order, and complete."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from .messages import MOST_NAMED, TURN, caution, named, problem
from .sources import Source

FEW_MISSING = 0.2  # share of rows: a smaller difference looks like missing rows


def check_counts(v: Source, u: Source, placed: Collection[int] = ()) -> None:
    """Raise unless v and u have the same number of rows.

    Args:
        v: inputs, or the table of parameters.
        u: outputs.
        placed: numbers of positions that the user gave: functions of so many points have no
            swapped rows and columns.
    """
    if v.shape[0] == u.shape[0]:
        return
    noun = "functions" if v.name == "v" else "rows"
    raise problem(
        f"{v.name} holds {v.shape[0]} {noun} and u {u.shape[0]}",
        f"the same number, u[i] being the image of {v.name}[i]",
        _partners(v, u, placed),
        f"Drop those that have no partner. {TURN}",
    )


def _partners(v: Source, u: Source, placed: Collection[int]) -> str:
    """What to do about unequal numbers of rows. Code that it names gives equal numbers."""
    drop = "Drop those that have no partner."
    for one, other in ((v, u), (u, v)):
        if len(one.shape) == 1 and len(other.shape) > 1 and other.shape[0] == 1:
            return f"For a single pair, give {one.one}."
    if len(v.shape) == len(u.shape) == 1:
        return (
            f"For a single pair, give {v.one} and {u.one}. Otherwise, drop those without partner."
        )
    swapped = [s for s in (v, u) if s.transposes and s.shape[1] not in placed]
    if len(swapped) == 2 and v.shape[1] == u.shape[1]:  # neither looks transposed on its own
        few = abs(v.shape[0] - u.shape[0]) <= FEW_MISSING * max(v.shape[0], u.shape[0])
        if few or v.shape[1] in (v.shape[0], u.shape[0]):
            return drop
        return (
            f"If columns are functions, give {v.transposed} and {u.transposed}. Otherwise, drop "
            "those that have no partner."
        )
    fits = [s for s in swapped if s.shape[1] == (u if s is v else v).shape[0]]
    if fits:
        code = " or ".join(s.transposed for s in fits)
        return f"Rows must be functions: {fits[0].name} looks transposed; give {code}."
    return drop


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
            f"row {place} is labelled {one[place]!r} in {v.name} and {other[place]!r} in u",
            f"the same order of rows, u[i] being the image of {v.name}[i]",
            f"Give u.loc[{v.name}.index], or u.to_numpy() if the order is right."
            if pandas
            else "Sort both by their labels, or give arrays without labels.",
            "Write the rows of both files in the same order.",
        )


@dataclass(frozen=True, eq=False)
class ArgumentValues:
    """Values that must be complete.

    Args:
        name: of the argument.
        values: shape (n, ...).
        columns: names of the values of a row, if these are columns of a table; else ().
    """

    name: str
    values: np.ndarray
    columns: Sequence[str] = ()

    @property
    def gaps(self) -> np.ndarray:
        """Whether each value is missing or infinite, shape (n, values of a row)."""
        found: np.ndarray = ~np.isfinite(self.values.reshape(len(self.values), -1))
        return found

    @property
    def whole(self) -> np.ndarray:
        """Whether each row is complete."""
        return np.logical_not(np.any(self.gaps, axis=1))

    @property
    def rows(self) -> np.ndarray:
        """The numbers of rows with gaps."""
        return np.flatnonzero(~self.whole)

    def described(self) -> str:
        """Where the gaps are."""
        columns = self.named(np.any(self.gaps, axis=0))
        return f"{self.name} in {named(self.rows.tolist())}" + (f", {columns}" if columns else "")

    def named(self, which: np.ndarray) -> str:
        """These columns in words; "" if the values are no columns."""
        shown = [name for name, one in zip(self.columns, which, strict=False) if one]
        return named(list(dict.fromkeys(shown)), "column") if shown else ""


def complete_rows(parts: Sequence[ArgumentValues], missing: str, notes: list[str]) -> np.ndarray:
    """The numbers of rows without missing values.

    Args:
        parts: v, u and parameters.
        missing: "raise" or "drop".
        notes: the notes of the report, to which a warning is added.
    """
    n = len(parts[0].values)
    found = [part for part in parts if len(part.rows)]
    if not found:
        return np.arange(n)
    bad = np.unique(np.concatenate([part.rows for part in found]))
    where = "; ".join(part.described() for part in found)
    if len(bad) == n:
        raise problem(
            f"all {n} pairs have missing or infinite values ({where})",
            "at least one complete pair",
            _without_empty(found),
        )
    if missing == "raise":
        raise problem(
            f"missing or infinite values: {where} ({len(bad)} of {n} pairs)",
            _complete_values(found),
            f"Give missing='drop' to leave these pairs out, or {_filled(found)}.",
        )
    noun = "1 pair" if len(bad) == 1 else f"{len(bad)} pairs"
    caution(f"left out {noun} of {n} with missing or infinite values: {where}.", notes)
    return np.setdiff1d(np.arange(n), bad)


def check_query_rows(parts: Sequence[ArgumentValues], sources: Sequence[Source]) -> None:
    """Raise if queries have missing values.

    Args:
        parts: v and parameters.
        sources: the same, as the user gave them.
    """
    found = [part for part in parts if len(part.rows)]
    if found:
        bad = np.unique(np.concatenate([part.rows for part in found])).tolist()
        rows = bad if len(bad) <= MOST_NAMED else "rows"
        codes = " and ".join(source.without.format(rows=rows) for source in sources)
        raise problem(
            "queries have missing or infinite values: "
            f"{'; '.join(part.described() for part in found)} ({len(bad)} of "
            f"{len(found[0].values)})",
            _complete_values(found),
            f"Leave those out, {codes}, or {_filled(found)}.",
            f"Remove these rows from the file, or {_filled(found)}.",
        )


def _complete_values(parts: Sequence[ArgumentValues]) -> str:
    table = all(part.columns for part in parts)
    return "a finite number or a category in each row" if table else "finite numbers"


def _filled(parts: Sequence[ArgumentValues]) -> str:
    return "fill the gaps" if all(p.columns for p in parts) else "fill gaps by interpolation"


def _without_empty(parts: Sequence[ArgumentValues]) -> str:
    """What to do if no row is complete."""
    for part in parts:
        empty = np.all(part.gaps, axis=0)
        columns = part.named(empty)
        if columns and not empty.all():
            return f"Leave out {columns} of {part.name}, missing in all rows."
        if empty.any() and not empty.all():
            return "Leave out points that are missing in all rows, or fill gaps by interpolation."
    return f"{_filled(parts).capitalize()} of some rows."
