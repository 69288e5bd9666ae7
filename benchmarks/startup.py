"""How long the library and its command line take to start:  python -m benchmarks.startup

Each line is a Python process of its own; all take turns, and the medians are shown. `seconds` are
of the clock, `processor` is processor time, which holds still on a busy machine. Imports are
compared with `import torch` in the same run; the interpreter's own start is part of every line.
Writes results/benchmarks/startup.json."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from transduce.cli import app
from transduce.files import provenance
from transduce.report import markdown_table, write_rows

TORCH = "import torch"
IMPORTS = ("import transduce", "from transduce import Transducer")
COMMANDS = [command.callback.__name__ for command in app.registered_commands if command.callback]
ASKED = ["--version", "--help", *(f"{name} --help" for name in COMMANDS)]
BEYOND_TORCH, COMMAND = 0.4, 0.5  # at most, in seconds

Times = tuple[float, float]


def arguments_of(what: str) -> list[str]:
    """The arguments of the Python process that a line stands for."""
    if what.startswith("transduce "):
        return ["-m", *what.split()]
    return ["-c", what]


def timed(what: str) -> Times:
    """Seconds and processor time of one process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments_of(what)], stdout=subprocess.DEVNULL, check=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(what: str, times: Times, torch: Times) -> dict[str, str | float | None]:
    seconds, processor = times
    line: dict[str, str | float | None] = {
        "what": what,
        "seconds": seconds,
        "processor": processor,
        "ratio to torch": processor / torch[1],
        "beyond torch": processor - torch[1] if what in IMPORTS else None,
    }
    if what == TORCH:
        return line | {"asked": ""}
    return line | {
        "asked": f"<= {BEYOND_TORCH} s beyond torch" if what in IMPORTS else f"<= {COMMAND} s"
    }


def main(
    repeats: Annotated[int, typer.Option(min=1, help="How many processes of each.")] = 11,
    out: Annotated[Path, typer.Option(help="The folder for startup.json.")] = Path(
        "results/benchmarks"
    ),
) -> None:
    """Time every start, print the table, write the rows."""
    whats = [TORCH, *IMPORTS, *(f"transduce {arguments}" for arguments in ASKED)]
    for what in whats:
        timed(what)  # reads the files and compiles them
    rounds = [{what: timed(what) for what in whats} for _ in range(repeats)]
    medians: dict[str, Times] = {
        what: (median(t[what][0] for t in rounds), median(t[what][1] for t in rounds))
        for what in whats
    }
    rows = [row(what, times, medians[TORCH]) for what, times in medians.items()]
    print(markdown_table(rows))
    command = " ".join(["python -m benchmarks.startup", *sys.argv[1:]])
    write_rows(out / "startup.json", rows, command=command, seed=None, **provenance())


if __name__ == "__main__":
    typer.run(main)
