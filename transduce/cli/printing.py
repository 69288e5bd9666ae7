"""Output of the commands. Of the processes that torchrun starts, only the first prints results."""

from __future__ import annotations

import os
import sys
from itertools import groupby
from operator import itemgetter
from typing import Any

OPTIONS = {  # arguments that messages name, as the shell has them
    "force=True": "--force",
    "missing='drop'": "--missing drop",
    "Give groups= with": "Add a column groups with",
    "Give x= for": "Write x to the file for",
}


def complain(kind: str, message: object) -> None:
    """Print an error or a warning as one line, with the options of the shell."""
    line = " ".join(str(getattr(message, "in_shell", message)).split())
    for argument, option in OPTIONS.items():
        line = line.replace(argument, option)
    print(f"transduce: {kind}: {line}", file=sys.stderr)


def say(line: str) -> None:
    """Print a result."""
    if int(os.environ.get("RANK", 0)) == 0:
        print(line)


def print_table(rows: list[dict[str, Any]], title: str) -> None:
    """Print a block for each n with a line for each regressor, the smallest mean in bold."""
    from rich.console import Console

    from ..report import rich_table

    shown = ("n", "regressor", "mean", "median", "pooled", "relative_l2", "seconds")
    ordered = sorted(rows, key=itemgetter("n"))
    least = {
        n: min(row["mean"] for row in group) for n, group in groupby(ordered, key=itemgetter("n"))
    }
    table = rich_table([{column: row[column] for column in shown} for row in ordered], title)
    table.columns[1].overflow = "fold"
    for line, row, following in zip(table.rows, ordered, [*ordered[1:], None], strict=True):
        line.style = "bold" if row["mean"] == least[row["n"]] else ""
        line.end_section = following is not None and following["n"] != row["n"]
    width = None if sys.stdout.isatty() else 1000  # without a terminal, no name is cut
    Console(width=width, quiet=int(os.environ.get("RANK", 0)) > 0).print(table)
