"""Tables in Parquet files and in the files of R (.rda, .RData, .rds).

R's files are parsed by the package rdata, which evaluates nothing. Vectors, matrices, data frames
and named lists of these are read; other classes are refused."""

from __future__ import annotations

import bz2
import lzma
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from ..files import pip_install
from ..types import Array, TransduceError
from .formats import suffix_of
from .open_file import OpenFile, check_size
from .table import Table, table_of_columns
from .table_files import table_file

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MOST_UNPACKED = 2**30  # bytes of an R file
INDEX = "__index_level_0__"  # how pandas calls an index without a name


class Decompressor(Protocol):
    """zlib's, bz2's or lzma's."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


@contextmanager
def open_parquet(path: Path, most: int | None) -> Iterator[OpenFile]:
    """A Parquet file; a column of lists is one function in each row."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise TransduceError(
            f"{path} needs the package pyarrow; expected it to be installed. Run "
            f"{pip_install('files')}."
        ) from None
    with pq.ParquetFile(path) as file:
        about = file.metadata
        packed = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        check_size(path, max(packed, 8 * about.num_rows * about.num_columns), most)
        content = file.read()
    twice = [name for name, count in Counter(content.column_names).items() if count > 1]
    if twice:
        raise TransduceError(
            f"{path} has two columns called {twice[0]!r}; expected a name for each. Rename one."
        )
    columns: dict[str, np.ndarray] = {}
    index = _index(content.schema)
    for name in sorted(content.column_names, key=lambda name: name not in index):
        columns |= _columns("index" if name == INDEX else name, content.column(name), path)
    yield table_file(table_of_columns(path, columns))


def _index(schema: pa.Schema) -> list[str]:
    """The columns that were the index of a DataFrame, which stand first in text tables too."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in stored if isinstance(name, str)]  # a RangeIndex is a dict


def _columns(name: str, column: pa.ChunkedArray, path: Path) -> dict[str, np.ndarray]:
    """The columns that one column of Arrow is: a list is split."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        if not _is_real(kind.value_type):
            raise TransduceError(
                f"{name} in {path} has lists of {kind.value_type}; expected lists of numbers, one "
                "function in each row. Write numbers, or each variable as a column of its own."
            )
        lengths = {None if row is None else len(row) for row in column.to_pylist()}
        if len(lengths) != 1 or None in lengths:
            raise TransduceError(
                f"{name} in {path} has lists of unequal length; expected equally many values in "
                "each row. Interpolate functions to common points."
            )
        values = np.array(column.to_pylist(), dtype=np.float64)
        return {f"{name}_{j}": values[:, j] for j in range(values.shape[1])}
    if _is_real(kind):
        return {name: column.cast(pa.float64()).to_numpy()}
    if pa.types.is_null(kind) or pa.types.is_nested(kind):
        return {}
    return {name: np.array(["" if cell is None else str(cell) for cell in column.to_pylist()])}


def _is_real(kind: pa.DataType) -> bool:
    """Whether values are real numbers or booleans."""
    import pyarrow as pa

    known = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
    return any(is_one(kind) for is_one in known)


@contextmanager
def open_r(path: Path, most: int | None) -> Iterator[OpenFile]:
    """A file that R's save or saveRDS wrote."""
    try:
        import rdata
    except ImportError:
        raise TransduceError(
            f"{path} needs the package rdata; expected it to be installed. Run "
            f"{pip_install('files')}, or write .csv in R by write.csv."
        ) from None
    content = _unpacked(path.read_bytes(), path, most)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = rdata.conversion.convert(rdata.parser.parse_data(content))
    _check_classes([str(warning.message) for warning in warned], path)
    saved_by_name = isinstance(found, dict) and suffix_of(path) != ".rds"
    yield _r_file(path, found if saved_by_name else {"values": found})


def _check_classes(warned: list[str], path: Path) -> None:
    """Raise an error if rdata found an object of a class that it does not know."""
    unknown = next((text for text in warned if "constructor" in text), None)
    if unknown is not None:
        raise TransduceError(
            f"{path} holds an object of an unknown R class ({unknown.splitlines()[0][:80]}); "
            "expected vectors, matrices, data frames or lists of these. In R, save unclass() or "
            "as.matrix() of it."
        )


def _r_file(path: Path, named: Mapping[str, object]) -> OpenFile:
    """The objects of R by name; a single data frame is a table."""
    import pandas as pd

    named = _flat(named)
    arrays = {
        name: value.to_numpy() if isinstance(value, pd.Series) else value  # a time series
        for name, value in named.items()
        if not isinstance(value, dict)
    }
    tables = {
        name: table_file(frame_table(value, path))
        for name, value in arrays.items()
        if isinstance(value, pd.DataFrame)
    }
    if len(named) == len(tables) == 1:
        return next(iter(tables.values()))
    inner = {
        name: found for key, table in tables.items() for name, found in _inner(key, table).items()
    }

    def load(name: str) -> Array:
        if name in inner:
            table, key = inner[name]
            return table.fetch(key)
        value = arrays[name]
        if not _is_numeric(value):
            raise TransduceError(
                f"{name} in {path} is of the type {type(value).__name__}; expected a vector, "
                "matrix or data frame of numbers. Save as.matrix() of it."
            )
        return cast("Array", value)

    usable = [name for name, value in arrays.items() if _is_numeric(value)]
    study = _study(tables)
    return OpenFile(
        path,
        [*usable, *inner] or list(arrays),
        load,
        singles=study.singles if study else (),
        frame=study.frame if study else None,
    )


def _flat(named: Mapping[str, object]) -> Mapping[str, object]:
    """The objects of R, and the fields of lists as list.field."""
    lists = {name: value for name, value in named.items() if isinstance(value, dict)}
    inner = {f"{name}.{key}": value for name, own in lists.items() for key, value in own.items()}
    return {**named, **inner}


def _inner(name: str, table: OpenFile) -> dict[str, tuple[OpenFile, str]]:
    """The variables of a data frame: its own name if it holds one, and else name.variable.

    Args:
        name: of the data frame.
        table: its columns.
    """
    several = table.columns if table.columns and len(table.columns) > 1 else ()
    single = table.whole or next(iter(table.columns or ()), None)
    found = {} if several and table.whole is None else {name: single}
    keys = [key for key in table.names if key in ("v", "u", "x") or (several and not found)]
    return {key: (table, one) for key, one in found.items() if one is not None} | {
        f"{name}.{key}": (table, key) for key in keys
    }


def _study(tables: Mapping[str, OpenFile]) -> OpenFile | None:
    """The data frame of parameters: the one of that name, or the only one of single columns."""
    found = [one for one in tables.values() if one.singles and not one.functions]
    return tables.get("parameters", found[0] if len(found) == 1 else None)


def _is_numeric(value: object) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return isinstance(value, Array) and kind in "fiubc"


def frame_table(frame: pd.DataFrame, path: Path) -> Table:
    """A data frame as a table; an index of labels becomes its first column."""
    import pandas as pd

    labels = np.asarray(frame.index)
    counted = any(np.array_equal(labels, np.arange(len(frame)) + k) for k in (0, 1))
    if labels.dtype.kind not in "fiu":
        counted = counted or all(str(k) == str(i + 1) for i, k in enumerate(labels))
    columns = {} if counted else {"index": labels.astype(str)}
    for name, column in frame.items():
        numeric = pd.api.types.is_numeric_dtype(column)
        columns[str(name)] = (
            column.to_numpy(dtype=np.float64, na_value=np.nan)
            if numeric
            else np.asarray(column.astype(object).where(column.notna(), ""))
        )
    return table_of_columns(path, columns)


def _unpacked(content: bytes, path: Path, most: int | None) -> bytes:
    """The content of a compressed file, up to a bound."""
    makers: dict[bytes, Decompressor] = {
        b"\x1f\x8b": zlib.decompressobj(31),
        b"BZh": cast("Decompressor", bz2.BZ2Decompressor()),
        b"\xfd7zXZ": cast("Decompressor", lzma.LZMADecompressor()),
    }
    packed = next((m for magic, m in makers.items() if content.startswith(magic)), None)
    limit = most or MOST_UNPACKED
    unpacked = content if packed is None else packed.decompress(content, limit + 1)
    check_size(path, len(unpacked), limit)
    return unpacked
