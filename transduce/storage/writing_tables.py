"""Functions of one variable and numbers as wide tables: a row for each function, columns named by
variable and position, like u_400, u_402, ..., u_low_400, ..., which `layouts` reads back."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..files import pip_install
from ..types import Array, DataArray, TransduceError
from .formats import suffix_of
from .open_file import RESERVED
from .writing import as_numpy

POSITIONS = {"v": ("x_v", "xv", "x"), "u": ("x_u", "xu", "x")}
ENDINGS = ("_low", "_high")  # of the variables of bands
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def write_text(path: Path, arrays: Mapping[str, Array], attrs: object) -> None:
    """A table of text. Numbers are written so that they are read back exactly."""
    columns = columns_of(arrays)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=DELIMITERS[suffix_of(path)], lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def write_parquet(path: Path, arrays: Mapping[str, Array], attrs: object) -> None:
    """The same table in Parquet."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise TransduceError(
            f"{path.suffix} needs the package pyarrow; expected it to be installed. Run "
            f"{pip_install('files')}, or write .csv."
        ) from None
    pq.write_table(pa.table(columns_of(arrays)), path)


def columns_of(arrays: Mapping[str, Array]) -> dict[str, np.ndarray]:
    """The columns of a table by name, labels of rows first."""
    columns: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if name in RESERVED[:5]:
            continue
        if array.ndim not in (1, 2):
            raise TransduceError(
                f"{name} has shape {tuple(array.shape)}, which is no table; expected (n, points). "
                "Write .npz, .nc or .mat."
            )
        columns |= {key: column for key, column in _labels(array).items() if key not in columns}
        columns |= _named(name, array, _positions(name, array, arrays))
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise TransduceError(
            f"{', '.join(arrays)} have different numbers of rows; a table expects the same. Write "
            ".npz, or one file for each."
        )
    return columns


def _labels(array: Array) -> dict[str, np.ndarray]:
    """The labels of the rows, if they have some."""
    if not isinstance(array, DataArray) or array.dims[0] not in array.coords:
        return {}
    name = str(array.dims[0])
    return {"id" if name == "row" else name: np.asarray(array.coords[name].values)}


def _positions(name: str, array: Array, arrays: Mapping[str, Array]) -> np.ndarray | None:
    """The positions of the points of a variable: its coordinate, or an array for it."""
    if isinstance(array, DataArray) and array.dims[-1] in array.coords and array.ndim > 1:
        return np.asarray(array.coords[array.dims[-1]].values)
    role = name.partition("_")[0]
    found = next((arrays[x] for x in POSITIONS.get(role, ("x_u", "x")) if x in arrays), None)
    fits = found is not None and array.ndim == 2 and found.shape == (array.shape[1],)
    return as_numpy(found) if fits and found is not None else None


def _named(name: str, array: Array, x: np.ndarray | None) -> dict[str, np.ndarray]:
    """The columns of one variable."""
    values = as_numpy(array)
    if values.ndim == 1:
        return {name: values}
    if x is not None and x.dtype.kind in "UO":  # names of columns, not positions
        ending = next((end for end in ENDINGS if name.endswith(end)), "")
        return {f"{place}{ending}": values[:, j] for j, place in enumerate(x)}
    places = range(values.shape[1]) if x is None else [_text(place) for place in x]
    return {f"{name}_{place}": values[:, j] for j, place in enumerate(places)}


def _text(place: object) -> str:
    """A position without needless digits: 400 for 400.0."""
    if isinstance(place, np.datetime64):
        return str(place).removesuffix(".000000000").removesuffix("T00:00:00")
    text = str(place)
    return text.removesuffix(".0")
