"""Warnings of a request, by thread; `warnings.catch_warnings` does not support threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_told = threading.local()  # .warnings: those of the work that a thread does, while it collects them


@contextmanager
def telling_warnings() -> Iterator[None]:
    """For as long as this lasts, warnings go to who collects them in their thread, every time, and
    nowhere else."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: getattr(_told, "warnings", []).append(
            str(message)
        )
        yield


@contextmanager
def collecting_warnings() -> Iterator[list[str]]:
    """The warnings of this thread from here to the end of the block."""
    said: list[str] = []
    _told.warnings = said
    try:
        yield said
    finally:
        del _told.warnings
