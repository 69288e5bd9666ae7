"""Which variables of files are v and u.

Those called v and u, or V and U, or those that the user names. In a table with two variables the
first is v and the second u. A file of queries, or of outputs alone, may hold one variable of any
name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..files import PathLike
from ..types import Array, DataArray
from .open_file import RESERVED, Description, MissingVariableError, OpenFile, as_vector
from .opening import opened

SHOWN = 8  # variables that a message lists


@dataclass(frozen=True)
class Choice:
    """How the user wants files to be read.

    Args:
        v: the name of the variable of inputs, or None.
        u: the name of the variable of outputs, or None.
        outputs: the file of the outputs, if the file of examples has the inputs alone.
        columns: whether functions are the columns of arrays, and not the rows.
    """

    v: str | None = None
    u: str | None = None
    outputs: PathLike | None = None
    columns: bool = False


@contextmanager
def opened_pairs(path: PathLike, choice: Choice) -> Iterator[OpenFile]:
    """A file of examples whose inputs are called v and whose outputs are called u.

    Args:
        path: the file of the pairs, or of the inputs.
        choice: names, and the file of the outputs.
    """
    with ExitStack() as stack:
        first = stack.enter_context(opened(path))
        if choice.outputs is None:
            names = dict(zip("vu", pair_names(first, choice.v, choice.u), strict=True))
            yield _renamed(first, names, choice.columns)
            return
        second = stack.enter_context(opened(choice.outputs))
        v, u = single_name(first, choice.v, "v"), single_name(second, choice.u, "u")
        one = _renamed(first, {"v": v}, choice.columns)
        other = _renamed(second, {"u": u}, choice.columns)
        yield _joined(one, other)


@contextmanager
def opened_queries(path: PathLike, choice: Choice) -> Iterator[OpenFile]:
    """A file of queries, which are called v."""
    with opened(path) as file:
        yield _renamed(file, {"v": single_name(file, choice.v, "v")}, choice.columns)


def pair_names(file: OpenFile, v: str | None, u: str | None) -> tuple[str, str]:
    """The names of inputs and outputs in a file that holds both."""
    given = {"v": v or _usual(file, "v"), "u": u or _usual(file, "u")}
    found = [one.name for one in file.candidates() if one.name not in given.values()]
    missing = [role for role, name in given.items() if name is None]
    guess = file.columns is not None or v is not None or u is not None
    if missing and guess and len(found) == len(missing):
        given |= dict(zip(missing, found, strict=True))
    elif len(missing) == 1:
        given |= dict.fromkeys(missing, missing[0])  # `fetch` says that it is missing
    elif missing:
        raise _several(file)
    return str(given["v"]), str(given["u"])


def single_name(file: OpenFile, name: str | None, role: str) -> str:
    """The name of the inputs or outputs in a file that may hold nothing else.

    Args:
        file: the file.
        name: what the user calls them, or None.
        role: "v" or "u".
    """
    usual = _usual(file, role) or (_usual(file, "v_query") if role == "v" else None)
    chosen = name if name in file.names else usual if name is None else None
    if chosen is None and file.whole is not None and name is None:
        return file.whole
    found = file.candidates()
    if chosen is None and len(found) == 1:
        return found[0].name
    if chosen is None and file.columns is not None and len(found) == 2 and name is None:
        return found["vu".index(role)].name
    if chosen is None and name is None:
        raise _several(file, role)
    return chosen or str(name)


def _usual(file: OpenFile, role: str) -> str | None:
    """The variable that is called v or u, or V or U, or so in a struct."""
    for name in (role, role.upper()):
        if name in file.names:
            return name
    ends = [name for name in file.names if name.endswith(f".{role}")]
    return ends[0] if len(ends) == 1 else None


def _several(file: OpenFile, role: str | None = None) -> MissingVariableError:
    """The error for a file in which it is unclear which variables are v and u.

    Args:
        file: the file.
        role: "v" or "u" if one of them alone is wanted.
    """
    found = file.candidates()
    if len(found) < 2 and role is None:
        return MissingVariableError(
            f"{file.path} has one variable, {listed(found) or 'none'}; expected v and u. Give the "
            "file of the outputs as well (--outputs FILE), or name columns v_0, v_1, ..., u_0, "
            "u_1, ..."
        )
    names = [one.name for one in found] or ["NAME"]
    held = f"it has {listed(found) or 'none'}"
    if role is not None:
        return MissingVariableError(
            f"{file.path} has no variable called {role}; {held}. Name it, like --{role} {names[0]}."
        )
    return MissingVariableError(
        f"{file.path} has no variables called v and u; {held}. Name them, like --v {names[0]} --u "
        f"{names[-1]}."
    )


def listed(found: list[Description]) -> str:
    """Variables with their shapes, for messages."""
    shown = [f"{one.name} {one.shape}" for one in found[:SHOWN]]
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return ", ".join(shown + more)


def _renamed(file: OpenFile, names: dict[str, str], columns: bool) -> OpenFile:
    """The file with variables under other names.

    Args:
        file: the file.
        names: for each new name, the name in the file.
        columns: whether to transpose them.
    """
    for guess in file.guesses:
        warnings.warn(guess, stacklevel=2)

    def load(name: str) -> Array:
        array = file.fetch(names.get(name, name))
        if columns and name in names:
            array = transposed(array)
        return as_vector(array) if name in RESERVED else array

    taken = {*names.values()}
    others = [name for name in file.names if name not in taken | {*names}]
    return replace(file, names=[*names, *others], load=load, describe=None, columns=None)


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
        own[role] = partial(file.fetch, role)
        x = next((name for name in place if name in file.names), None)
        if x is not None:
            own[f"x_{role}"] = partial(file.fetch, x)
    for name in ("parameters", "groups"):
        if name in v.names:
            own[name] = partial(v.fetch, name)
    return OpenFile(v.path, list(own), lambda name: own[name](), v.x_is_positions)
