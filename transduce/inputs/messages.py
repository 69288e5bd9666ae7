"""Errors and warnings about the user's input: expected, received, remedy."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

PACKAGE = str(Path(__file__).parent.parent)
MOST_NAMED = 8  # rows that a message lists


def problem(received: str, expected: str, remedy: str) -> ValueError:
    """A TransduceError to raise.

    Args:
        received: what the input is.
        expected: what it should be.
        remedy: a whole sentence: what to do.
    """
    from ..types import TransduceError  # here, since types imports torch

    return TransduceError(f"{received}; expected {expected}. {remedy}")


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


def named(rows: Sequence[int] | Sequence[str], noun: str = "row") -> str:
    """The rows in words: "row 3", "rows 3, 7 and 12", or eight of them "and 4 more"."""
    if len(rows) == 1:
        return f"{noun} {rows[0]}"
    if len(rows) > MOST_NAMED:
        shown = ", ".join(str(row) for row in rows[:MOST_NAMED])
        return f"{noun}s {shown} and {len(rows) - MOST_NAMED} more"
    return f"{noun}s {', '.join(str(row) for row in rows[:-1])} and {rows[-1]}"
