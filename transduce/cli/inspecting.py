"""transduce inspect: what files hold, and the command that regresses from them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .printing import say

if TYPE_CHECKING:
    from ..storage.suggesting import Suggestion


def inspect(
    files: Annotated[
        list[Path],
        typer.Argument(help="A file of pairs, or two: pairs and queries, or inputs and outputs."),
    ],
) -> None:
    """Say what files hold (shapes, ranges, units, grids, gaps), and the command to run next."""
    from ..storage.inspecting import lines_about
    from ..storage.suggesting import suggestion
    from ..types import TransduceError

    if len(files) > 2:
        raise TransduceError(
            f"{len(files)} files; expected one, or two: pairs and queries, or inputs and outputs. "
            "Name two."
        )
    found: Suggestion | TransduceError
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the notes of the files say the same
            found = suggestion(files)
    except TransduceError as error:
        found = error
    columns = not isinstance(found, TransduceError) and found.choice.columns
    for line in (line for file in files for line in lines_about(file, columns)):
        say(line)
    if isinstance(found, TransduceError):
        say(f"No command yet: {found}")
        return
    if found.parameters:
        say(f"Parameters: {', '.join(found.parameters)}.")
    say("Next, and check that v and u are right:" if found.guessed else "Next:")
    say(f"  {found.command()}")
