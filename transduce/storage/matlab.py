"""Variables of MATLAB files: version 5 (save -v7 and older) by `matlab_5`, 7.3 by h5py.

MATLAB stores arrays by columns. In version 7.3 the axes are therefore reversed, and are put right
here. Numbers in a struct of size 1 x 1 are called struct.field. Objects, function handles, cells
and sparse matrices are refused. Nothing is executed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..types import TransduceError
from .matlab_5 import Matrix, matrices
from .open_file import Description, OpenFile, check_size

if TYPE_CHECKING:
    import h5py

SIGNATURES = {"double", "single", "logical", *(f"{u}int{b}" for u in ("", "u")
                                                for b in (8, 16, 32, 64))}  # fmt: skip


@contextmanager
def open_matlab_5(path: Path, most: int | None) -> Iterator[OpenFile]:
    """A file of version 5."""
    listed: dict[str, Matrix] = {}
    for matrix in matrices(path.read_bytes()):
        listed[matrix.name] = matrix
        if matrix.kind == "struct" and math.prod(matrix.shape) == 1:
            fields = {f"{matrix.name}.{field.name}": field for field in matrix.fields(most)}
            numeric = {name: f for name, f in fields.items() if f.kind in SIGNATURES}
            listed = {**listed, **numeric}
            if numeric:
                del listed[matrix.name]
    check_size(path, sum(8 * math.prod(one.shape) for one in listed.values()), most)

    def load(name: str) -> np.ndarray:
        if listed[name].kind not in SIGNATURES:
            raise _refused(name, listed[name].kind, path)
        if listed[name].is_complex:
            raise _is_complex(name, path)
        return listed[name].values()

    def describe(name: str) -> Description:
        one = listed[name]
        return Description(name, one.shape, one.kind, numeric=one.kind in SIGNATURES)

    yield OpenFile(path, list(listed), load, describe=describe)


def _is_complex(name: str, path: Path) -> TransduceError:
    return TransduceError(
        f"{name} in {path} holds complex numbers; expected real numbers. Save real({name}) and "
        f"imag({name}) as two channels."
    )


def _refused(name: str, kind: str, path: Path) -> TransduceError:
    remedy = {
        "sparse": f"Save full({name}).",
        "cell": f"Save cell2mat({name}).",
        "struct": f"Save its fields as variables, like v = {name}.v.",
        "char": "Name another variable (--v, --u).",
    }.get(kind, f"Save double({name}), or name another variable (--v, --u).")
    return TransduceError(
        f"{name} in {path} is of the MATLAB class {kind!r}; expected numbers. {remedy}"
    )


@contextmanager
def open_matlab_73(path: Path, most: int | None) -> Iterator[OpenFile]:
    """A file of version 7.3, which is HDF5 behind a header of MATLAB."""
    import h5py

    with h5py.File(path, "r") as file:
        found = {name: item for name, item in file.items() if not name.startswith("#")}
        listed = {name: item for name, item in found.items() if isinstance(item, h5py.Dataset)}
        for name in found.keys() - listed.keys():
            members = found[name].items()
            listed |= {f"{name}.{k}": d for k, d in members if isinstance(d, h5py.Dataset)}
        numeric = {name: data for name, data in listed.items() if _class(data) in SIGNATURES}
        check_size(path, sum(int(data.nbytes) for data in numeric.values()), most)

        def load(name: str) -> np.ndarray:
            if name not in numeric:
                raise _refused(name, _class(listed[name]) or "struct", path)
            return _values(numeric[name], name, path)

        def describe(name: str) -> Description:
            data = listed[name]
            return Description(name, data.shape[::-1], str(data.dtype), numeric=name in numeric)

        yield OpenFile(path, list(listed), load, describe=describe)


def _values(data: h5py.Dataset, name: str, path: Path) -> np.ndarray:
    """The numbers of a dataset, with the axes of MATLAB."""
    if data.attrs.get("MATLAB_empty", 0):
        return np.empty((0, 0))
    if data.dtype.names:  # (real, imag)
        raise _is_complex(name, path)
    array = np.asarray(data[()])
    if array.dtype.kind not in "fiub":
        raise _refused(name, str(array.dtype), path)
    return np.ascontiguousarray(array.T)


def _class(data: h5py.Dataset) -> str:
    """The MATLAB class of a dataset. Files of other programs may not say it."""
    said = data.attrs.get("MATLAB_class", b"")
    name = said.decode("latin-1") if isinstance(said, bytes) else str(said)
    return name or ("double" if data.dtype.kind in "fiub" else str(data.dtype))
