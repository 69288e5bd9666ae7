"""Which variables of a file are the inputs v, the outputs u, and the parameters.

A table may hold functions, which have many columns, and single columns, like mass or damping:

    v, u and single columns       single columns are left out, unless the user names them
    u and single columns          the single columns are the parameters, and the only inputs
    v and one single column       the single column is u
    single columns and --u y      the others are the parameters

A single function that is called neither v nor u is v if it stands first, and u otherwise. Other
formats hold parameters as an array of that name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..files import PathLike
from ..inputs.messages import few
from ..types import TransduceError
from .columns import label_of, without_unit
from .naming import pair_names, several, single_name, usual
from .open_file import MissingVariableError, OpenFile
from .single_columns import CURVE

ALL = ("all",)
PARAMETERS = "parameters"
Outputs = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Choice:
    """How the user wants files to be read.

    Args:
        v: the name of the variable of inputs, or None.
        u: the name of the variable of outputs, or names of columns with commas between, or None.
        outputs: the file of the outputs, if the file of examples has the inputs alone.
        columns: whether functions are the columns of arrays, and not the rows.
        parameters: the names of the columns that are parameters, or ("all",); default: those of
            files without v.
    """

    v: str | None = None
    u: str | None = None
    outputs: PathLike | None = None
    columns: bool = False
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Roles:
    """The variables of a file that are read.

    Args:
        v: the variable of inputs; None if parameters are the only inputs.
        u: the variable of outputs, or the columns of a few numbers; None in files of inputs.
        parameters: the columns that are parameters. An array of that name needs no mention.
        notes: what may not be as the user expects.
    """

    v: str | None = None
    u: Outputs = None
    parameters: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def pair_roles(file: OpenFile, choice: Choice) -> Roles:
    """The roles in a file of pairs."""
    if file.layout == "wide":
        return _with_parameters(file, choice, _table_roles(file, choice))
    _check_has_columns(file, choice)
    u = choice.u or usual(file, "u")
    if u is not None and _is_study_of_arrays(file, choice.v, (u,)):
        return _with_frame(file, choice, Roles(None, u))
    return _with_frame(file, choice, Roles(*pair_names(file, choice.v, choice.u)))


def _table_roles(file: OpenFile, choice: Choice) -> Roles:
    """The inputs and outputs of a table: by name, then by the order of functions."""
    v = choice.v or usual(file, "v")
    u = output_columns(file, choice.u or usual(file, "u"))
    free = [name for name in file.functions if name not in (v, u)]
    notes: tuple[str, ...] = ()
    _check_not_labels_alone(file, choice, v)
    if v is None and u is None and len(free) == 1 and (file.singles or choice.parameters):
        u, notes = _function_of_a_study(file, free[0], choice)
    elif len(free) == (v is None) + (u is None):
        v, u = v or free.pop(0), u or free.pop(0)
    free = [name for name in free if name != u]
    if v is None and u is not None and not free and _has_inputs(file, choice, u):
        return Roles(None, u, notes=notes)
    if v is not None and isinstance(u, tuple):
        return Roles(v, u)
    if u is None and not file.functions and _has_text(file):
        raise several(file)
    v, name = pair_names(file, v, _one(file, u))
    short = v in file.names and v not in (*file.functions, *file.singles)
    if short and name in file.singles:
        return Roles(None, name)  # such as p1, p2, p3 and y
    numbers = v in file.functions and name in file.names
    return Roles(v, output_columns(file, name) if numbers else name)


def input_roles(file: OpenFile, choice: Choice) -> Roles:
    """The roles in a file of inputs, whose outputs are in another file."""
    if file.layout != "wide":
        _check_has_columns(file, choice)
        others = [one.name for one in file.candidates()]
        if _is_study_of_arrays(file, choice.v, others) and not set(others) - {"u", "U"}:
            return _with_frame(file, choice, Roles())
        return _with_frame(file, choice, Roles(single_name(file, choice.v, "v")))
    v, numbers = choice.v or usual(file, "v"), len(file.singles) < CURVE
    chosen = numbers or bool(choice.parameters) or _has_text(file)
    if v is None and not file.functions and file.singles and chosen:
        return _with_parameters(file, choice, Roles())
    return _with_parameters(file, choice, Roles(single_name(file, choice.v, "v")))


def output_roles(file: OpenFile, choice: Choice) -> Roles:
    """The roles in a file of outputs."""
    if choice.u is not None and "," in choice.u:
        return Roles(u=output_columns(file, choice.u))
    return Roles(u=output_columns(file, single_name(file, choice.u, "u")))


def query_roles(file: OpenFile, choice: Choice, wanted: Sequence[str], functions: bool) -> Roles:
    """The roles in a file of queries.

    Args:
        file: the file.
        choice: the user's names.
        wanted: the columns that are parameters in the examples.
        functions: whether the examples have functions v.
    """
    if functions:
        if wanted and usual(file, "v") is None and set(file.columns or ()) <= set(file.singles):
            raise several(file, "v")
        parameters = tuple(wanted) if file.frame is not None else ()
        return Roles(single_name(file, choice.v, "v"), None, parameters)
    if wanted and file.frame is not None:
        return Roles(parameters=tuple(wanted))
    if usual(file, "v") is None and choice.v is None and (file.singles or PARAMETERS in file.names):
        return Roles(parameters=file.singles)
    return Roles(single_name(file, choice.v, "v"))


def output_columns(file: OpenFile, u: str | None) -> Outputs:
    """The columns of outputs that are a few numbers; u itself if it is a variable.

    Args:
        file: the file.
        u: a variable, one column, or columns with commas between; or None.
    """
    if u is None or u in file.functions or file.frame is None:
        return u
    names = [without_unit(name) for name in u.split(",") if name.strip()]
    numbered = [one for one in file.singles if label_of(one).place is not None]
    short = [one for one in numbered if label_of(one).name == u]
    if short and u in file.names:
        return tuple(short)
    return u if len(names) == 1 and u in file.names else tuple(names)


def _function_of_a_study(
    file: OpenFile, function: str, choice: Choice
) -> tuple[str | None, tuple[str, ...]]:
    """The only function of a table if it is u, and a note if that is a guess.

    Args:
        file: the table, which has single columns too.
        function: its name.
        choice: the user's names.
    """
    first = file.names[0] == function
    numbers = [one.name for one in file.candidates() if one.name != function]
    if choice.parameters or (_has_text(file) and not (first and numbers)):
        return function, ()
    if not first:
        note = (
            f"single columns of {file.path} ({few(file.singles)}) are read as inputs, and "
            f"{function} as outputs; for the reverse, give --v {function} --u {numbers[0]}."
        )
        return function, (note,)
    if len(numbers) < 2:
        return None, ()
    raise MissingVariableError(
        f"{file.path} has one function, {function}, and {len(numbers)} single columns "
        f"({few(numbers)}); expected to know which are outputs. Give --u {function} if single "
        f"columns are the inputs, or --v {function} --u {','.join(numbers[:2])}."
    )


def _with_parameters(file: OpenFile, choice: Choice, roles: Roles) -> Roles:
    """The roles, with parameters if the user names them or nothing else can be the inputs."""
    taken = roles.u if isinstance(roles.u, tuple) else (roles.u,)
    free = tuple(name for name in file.singles if name not in (*taken, roles.v))
    if choice.parameters and choice.parameters != ALL:
        names = tuple(without_unit(name) for name in choice.parameters)
        if both := [name for name in names if name in (*taken, roles.v)]:
            raise TransduceError(
                f"--parameters names {few(both)}, which are v or u; expected other columns. Leave "
                "them out."
            )
        return Roles(roles.v, roles.u, names, roles.notes)
    if choice.parameters or roles.v is None:
        return Roles(roles.v, roles.u, free, (*roles.notes, *_left_out(file, free)))
    note = (
        f"single columns of {file.path} are left out ({few(free)}); --parameters all takes them "
        "as inputs too, and --parameters with names some of them."
    )
    found = free and (roles.u in (None, *file.names) or isinstance(roles.u, tuple))
    return Roles(roles.v, roles.u, (), (*roles.notes, note) if found else roles.notes)


def _left_out(file: OpenFile, parameters: Sequence[str]) -> Iterator[str]:
    """A note on columns that label the rows of a design study."""
    if file.counts and parameters:
        labels, those = ("labels", "it is one") if len(file.counts) == 1 else ("label", "they are")
        yield (
            f"{few(file.counts)} of {file.path} {labels} rows, so not read as parameters. If "
            f"{those}, give --parameters {','.join((*file.counts, *parameters))}."
        )


def _check_not_labels_alone(file: OpenFile, choice: Choice, v: str | None) -> None:
    """Raise an error if a function has no inputs but labels of rows."""
    known = v is not None or file.singles or choice.parameters
    if file.counts and not known and len(file.functions) == 1:
        raise MissingVariableError(
            f"{file.path} has one function, {file.functions[0]}, and {few(file.counts)}, which "
            f"labels rows; expected inputs. If it is a parameter, give --u {file.functions[0]} "
            f"--parameters {','.join(file.counts)}."
        )


def _with_frame(file: OpenFile, choice: Choice, roles: Roles) -> Roles:
    """The roles, with the data frame of parameters that a file of R may hold."""
    if not file.singles or not (choice.parameters or roles.v is None or PARAMETERS in file.names):
        return roles
    return _with_parameters(file, replace(choice, parameters=choice.parameters or ALL), roles)


def _has_inputs(file: OpenFile, choice: Choice, u: str | tuple[str, ...]) -> bool:
    """Whether a table without v has parameters."""
    others = set(file.singles) - {*(u if isinstance(u, tuple) else (u,))}
    return bool(others or choice.parameters or PARAMETERS in file.names)


def _is_study_of_arrays(file: OpenFile, v: str | None, u: Sequence[str]) -> bool:
    """Whether named arrays hold parameters and no v."""
    has_v = v is not None or usual(file, "v") is not None
    found = PARAMETERS in file.names or file.singles
    return not has_v and bool(found) and set(u) <= set(file.names)


def _check_has_columns(file: OpenFile, choice: Choice) -> None:
    if choice.parameters and (file.layout or file.frame is None):
        raise TransduceError(
            f"--parameters names columns of a table; {file.path} is none with a header and a row "
            "for each run. Expected such a table, or an array `parameters` of shape (n, p). Leave "
            "out --parameters."
        )


def _one(file: OpenFile, u: Outputs) -> str | None:
    if isinstance(u, tuple):  # numbers whose inputs are unclear
        raise several(file, "v")
    return u


def _has_text(file: OpenFile) -> bool:
    """Whether a single column holds categories."""
    return any(name in file.names and not file.described(name).numeric for name in file.singles)
