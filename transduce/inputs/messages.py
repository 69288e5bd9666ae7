"""Errors and warnings about the user's input: expected, received, remedy."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

TURN = "Write a function in each row, or give --columns if functions are columns."
PACKAGE = str(Path(__file__).parent.parent)
MOST_NAMED = 8  # rows that a message lists


def problem(received: str, expected: str, remedy: str, in_shell: str = "") -> ValueError:
    """A TransduceError to raise.

    Args:
        received: what the input is.
        expected: what it should be.
        remedy: a whole sentence: what to do.
        in_shell: what to do in the shell, where the remedy is Python.
    """
    from ..types import TransduceError  # here, since types imports torch

    said = f"{received}; expected {expected}."
    return TransduceError(f"{said} {remedy}", f"{said} {in_shell or remedy}")


def caution(text: str, notes: list[str] | None = None) -> None:
    """Warn at the line of the user's code that called the library.

    Args:
        text: the warning.
        notes: the notes of the report, to which the text is added.
    """
    if notes is not None:
        notes.append(text)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def few(names: Sequence[int] | Sequence[str]) -> str:
    """Names with commas between, or eight of them "and 4 more"."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(str, names[:MOST_NAMED])) + more


def named(rows: Sequence[int] | Sequence[str], noun: str = "row", nouns: str = "") -> str:
    """The rows in words: "row 3", "rows 3, 7 and 12", or eight of them "and 4 more".

    Args:
        rows: their numbers or names.
        noun: for one of them.
        nouns: for several; default: the noun with an s.
    """
    nouns = nouns or f"{noun}s"
    if len(rows) == 1:
        return f"{noun} {rows[0]}"
    if len(rows) > MOST_NAMED:
        return f"{nouns} {few(rows)}"
    return f"{nouns} {', '.join(str(row) for row in rows[:-1])} and {rows[-1]}"
