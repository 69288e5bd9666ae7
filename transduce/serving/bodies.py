"""Arrays from the bytes of a request, whoever sent it, and back: npz and JSON. `files` reads
tables. No pickle is read. Besides the body's own, memory stays within 4 times the bytes that are
allowed.

The header of an array in an npz file says how large it is, and so does the zip archive around it;
neither is believed unchecked. In JSON arrays are lists of lists of numbers; a list takes far more
memory than the two bytes of "[]", and a number than those of "0.5,", so there may only be so many.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from itertools import chain

import numpy as np
from pydantic_core import from_json

from ..files import brief
from ..types import TransduceError

ENTRIES = 16  # the most arrays of an npz body
ENTRY = b"PK\1\2"  # how the archive's list of contents begins each
# Bytes that are allowed for each of either in a JSON body; they take some 100 and 50.
LIST, NUMBER = (
    256,
    16,
)
OBJECTS, QUOTES = 8, 64  # the most of "{" and of quotation marks in it
AXES = 4  # the most of an array: functions, channels, and a grid of two


class TooLargeError(TransduceError):
    """A body that holds more than is allowed."""


class MalformedError(TransduceError):
    """A body that is not what it is said to be."""


def read_npz(body: bytes, most: int) -> dict[str, np.ndarray]:
    """The arrays of an npz file by name: finite numbers, of at most `most` bytes together once they
    are unpacked.

    >>> read_npz(write_npz({"v": np.zeros((7, 101))}), most=2**20)["v"].shape
    (7, 101)
    """
    if body.count(ENTRY) > ENTRIES:  # before the archive is opened, which would list them all
        raise TransduceError(
            f"the npz body holds {body.count(ENTRY)} arrays; expected at most {ENTRIES}, such as "
            "v and u."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            _check_entries(archive.infolist(), most)
            return {
                entry.filename.removesuffix(".npy"): _read_entry(archive, entry)
                for entry in archive.infolist()
            }
    except TransduceError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each have their own for a damaged file
        raise MalformedError(
            f"the body of {len(body)} bytes cannot be read as npz ({brief(error)}); expected what "
            "numpy.savez writes. Write it again."
        ) from None


def _check_entries(entries: list[zipfile.ZipInfo], most: int) -> None:
    size = sum(entry.file_size for entry in entries)
    if size > most:
        raise TooLargeError(
            f"the npz body unpacks to {size} bytes; expected at most {most}. Send fewer "
            "functions, or fewer points."
        )
    if len({entry.filename for entry in entries}) < len(entries):
        raise TransduceError(
            "the npz body holds two arrays of one name; expected one of each, such as v and u."
        )
    for entry in entries:
        if not entry.filename.endswith(".npy") or entry.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise TransduceError(
                f"{entry.filename!r} in the npz body is no array that numpy.savez or "
                "savez_compressed writes. Use one of these."
            )


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """The numbers behind one header, whose size is compared with what is there before any memory is
    taken."""
    with archive.open(entry) as file:
        content = file.read(entry.file_size + 1)
    stream, name = io.BytesIO(content), entry.filename.removesuffix(".npy")
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, fortran, dtype = read_header(stream)
    if dtype.hasobject:
        raise TransduceError(
            f"{name} holds Python objects, which is a pickle and is not read; expected numbers. "
            "Convert it with .astype(float)."
        )
    if dtype.kind not in "fiub":
        raise TransduceError(
            f"{name} holds {dtype} values; expected real numbers. Convert it with .astype(float)."
        )
    if (
        any(side < 0 for side in shape)
        or math.prod(shape) * dtype.itemsize != len(content) - stream.tell()
    ):
        raise TransduceError(
            f"{name} says that its shape is {shape}, and holds {len(content) - stream.tell()} "
            f"bytes of {dtype}. Write it again."
        )
    array = np.frombuffer(content, dtype, offset=stream.tell()).reshape(
        shape, order="F" if fortran else "C"
    )
    return finite(array.astype(dtype.newbyteorder("=")), name)


def read_json(body: bytes, most: int) -> dict[str, object]:
    """The object that a JSON body is, its lists as arrays of finite numbers in double precision.
    most: the bytes that are allowed, of which each list and each number takes its share.

    >>> read_json(b'{"v": [[0, 1, 0]], "band": 0.9}', most=2**20)
    {'v': array([[0., 1., 0.]]), 'band': 0.9}
    """
    for mark, what, share in ((b"[", "lists", LIST), (b",", "commas", NUMBER)):
        if body.count(mark) > most // share:
            raise TooLargeError(
                f"the JSON body has {body.count(mark)} {what}; expected at most {most // share}. "
                "Send npz instead."
            )
    if body.count(b"{") > OBJECTS or body.count(b'"') > QUOTES:
        raise TransduceError(
            "the JSON body holds many objects or texts; expected one object, such as "
            '{"v": [[0, 0.5, 0]]}.'
        )
    try:
        content = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise MalformedError(
            f"the body is not JSON ({brief(error)}); expected an object such as "
            f'{{"v": [[0, 0.5, 0]]}}.'
        ) from None
    if not isinstance(content, dict):
        raise TransduceError(
            f"the body is a JSON {type(content).__name__}; expected an object such as "
            f'{{"v": [[0, 0.5, 0]]}}.'
        )
    return {
        name: _array(value, name) if isinstance(value, list) else value
        for name, value in content.items()
    }


def _array(values: list, name: str) -> np.ndarray:
    """Nested lists as an array, one level at a time."""
    shape = [len(values)]
    while set(map(type, values)) == {list} and len(shape) < AXES:
        lengths = set(map(len, values))
        if len(lengths) > 1:
            raise TransduceError(
                f"{name} has rows of {min(lengths)} and of {max(lengths)} values; expected every "
                "function on the same points."
            )
        shape.append(*lengths)
        values = list(chain.from_iterable(values))
    if not set(map(type, values)) <= {int, float}:
        raise TransduceError(
            f"{name} holds something else than numbers, or lists of them to {AXES} levels. Send "
            "numbers."
        )
    try:
        return finite(np.array(values, np.float64).reshape(shape), name)
    except OverflowError:
        raise TransduceError(
            f"{name} holds a whole number that is too large for a floating-point one. Send "
            "smaller numbers."
        ) from None


def finite(array: np.ndarray, name: str) -> np.ndarray:
    """The array; raises an error if a value is NaN or infinite."""
    if not np.isfinite(array).all():
        count = int((~np.isfinite(array)).sum())
        raise TransduceError(
            f"{count} of {array.size} values of {name} are not finite; expected numbers. Drop "
            "those or fill the gaps."
        )
    return array


def write_npz(arrays: Mapping[str, object]) -> bytes:
    """Named arrays as the bytes of an npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    return buffer.getvalue()
