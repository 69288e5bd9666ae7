"""Files of pairs and of queries, with their variables called v, u and parameters.

v and u are those called v and u, or V and U, or those that the user names. In a table with two
variables the first is v and the second u. A file of queries, or of outputs alone, may hold one
variable of any name. `roles` says which columns are parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from ..files import PathLike
from ..types import Array, DataArray, TransduceError
from .naming import in_struct
from .open_file import RESERVED, OpenFile, as_vector
from .opening import opened
from .roles import Choice, Roles, input_roles, output_roles, pair_roles, query_roles


@contextmanager
def opened_pairs(path: PathLike, choice: Choice) -> Iterator[OpenFile]:
    """A file of examples whose inputs are called v and whose outputs are called u. It has no v if
    the parameters are the only inputs.

    Args:
        path: the file of the pairs, or of the inputs.
        choice: names, and the file of the outputs.
    """
    with ExitStack() as stack:
        names = replace(choice, u=None) if choice.outputs else choice
        first = _laid_out(stack.enter_context(opened(path)), names)
        if choice.outputs is None:
            yield _renamed(first, pair_roles(first, choice), choice.columns)
            return
        second = _laid_out(stack.enter_context(opened(choice.outputs)), replace(choice, v=None))
        one = _renamed(first, input_roles(first, choice), choice.columns)
        other = _renamed(second, output_roles(second, choice), choice.columns)
        yield _joined(one, other)


@contextmanager
def opened_queries(
    path: PathLike, choice: Choice, wanted: Sequence[str] = (), functions: bool = True
) -> Iterator[OpenFile]:
    """A file of queries, which are called v. It has no v if parameters are the only inputs.

    Args:
        path: the file.
        choice: the user's names.
        wanted: the names of the parameters of the examples, if they have names.
        functions: whether the examples have functions v.
    """
    with opened(path) as given:
        file = _laid_out(given, replace(choice, u=None))
        roles = query_roles(file, choice, wanted, functions)
        yield _renamed(file, roles, choice.columns)


def _laid_out(file: OpenFile, choice: Choice) -> OpenFile:
    """The file, its table read as the user says. A table that looks long, or has positions first,
    has an example in each row if the user names parameters, or outputs and nothing is left to be v
    but a column of positions."""
    if file.as_layout is None:
        return file
    if choice.columns:
        return file.as_layout("columns")
    if file.layout not in ("long", "columns"):
        return file
    outputs = set((choice.u or "").split(","))
    alone = bool(file.guesses) or set(file.columns or ()) <= outputs
    study = choice.v is None and choice.u is not None and alone
    return file.as_layout("wide") if choice.parameters or study else file


def _renamed(file: OpenFile, roles: Roles, columns: bool) -> OpenFile:
    """The file with variables by their roles.

    Args:
        file: the file.
        roles: what its variables are.
        columns: whether functions are the columns of arrays. Tables know that already.
    """
    columns = columns and not file.layout
    for note in file.guesses + roles.notes:
        warnings.warn(note, stacklevel=2)
    structs = {name: in_struct(file, name) for name in RESERVED if name not in file.names}
    names = {new: old for new, old in structs.items() if old is not None}
    functions = {role: name for role, name in (("v", roles.v), ("u", roles.u)) if name is not None}

    def load(name: str) -> Array:
        source = functions.get(name, names.get(name, name))
        if isinstance(source, tuple):
            return _numbers(file, source)
        array = file.fetch(source)
        if columns and name in functions:
            array = transposed(array)
        return as_vector(array) if name in RESERVED and name != "parameters" else array

    taken = {*functions.values(), *names.values(), *functions, *names}
    taken |= {"x"} if _is_of_another(file, [*functions.values()]) else set()
    others = [name for name in file.names if name not in taken]
    return replace(
        file,
        names=[*functions, *names, *others, *names.values()],
        load=load,
        describe=None,
        columns=None,
        functions=(),
        singles=roles.parameters,
    )


def _is_of_another(file: OpenFile, chosen: Sequence[str | tuple[str, ...]]) -> bool:
    """Whether x of a table holds the positions of functions that are not chosen."""
    if file.layout != "wide" or "x" not in file.names:
        return False
    return not any(
        "x" in file.described(name).dims
        for name in chosen
        if isinstance(name, str) and name in file.names
    )


def _numbers(file: OpenFile, names: tuple[str, ...]) -> DataArray:
    """Columns of outputs as one array (n, columns) that keeps their names; (n,) for one column."""
    import xarray as xr

    assert file.frame is not None
    frame = file.frame(names)
    text = [str(name) for name, kind in frame.dtypes.items() if kind.kind == "O"]
    if text:
        raise TransduceError(
            f"column {text[0]!r} of {file.path} holds text; expected outputs that are numbers. "
            "Name other columns (--u)."
        )
    rows = str(frame.index.name or "row")
    labels = {} if frame.index.name is None else {rows: frame.index.to_numpy()}
    values = frame.to_numpy(dtype=np.float64)
    if len(names) == 1:
        return xr.DataArray(values[:, 0], labels, [rows], names[0])
    return xr.DataArray(values, labels | {"column": list(names)}, [rows, "column"])


def transposed(array: Array) -> Array:
    """Functions in columns as functions in rows: the last axis becomes the first."""
    if array.ndim < 2:
        return array
    if isinstance(array, DataArray):
        return array.transpose(array.dims[-1], ...)
    return np.moveaxis(np.asarray(array), -1, 0)


def _joined(v: OpenFile, u: OpenFile) -> OpenFile:
    """The inputs of one file and the outputs of another, each with its positions."""
    own: dict[str, Callable[[], Array]] = {}
    for role, file, place in (("v", v, ("x_v", "xv", "x")), ("u", u, ("x_u", "xu", "x"))):
        if role not in file.names:
            continue
        own[role] = partial(file.fetch, role)
        x = next((name for name in place if name in file.names), None)
        if x is not None:
            own[f"x_{role}"] = partial(file.fetch, x)
    for name in ("parameters", "groups"):
        if name in v.names:
            own[name] = partial(v.fetch, name)
    load, names = lambda name: own[name](), list(own)
    return OpenFile(v.path, names, load, v.x_is_positions, singles=v.singles, frame=v.frame)
