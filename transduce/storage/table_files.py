"""Tables as open files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .headers import table_of
from .layouts import contents_of, frame_maker
from .open_file import Description, OpenFile, describe_array
from .table import Table
from .text import read_cells


@contextmanager
def open_text(path: Path, most: int | None) -> Iterator[OpenFile]:
    """A table of text."""
    yield table_file(table_of(read_cells(path, most)))


def table_file(given: Table, layout: str = "") -> OpenFile:
    """A table as an open file.

    Args:
        given: the table.
        layout: "wide" if each row is an example and "columns" if each column is, whatever the
            table looks like; default: as it looks.
    """
    table, found = contents_of(given, layout)

    def describe(name: str) -> Description:
        return describe_array(name, found.arrays[name](), coordinate=name == "x")

    return OpenFile(
        table.path,
        list(found.arrays),
        lambda name: found.arrays[name](),
        describe=describe,
        columns=found.candidates,
        whole=found.whole,
        notes=found.notes,
        guesses=found.guesses,
        position=found.position,
        layout=found.layout,
        functions=found.functions,
        singles=found.singles,
        counts=found.counts,
        frame=None if table.names is None else frame_maker(table),
        as_layout=lambda layout: table_file(given, layout),
    )
