"""Variables that are called v and u, or that may be meant."""

from __future__ import annotations

from itertools import combinations

from .open_file import Description, MissingVariableError, OpenFile

SHOWN = 8  # variables that a message lists


def pair_names(file: OpenFile, v: str | None, u: str | None) -> tuple[str, str]:
    """The names of inputs and outputs in a file that holds both."""
    given = {"v": called(file, v) or usual(file, "v"), "u": called(file, u) or usual(file, "u")}
    found = [one.name for one in file.candidates() if one.name not in given.values()]
    missing = [role for role, name in given.items() if name is None]
    guess = file.columns is not None or v is not None or u is not None
    if missing and guess and len(found) == len(missing):
        given |= dict(zip(missing, found, strict=True))
    elif len(missing) == 1:
        given |= dict.fromkeys(missing, missing[0])  # `fetch` says that it is missing
    elif missing:
        raise several(file)
    return str(given["v"]), str(given["u"])


def single_name(file: OpenFile, name: str | None, role: str) -> str:
    """The name of the inputs or outputs in a file that may hold nothing else.

    Args:
        file: the file.
        name: what the user calls them, or None.
        role: "v" or "u".
    """
    known = usual(file, role) or (usual(file, "v_query") if role == "v" else None)
    name = called(file, name)
    chosen = name if name in file.names else known if name is None else None
    if chosen is None and file.whole is not None and name is None:
        return file.whole
    found = file.candidates()
    if chosen is None and len(found) == 1:
        return found[0].name
    if chosen is None and len(file.functions) == 1 and name is None:
        return file.functions[0]
    if chosen is None and file.columns is not None and len(found) == 2 and name is None:
        return found["vu".index(role)].name
    if chosen is None and name is None:
        raise several(file, role)
    return chosen or str(name)


def usual(file: OpenFile, role: str) -> str | None:
    """The variable that is called v or u, or V or U, or so in a struct."""
    for name in (role, role.upper()):
        if name in file.names:
            return name
    return in_struct(file, role)


def called(file: OpenFile, name: str | None) -> str | None:
    """The variable of this name, or the field of this name of a struct; the name itself if there is
    neither."""
    return name if name is None or name in file.names else in_struct(file, name) or name


def in_struct(file: OpenFile, name: str) -> str | None:
    """The only field of this name of a struct, list or data frame."""
    ends = [one for one in file.names if one.endswith(f".{name}")]
    return ends[0] if len(ends) == 1 else None


def several(file: OpenFile, role: str | None = None) -> MissingVariableError:
    """The error for a file in which it is unclear which variables are v and u.

    Args:
        file: the file.
        role: "v" or "u" if one of them alone is wanted.
    """
    found = file.candidates()
    if not found:
        return MissingVariableError(
            f"{file.path} has no arrays of numbers at its top level; expected v and u there, not "
            "in groups. Write them there."
        )
    if len(found) < 2 and role is None:
        return MissingVariableError(
            f"{file.path} has one variable, {listed(found)}; expected v and u. Give the "
            "file of the outputs as well (--outputs FILE), or name columns v_0, v_1, ..., u_0, "
            "u_1, ..."
        )
    names = [one.name for one in found]
    held = f"it has {listed(found)}"
    alone = file.layout == "long" and len(found) > 2 and found[0].shape[0] == 1
    hint = " If each column is a function, give --columns." if alone else ""
    if role is not None:
        return MissingVariableError(
            f"{file.path} has no variable called {role}; {held}. Name it, like --{role} "
            f"{names[0]}, or call it {role}.{hint}"
        )
    study = " If the inputs are single columns, --u is enough." if file.singles else ""
    one, other = _likely_pair(found) or (names[0], names[-1])
    return MissingVariableError(
        f"{file.path} has no variables called v and u; {held}. Name them, like --v {one} --u "
        f"{other}, or call them v and u.{study}{hint}"
    )


def _likely_pair(found: list[Description]) -> tuple[str, str] | None:
    """The first two variables of as many rows, more than one."""
    for one, other in combinations(found, 2):
        if len(one.shape) > 1 and len(other.shape) > 1 and one.shape[0] == other.shape[0] > 1:
            return one.name, other.name
    return None


def listed(found: list[Description]) -> str:
    """Variables with their shapes, for messages."""
    shown = [f"{one.name} {one.shape}" for one in found[:SHOWN]]
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return ", ".join(shown + more)
