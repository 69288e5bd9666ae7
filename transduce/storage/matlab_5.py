"""MATLAB files of version 5: numbers, and structs of numbers.

    file       header of 128 bytes, then elements
    element    type (uint32), size (uint32), data, padding to 8 bytes; up to 4 bytes of data are
               stored in place of the size ("small": the size is in the upper half of the type)
    matrix     elements: flags and class, shape, name, values by columns; all perhaps compressed

scipy reads these files too, but ends the whole process on some damaged ones. Here every size is
compared with what is there. Cells, objects, functions and sparse matrices are listed and not read.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

HEADER, MATRIX, COMPRESSED = 128, 14, 15
FIRST = 8192  # bytes of a compressed matrix that hold its name and shape
MOST = 2**32  # bytes of one matrix, which is also the limit of the format
SPARE = 64  # bytes that a compressed matrix may have beyond its values
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8",
          13: "u8"}  # fmt: skip
CLASSES = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 6: "double", 7: "single",
           8: "int8", 9: "uint8", 10: "int16", 11: "uint16", 12: "int32", 13: "uint32",
           14: "int64", 15: "uint64", 16: "function", 17: "opaque"}  # fmt: skip
NUMBERS = {name: np.dtype({"double": "f8", "single": "f4"}.get(name, name))
           for key, name in CLASSES.items() if 6 <= key <= 15}  # fmt: skip
COMPLEX = 0x800


@dataclass(frozen=True)
class Matrix:
    """A variable that has not been read.

    Args:
        name: of the variable.
        shape: of its array.
        kind: its MATLAB class.
        is_complex: whether it holds complex numbers.
        content: its element, perhaps compressed.
        start: where its values begin in the content, unpacked.
        order: "<" or ">", the order of bytes.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    is_complex: bool
    content: bytes
    start: int
    order: str

    def values(self) -> np.ndarray:
        """Its numbers."""
        most = self.start + 8 * math.prod(self.shape) + SPARE
        kind, data, _ = _element(_unpacked(self.content, most), self.start, self.order)
        stored = np.dtype(self.order + STORED[kind])
        if len(data) != math.prod(self.shape) * stored.itemsize:
            raise ValueError(f"{self.name} has {len(data)} bytes for the shape {self.shape}")
        array = np.frombuffer(data, stored).reshape(self.shape, order="F")
        return np.ascontiguousarray(array, dtype=NUMBERS[self.kind])

    def fields(self, most: int | None = None) -> Iterator[Matrix]:
        """The fields of a struct of size 1 x 1, of at most so many bytes."""
        content = _unpacked(self.content, most or MOST)
        _, size, at = _element(content, self.start, self.order)
        _, text, at = _element(content, at, self.order)
        (length,) = struct.unpack(f"{self.order}i", size)
        for i in range(0, len(text), max(1, length)):
            _, data, at = _element(content, at, self.order)
            if data:
                name = text[i : i + length].split(b"\0")[0].decode("latin-1")
                yield _matrix(data, self.order, name)


def matrices(content: bytes) -> Iterator[Matrix]:
    """The variables of a file."""
    order = {b"IM": "<", b"MI": ">"}[content[126:HEADER]]
    at = HEADER
    while at < len(content):
        kind, data, at = _element(content, at, order)
        if kind == COMPRESSED:
            start = zlib.decompressobj().decompress(data, FIRST)
            found = _matrix(start[8:], order, packed=data)
        elif kind == MATRIX:
            found = _matrix(data, order)
        else:
            raise ValueError(f"an element of the type {kind} in place of a matrix")
        if found.name:  # without a name: what functions refer to
            yield found


def _matrix(data: bytes, order: str, name: str = "", packed: bytes | None = None) -> Matrix:
    """The description at the beginning of a matrix.

    Args:
        data: the matrix, or its first bytes.
        order: of bytes.
        name: if it is a field, whose own name is empty.
        packed: the compressed element, if it is compressed.
    """
    _, flags, at = _element(data, 0, order)
    (flag, _) = struct.unpack(f"{order}2I", flags)
    kind, shape = CLASSES[flag & 0xFF], b""
    if kind != "opaque":
        _, shape, at = _element(data, at, order)
    _, own, at = _element(data, at, order)
    sides = struct.unpack(f"{order}{len(shape) // 4}i", shape)
    if any(side < 0 for side in sides):
        raise ValueError(f"the shape {sides}")
    name, is_complex = name or own.decode("latin-1"), bool(flag & COMPLEX)
    # a compressed element has its own tag of 8 bytes when it is unpacked
    content, start = (data, at) if packed is None else (b"Z" + packed, at + 8)
    return Matrix(name, sides, kind, is_complex, content, start, order)


def _unpacked(content: bytes, most: int = MOST) -> bytes:
    """A matrix, unpacked if it is marked by Z as compressed.

    Args:
        content: the matrix.
        most: bytes that it may take.
    """
    if content[:1] != b"Z":
        return content
    packed = zlib.decompressobj()
    unpacked = packed.decompress(content[1:], most)
    if not packed.eof:
        raise ValueError("compressed values end early, or are more than the shape says")
    return unpacked


def _element(data: bytes, at: int, order: str) -> tuple[int, bytes, int]:
    """The type and the data of an element, and where the next begins."""
    kind, size = struct.unpack_from(f"{order}2I", data, at)
    if kind >> 16:  # small
        kind, size, begin, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        if size > 4:
            raise ValueError(f"a small element of {size} bytes")
    else:
        begin = at + 8
        end = begin + size + (0 if kind == COMPRESSED else -size % 8)
    if begin + size > len(data):
        raise ValueError(f"{size} bytes are announced and {len(data) - begin} are there")
    return kind, data[begin : begin + size], end
