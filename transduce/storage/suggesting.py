"""Which variables of files look like v and u, and the options of `transduce regress` for them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from ..inputs.covariates import check_parameters_present
from ..types import TransduceError
from .choosing import opened_pairs, opened_queries
from .columns import label_of
from .formats import READ_ONLY, suffix_of
from .naming import pair_names, usual
from .open_file import Description, OpenFile, as_vector
from .opening import opened
from .roles import ALL, Choice, input_roles, pair_roles

SMOOTHER = 0.1  # mean squared steps along functions, as a share of those between functions


@dataclass(frozen=True)
class Suggestion:
    """Files, and the options with which to read them.

    Args:
        examples: the file of pairs, or of inputs.
        choice: names of variables, the file of outputs, and whether functions are columns.
        queries: the file of queries, or None.
        missing: whether values are missing in v, u or parameters.
        guessed: whether names were guessed from shapes.
        parameters: the names of the columns that are parameters.
    """

    examples: Path
    choice: Choice
    queries: Path | None = None
    missing: bool = False
    guessed: bool = False
    parameters: tuple[str, ...] = ()

    def command(self) -> str:
        """The command to run: a report, or answers if there are queries."""
        words = ["transduce", "regress", "--examples", str(self.examples)]
        options = {
            "--outputs": self.choice.outputs,
            "--v": self.choice.v,
            "--u": self.choice.u,
            "--parameters": ",".join(self.choice.parameters) or None,
        }
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
    queries = rest[0] if rest else None
    with opened(first) as file:
        choice, guessed = (None, False) if _are_halves(file, queries) else _pair(file)
        if choice is None:
            choice, guessed = _outputs_among_numbers(file, queries)
        if choice is None and not rest:
            pair_names(file, None, None)  # says what is missing
            raise TransduceError(f"{first} has no v and u. Name them (--v, --u).")
    if choice is None:
        choice, queries = _two_files(first, rest[0]), None
        guessed = choice.columns or bool(choice.parameters)
    missing, columns, functions, count = _look(first, choice)
    if queries is not None:
        with opened_queries(queries, choice, columns, functions) as file:
            check_parameters_present(file.parameters(), count)
            if "v" in file.names:
                file.fetch("v")
    return Suggestion(first, choice, queries, missing, guessed, columns)


def _pair(file: OpenFile) -> tuple[Choice | None, bool]:
    """How to read a file of pairs, and whether that is a guess; None if it holds no pairs."""
    try:
        roles = pair_roles(file, Choice())
        if roles.v is None or isinstance(roles.u, tuple):
            return Choice(), bool(roles.notes)
        v, u = (file.described(str(name)) for name in (roles.v, roles.u))
        columns = _in_columns(file, v, u)
        return Choice(columns=columns), columns or _is_of_numbers(file)
    except (TransduceError, KeyError):
        pass
    if _is_of_numbers(file) or {"u", "U"} & set(file.names):  # such as a file of answers
        return None, False
    studied = file.singles and (file.functions or not file.layout)
    if studied and (largest := _largest(file)) is not None:
        return Choice(u=largest), True
    for one, other in combinations(file.candidates(), 2):
        for columns in (False, True):
            if _matches(one, other, columns):
                columns = columns or _in_columns(file, one, other)
                return Choice(one.name, other.name, columns=columns), True
    return None, False


def _is_of_numbers(file: OpenFile) -> bool:
    """Whether a file is a table of single columns."""
    return file.layout == "wide" and not file.functions


def _are_halves(file: OpenFile, second: Path | None) -> bool:
    """Whether a table of single columns has its outputs in a second file, of as many rows.

    Args:
        file: the table.
        second: the other file, or None.
    """
    if second is None or file.layout != "wide" or file.functions or not file.singles:
        return False
    with opened(second) as other:
        rows = {one.shape[0] for one in file.candidates() + other.candidates()}
        return len(rows) == 1 and not set(file.singles) & set(other.names)


def _largest(file: OpenFile) -> str | None:
    """The variable with most points in a file that has parameters too."""
    curves = [one for one in file.candidates() if len(one.shape) > 1]
    return max(curves, key=lambda one: one.shape[-1]).name if curves else None


def _outputs_among_numbers(file: OpenFile, second: Path | None) -> tuple[Choice | None, bool]:
    """Outputs in a table of single columns: those that queries lack, or else the last.

    Args:
        file: the table.
        second: another file, which may hold queries or the outputs.
    """
    if file.functions or len(file.singles) < 2:
        return None, False
    text = [one for one in file.singles if one in file.names and not file.described(one).numeric]
    numbers = [one for one in file.singles if one not in text]
    if second is None or not numbers:
        last = numbers[-1] if numbers else ""
        guess = last if last in file.names else label_of(last).name
        return (Choice(u=guess), True) if guess else (None, False)
    with opened(second) as other:
        known = {*other.names, *other.singles}
    lacking = [one for one in numbers if one not in known]
    found = lacking and known & set(file.singles)
    return (Choice(u=",".join(lacking)), True) if found else (None, False)


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
    if v.dims:
        return False
    x = usual(file, "x")
    if x is None:
        return all(_is_smooth_down(np.asarray(file.fetch(one.name))) for one in (v, u))
    points = np.asarray(as_vector(file.fetch(x))).shape
    return points == v.shape[:1] and points != v.shape[1:]


def _is_smooth_down(values: np.ndarray) -> bool:
    """Whether values change little from row to row and much from column to column, as those of
    functions in columns do."""
    if min(values.shape) < 3 or values.dtype.kind not in "fiu":
        return False
    down, across = (np.nanmean(np.square(np.diff(values, axis=axis))) for axis in (0, 1))
    return bool(down < SMOOTHER * across)


def _two_files(first: Path, second: Path) -> Choice:
    """How to read inputs from one file and outputs from another."""
    choice = Choice(outputs=second)
    with opened(first) as file:
        roles = input_roles(file, choice)
        if roles.v is not None and roles.v == file.whole and len(file.singles) > 1:
            choice = replace(choice, parameters=ALL)  # columns with names are no points of curves
    shapes = _shapes(first, choice)
    for columns in (False, True):
        if len({shape[-columns] for shape in shapes.values()}) == 1:
            return replace(choice, columns=columns)
    held = [f"{name} of shape {shape}" for name, shape in shapes.items()]
    raise TransduceError(
        f"{first} holds {held[0]} and {second} {held[1]}; expected as many rows in both. Drop what "
        "has no partner."
    )


def _shapes(path: Path, choice: Choice) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs and outputs."""
    with opened_pairs(path, choice) as file:
        inputs = file.fetch("v") if "v" in file.names else file.parameters()
        name = "v" if "v" in file.names else "parameters"
        return {name: tuple(getattr(inputs, "shape", ())), "u": tuple(file.fetch("u").shape)}


def _look(path: Path, choice: Choice) -> tuple[bool, tuple[str, ...], bool, int | None]:
    """Whether values are missing, which columns are parameters, whether there is v, and how many
    parameters there are, or None."""
    with opened_pairs(path, choice) as file:
        parameters = file.parameters()
        has_v = "v" in file.names or parameters is None
        given = [parameters, *(file.fetch(name) for name in ("vu" if has_v else "u"))]
        count = None if parameters is None else int(np.prod(parameters.shape[1:]))
        return any(map(_has_gaps, given)), file.singles, has_v, count


def _has_gaps(values: object) -> bool:
    """Whether a value is missing or infinite, or a category is missing."""
    if values is None:
        return False
    array = np.asarray(values)
    if array.dtype.kind != "O":
        return array.dtype.kind == "f" and not bool(np.isfinite(array).all())
    cells = array.ravel().tolist()
    return any(cell is None or (isinstance(cell, float) and cell != cell) for cell in cells)


def _free(queries: Path) -> Path:
    """A file of answers that does not exist yet."""
    suffix = ".npz" if suffix_of(queries) in READ_ONLY else queries.suffix
    names = (Path(f"answers{i or ''}{suffix}") for i in range(1000))
    return next(path for path in names if not path.exists())
