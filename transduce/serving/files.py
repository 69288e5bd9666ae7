"""Files that are sent as bytes: tables of text to the server, every format to the page.

Text is read in memory, within the bounds of `bodies`. The other formats are read by libraries that
open files, so their bytes pass through a temporary file, in memory where the system has a place for
that, which is deleted at once. Memory stays within 9 times the bytes that are allowed for text."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ..inputs.numbers import real_array
from ..storage import FORMATS, OpenFile, opened
from ..storage.headers import table_of
from ..storage.naming import in_struct, pair_names, single_name
from ..storage.open_file import RESERVED, as_vector
from ..storage.roles import Choice, pair_roles
from ..storage.table_files import table_file
from ..storage.text import cells_of, decoded
from ..types import Array, DataArray, TransduceError
from .bodies import TooLargeError, finite

TEXT = (".csv", ".tsv", ".txt")
IN_MEMORY = Path("/dev/shm")
MARKS = (b"\n", b"\r", b",", b";", b"\t", b" ")
CELL, LINE = 16, 32  # bytes that are allowed for each; they take some 60 and 200


def read_text(body: bytes, most: int, name: str = "the table") -> dict[str, np.ndarray]:
    """The variables of a table of text: v and u, or v alone, and their positions.

    Args:
        body: the file.
        most: bytes that it may take as text, and its numbers in memory.
        name: what messages call it.

    >>> sorted(read_text(b"v_0,v_1,u_0,u_1\\n1,2,3,4\\n", most=1000))
    ['u', 'v']
    """
    cells, lines = (sum(body.count(mark) for mark in marks) for marks in (MARKS, MARKS[:2]))
    if max(len(body), CELL * cells + LINE * lines) > most:
        raise TooLargeError(
            f"{name} of {len(body)} bytes is too large; expected at most {most}, at {CELL} for "
            f"each number and {LINE} for each line. Send fewer rows, or npz."
        )
    path = Path(name)
    return named_arrays(table_file(table_of(cells_of(path, decoded(body, path)))))


def read_file(name: str, body: bytes, most: int) -> dict[str, np.ndarray]:
    """The variables of a file of any format that is one file: v and u, or v alone.

    Args:
        name: of the file; its suffix is its format.
        body: its bytes.
        most: bytes that its numbers may take.
    """
    name = Path(name).name
    if Path(name).suffix.lower() in TEXT:
        return read_text(body, most, name)
    if Path(name).suffix.lower() not in set(FORMATS) - {".zarr"}:
        known = ", ".join(suffix for suffix in FORMATS if suffix != ".zarr")
        raise TransduceError(
            f"{name} is of an unknown format; expected one of {known}. Convert it, or use "
            "`transduce regress`."
        )
    folder = IN_MEMORY if IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        path = Path(temporary) / f"upload{Path(name).suffix}"
        path.write_bytes(body)
        try:
            with opened(path, most) as file:
                return named_arrays(file)
        except TransduceError as error:
            raise TransduceError(str(error).replace(str(path), name)) from None


def named_arrays(file: OpenFile) -> dict[str, np.ndarray]:
    """v and u of a file of pairs, or v of any other, with positions and parameters."""
    names = _roles(file)
    _check_nothing_is_left(file, names)
    found = {role: file.fetch(name) for role, name in names.items()}
    arrays = {
        role: finite(real_array(np.asarray(array), role), role) for role, array in found.items()
    }
    for key in RESERVED[:-1]:
        name = key if key in file.names else in_struct(file, key)
        if name is not None and name not in names.values() and not file.layout:
            arrays[key] = finite(real_array(np.asarray(as_vector(file.fetch(name))), key), key)
    given = {"x", "x_v", "xv"} & set(arrays)
    own = {} if given else {role: x for role in "vu" if role in found
                            and (x := _positions(found[role])) is not None}  # fmt: skip
    if len(own) == len({"v", "u"} & set(found)) and len({x.tobytes() for x in own.values()}) == 1:
        return arrays | {"x": own["v"]}
    return arrays | {f"x_{role}": x for role, x in own.items()}


def _roles(file: OpenFile) -> dict[str, str]:
    """For v, u and v_query, the names of those that the file has."""
    queries = {"v_query": "v_query"} if "v_query" in file.names else {}
    _check_no_study(file)
    try:
        pair = dict(zip("vu", pair_names(file, None, None), strict=True))
    except TransduceError:
        pair = {}
    if pair and set(pair.values()) <= set(file.names):
        return pair | queries
    return {"v": single_name(file, None, "v")}


def _check_no_study(file: OpenFile) -> None:
    """Raise an error if single columns are the inputs: arrays would lose names and categories."""
    try:
        roles = pair_roles(file, Choice())
    except TransduceError:
        return
    if file.layout and roles.v is None and roles.parameters:
        raise TransduceError(
            f"{file.path} has single columns as inputs ({', '.join(roles.parameters[:8])}); "
            "expected functions v and u here. Use `transduce regress`, which takes parameters."
        )


def _check_nothing_is_left(file: OpenFile, names: dict[str, str]) -> None:
    """Raise an error if a file has groups, or a table single columns that are neither v nor u."""
    single = [name for name in file.singles if name not in names.values()]
    left = [*single, *({"groups"} & set(file.names))]
    if left:
        raise TransduceError(
            f"{file.path} has columns that are neither v nor u ({', '.join(left[:8])}); expected "
            "v and u here. Leave them out, or use `transduce regress`, which reads parameters and "
            "groups."
        )


def _positions(array: Array) -> np.ndarray | None:
    """The coordinate of the last axis, unless it only counts from 0 or 1."""
    if not isinstance(array, DataArray) or array.ndim < 2 or array.dims[-1] not in array.coords:
        return None
    x = np.asarray(array.coords[array.dims[-1]].values)
    if x.dtype.kind == "M":
        x = (x - x[0]) / np.timedelta64(1, "s")
    counted = any(np.array_equal(x, np.arange(len(x)) + start) for start in (0, 1))
    return None if counted or x.dtype.kind not in "fiu" else x.astype(np.float64)
