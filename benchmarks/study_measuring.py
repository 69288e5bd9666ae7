"""What the benchmarks of parameter studies share: kept measurements, and results on disk."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.study_functions import STUDIES, Study
from paper.lab import Ledger
from transduce.files import replacing
from transduce.report import Row, markdown_table, write_rows

RESULTS = Path("results/studies")


def chosen(only: str) -> list[Study]:
    """The studies of these names, with commas; all of them for none."""
    return [study for study in STUDIES.values() if not only or study.name in only.split(",")]


def folder(out: Path, quick: bool) -> Path:
    """Where results go: quick ones never among the real ones."""
    return out.with_name(f"{out.name}-quick") if quick and out == RESULTS else out


def kept(ledger: Ledger, key: Row, measure: Callable[[], Any]) -> Any:
    """The value of a measurement, which is made unless the ledger has it."""
    if key not in ledger:
        begun = time.perf_counter()
        value = measure()
        ledger.add(key, value, time.perf_counter() - begun)
    return ledger[key]["value"]


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def write(
    name: str,
    out: Path,
    rows: Sequence[Row],
    lines: Sequence[Row],
    draw: Callable[[Sequence[Row], Path], None],
    **about: Any,
) -> None:
    """Write rows, table and figure, and print the table.

    Args:
        name: of the files, without an ending.
        out: the folder.
        rows: all measurements.
        lines: of the table.
        draw: makes the figure from the rows.
        about: command, seed, requirements and origin.
    """
    write_rows(out / f"{name}.json", rows, **about)
    with replacing(out / f"{name}.md") as partial:
        partial.write_text(markdown_table(lines))
    draw(rows, out / name)
    print(markdown_table(lines))
