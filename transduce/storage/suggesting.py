"""Which variables of files look like v and u, and the options of `transduce regress` for them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from ..types import TransduceError
from .choosing import Choice, opened_pairs, opened_queries, pair_names, single_name
from .formats import READ_ONLY, suffix_of
from .open_file import Description, OpenFile, as_vector
from .opening import opened


@dataclass(frozen=True)
class Suggestion:
    """Files, and the options with which to read them.

    Args:
        examples: the file of pairs, or of inputs.
        choice: names of variables, the file of outputs, and whether functions are columns.
        queries: the file of queries, or None.
        missing: whether values are missing in v or u.
        guessed: whether names were guessed from shapes.
    """

    examples: Path
    choice: Choice
    queries: Path | None = None
    missing: bool = False
    guessed: bool = False

    def command(self) -> str:
        """The command to run: a report, or answers if there are queries."""
        words = ["transduce", "regress", "--examples", str(self.examples)]
        options = {"--outputs": self.choice.outputs, "--v": self.choice.v, "--u": self.choice.u}
        words += [word for flag, value in options.items() if value is not None
                  for word in (flag, str(value))]  # fmt: skip
        words += ["--columns"] if self.choice.columns else []
        words += ["--missing", "drop"] if self.missing else []
        if self.queries is not None:
            words += ["--queries", str(self.queries), "--out", str(_free(self.queries))]
        return shlex.join([*words, "--report"])


def suggestion(paths: Sequence[Path]) -> Suggestion:
    """How to read one file, or two: pairs and queries, or inputs and outputs."""
    first, *rest = paths
    with opened(first) as file:
        choice, guessed = _pair(file)
    if choice is None and not rest:
        with opened(first) as file:
            pair_names(file, None, None)  # says what is missing
        raise TransduceError(f"{first} has no v and u. Name them (--v, --u).")
    if choice is None:
        choice, queries = _two_files(first, rest[0]), None
        guessed = choice.columns
    else:
        queries = rest[0] if rest else None
    if queries is not None:
        with opened_queries(queries, choice) as file:
            file.fetch("v")
    return Suggestion(first, choice, queries, _has_gaps(first, choice), guessed)


def _pair(file: OpenFile) -> tuple[Choice | None, bool]:
    """How to read a file of pairs, and whether that is a guess; None if it holds no pairs."""
    try:
        v, u = pair_names(file, None, None)
        found = {name: file.described(name) for name in (v, u)}
        return Choice(columns=_in_columns(file, *found.values())), False
    except (TransduceError, KeyError):
        pass
    if file.whole is not None or {"u", "U"} & set(file.names):  # such as a file of answers
        return None, False
    for one, other in combinations(file.candidates(), 2):
        for columns in (False, True):
            if _matches(one, other, columns):
                columns = columns or _in_columns(file, one, other)
                return Choice(one.name, other.name, columns=columns), True
    return None, False


def _matches(one: Description, other: Description, columns: bool) -> bool:
    """Whether two variables have the same number of functions."""
    axis = -1 if columns else 0
    return one.shape[axis] == other.shape[axis] > 1


def _in_columns(file: OpenFile, v: Description, u: Description) -> bool:
    """Whether functions are columns: their numbers agree there alone, or positions do."""
    if len(v.shape) != 2 or len(u.shape) != 2:
        return False
    if not _matches(v, u, False):
        return _matches(v, u, True)
    if "x" not in file.names or v.dims:
        return False
    points = np.asarray(as_vector(file.fetch("x"))).shape
    return points == v.shape[:1] and points != v.shape[1:]


def _two_files(first: Path, second: Path) -> Choice:
    """How to read inputs from one file and outputs from another."""
    with opened(first) as v, opened(second) as u:
        found = (v.described(single_name(v, None, "v")), u.described(single_name(u, None, "u")))
    for columns in (False, True):
        if found[0].shape[-columns] == found[1].shape[-columns]:
            return Choice(outputs=second, columns=columns)
    raise TransduceError(
        f"{first} holds {found[0].name} of shape {found[0].shape} and {second} {found[1].name} of "
        f"shape {found[1].shape}; expected as many rows in both. Drop what has no partner."
    )


def _has_gaps(path: Path, choice: Choice) -> bool:
    with opened_pairs(path, choice) as file:
        arrays = (np.asarray(file.fetch(name)) for name in "vu")
        return any(a.dtype.kind == "f" and not np.isfinite(a).all() for a in arrays)


def _free(queries: Path) -> Path:
    """A file of answers that does not exist yet."""
    suffix = ".npz" if suffix_of(queries) in READ_ONLY else queries.suffix
    names = (Path(f"answers{i or ''}{suffix}") for i in range(1000))
    return next(path for path in names if not path.exists())
