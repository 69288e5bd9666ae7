"""Tables in text files (.csv, .tsv, .txt) as rows of cells.

Delimiters are commas, semicolons, tabs or blanks. A comma may be the decimal mark if it is not the
delimiter. Lines that begin with # are comments; if the last of them before the numbers has as many
cells as the rows, it is the header."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ..files import brief
from ..types import TransduceError
from .numerals import MISSING, number

MOST_BYTES = 256 * 2**20  # of a text file
MOST_COLUMNS = 100_000
SAMPLE = 50  # lines that the delimiter is inferred from
DELIMITERS = (";", "\t", ",")
BLANKS = " "
KINDS = {"v", "u", "v_query"}  # what the first cell of each row may say that the row is
MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
LINE_END = re.compile("\r\n|\n|\r")
SEPARATOR = re.compile(r'"?sep=(.)"?')  # a first line that Excel writes
DECIMAL_COMMA = re.compile(r"^[+-]?\d*,\d+([eE][+-]?\d+)?$")


@dataclass(frozen=True)
class Cells:
    """The rows of a text file.

    Args:
        path: what messages call the file.
        rows: the cells of each row, all rows equally long.
        lines: the number of each row's line in the file, from 0.
        comment: the cells of a comment that may be the header, or None.
        decimal_comma: whether 1,5 is a number.
    """

    path: Path
    rows: list[list[str]]
    lines: list[int]
    comment: list[str] | None = None
    decimal_comma: bool = False

    @property
    def width(self) -> int:
        return len(self.rows[-1])


def read_cells(path: Path, most: int | None = None) -> Cells:
    """The rows of a text file, as long as each other.

    Args:
        path: the file.
        most: the largest size of the file in bytes; default: MOST_BYTES.
    """
    size, most = path.stat().st_size, most or MOST_BYTES
    if size > most:
        raise TransduceError(
            f"{path} has {size / 2**20:.0f} MiB of text; expected at most {most / 2**20:.0f} MiB. "
            "Write it as .npz or .parquet, which are read faster."
        )
    return cells_of(path, decoded(path.read_bytes(), path))


def decoded(content: bytes, path: Path) -> str:
    """Text in UTF-8 or UTF-16 with a byte order mark; else in Latin-1, as older programs write."""
    encoding = next((name for mark, name in MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if "\0" in text:
        raise TransduceError(
            f"{path} should hold text by its suffix, but holds binary data; expected numbers with "
            "commas between. Rename it to the suffix of its format."
        )
    return text


def cells_of(path: Path, text: str) -> Cells:
    """The rows in a text."""
    lines = LINE_END.split(text)
    stated = next((SEPARATOR.fullmatch(line.strip()) for line in lines if line.strip(" ")), None)
    where = [i for i, line in enumerate(lines) if line.strip(" ") and line.lstrip()[:1] != "#"]
    where = where[1:] if stated else where
    while where and not lines[where[-1]].strip(" \t,;"):  # empty rows at the end, as of Excel
        where.pop()
    if not where:
        raise TransduceError(
            f"{path} is empty; expected a row of numbers for each function. Write it again."
        )
    data = [lines[i] for i in where]
    delimiter = stated[1] if stated else delimiter_of(data[:SAMPLE])
    rows = _equally_long(_split(data, delimiter, path), where, path)
    before = [line.lstrip("# ") for line in lines[: where[0]] if line.strip(" ") and not stated]
    comment = _split(before[-1:], delimiter, path)
    comma = delimiter != "," and _has_decimal_comma(rows)
    return Cells(path, rows, where, comment[0] if comment else None, comma)


def delimiter_of(lines: list[str]) -> str:
    """The delimiter that splits most lines into equally many cells, two or more."""
    shares = {mark: _agreement(lines, mark) for mark in (*DELIMITERS, BLANKS)}
    best = max(shares.values())
    if not best:
        return ","
    return next(mark for mark, share in shares.items() if share >= min(best, 0.9))


def _agreement(lines: list[str], delimiter: str) -> float:
    """The share of lines that have the most frequent number of cells, if that is 2 or more."""
    try:
        counts = Counter(len(_row(line, delimiter)) for line in lines)
    except csv.Error:
        return 0.0
    cells, frequency = counts.most_common(1)[0]
    return frequency / len(lines) if cells > 1 else 0.0


def _row(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([_plain(line, delimiter)], delimiter=delimiter), [])


def _plain(line: str, delimiter: str) -> str:
    """A line with one blank between cells, if blanks stand between them."""
    return " ".join(line.split()) if delimiter == BLANKS else line


def _split(lines: list[str], delimiter: str, path: Path) -> list[list[str]]:
    """The cells of each line, without blanks around them."""
    try:
        rows = list(csv.reader((_plain(line, delimiter) for line in lines), delimiter=delimiter))
        if len(rows) != len(lines):  # quotation marks that do not close
            rows = [_row(line, delimiter) for line in lines]
        padded = any(" " in line for line in lines) and delimiter != BLANKS
        return [[c.strip(' "') for c in row] for row in rows] if padded else rows
    except csv.Error as error:
        raise TransduceError(
            f"{path} cannot be read as a table ({brief(error)}); expected rows of numbers. Write "
            "it again, without quotation marks."
        ) from None


def _equally_long(rows: list[list[str]], lines: list[int], path: Path) -> list[list[str]]:
    """The rows, all of one length. In a marked table those of one kind are as long as each other,
    and shorter ones get empty cells."""
    kinds = [row[0] if row else "" for row in rows]
    if not set(kinds) <= KINDS:
        return _of_one_length(rows, lines, path)
    found: dict[int, list[str]] = {}
    for kind in set(kinds):
        where = [i for i, one in enumerate(kinds) if one == kind]
        own = _of_one_length([rows[i] for i in where], [lines[i] for i in where], path)
        found |= dict(zip(where, own, strict=True))
    width = max(map(len, found.values()))
    return [found[i] + [""] * (width - len(found[i])) for i in range(len(rows))]


def _of_one_length(rows: list[list[str]], lines: list[int], path: Path) -> list[list[str]]:
    """The rows without empty columns at their end. A header may lack the name of the labels."""
    used = [len(row) if row and row[-1] else _used(row) for row in rows]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    if width > MOST_COLUMNS:
        raise TransduceError(
            f"{path} has {width} columns; expected at most {MOST_COLUMNS}. Write it as .npz."
        )
    if max(used) < width:  # empty columns at the end
        width = max(used)
    rows = [row[:width] if n <= width else row for row, n in zip(rows, used, strict=True)]
    if len(rows) > 1 and len(rows[0]) == width - 1 and rows[0][0] not in KINDS:  # as R does
        rows = [["", *rows[0]], *rows[1:]]
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise TransduceError(
                f"line {line + 1} of {path} has {len(row)} cells, and most lines have {width}; "
                "expected equally many in each. Complete that line, with NA for values that are "
                "missing, or leave it out."
            )
    return rows


def _used(row: list[str]) -> int:
    """The number of cells without empty ones at the end."""
    return len(row) - next((i for i, cell in enumerate(reversed(row)) if cell), len(row))


def _has_decimal_comma(rows: list[list[str]]) -> bool:
    """Whether the first rows hold numbers like 1,5 and none like 1.5."""
    cells = [cell for row in rows[:SAMPLE] for cell in row if cell not in MISSING]
    commas = any(DECIMAL_COMMA.match(cell) for cell in cells)
    return commas and not any("." in cell and number(cell) is not None for cell in cells)
