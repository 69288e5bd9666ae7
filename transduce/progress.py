"""The progress of training: a live line on a terminal, plain lines elsewhere, JSON lines in a file,
and TensorBoard if it is installed."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from .types import TransduceError

if TYPE_CHECKING:
    from rich.live import Live
    from torch.utils.tensorboard import SummaryWriter


class Journal:
    """The record of a training run, as a context manager.

    Args:
        folder: the folder of log.jsonl and of TensorBoard's files; None writes no files.
        steps: the last step of the run.
        start: the step of the checkpoint that the run resumes from, or 0.
        tasks: tasks in each step, for the rate that is shown.
        quiet: show and write nothing.
        every: steps between two lines.
    """

    def __init__(
        self,
        folder: Path | None,
        steps: int,
        start: int,
        tasks: int,
        quiet: bool = False,
        every: int = 100,
    ):
        self.folder, self.steps, self.start = folder, steps, start
        self.tasks, self.quiet, self.every = tasks, quiet, every

    def __enter__(self) -> Journal:
        self.begun, self.before = time.monotonic(), 0.0
        self.live: Live | None = None
        self.file: TextIO | None = None
        self.board: SummaryWriter | None = None
        if self.quiet:
            return self
        if self.folder is not None:
            self._open(self.folder)
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(stderr=True), refresh_per_second=4)
            self.live.start()
        return self

    def _open(self, folder: Path) -> None:
        path = folder / "log.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lines = self._earlier(path) if path.exists() else []
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            self.file = path.open("a")
        except OSError as error:
            raise TransduceError(
                f"cannot write to {folder} ({error}). Give a folder that can be written to."
            ) from None
        self.before = float(lines[-1]["seconds"] or 0) if lines else 0.0
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self.board = SummaryWriter(str(folder), purge_step=self.start)

    def _earlier(self, path: Path) -> list[dict[str, int | float | None]]:
        """The lines up to the checkpoint. The steps after it run again."""
        try:
            lines = [
                json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")
            ]
            return [line for line in lines if line["step"] <= self.start and line["seconds"] >= 0]
        except (ValueError, KeyError, TypeError):
            raise TransduceError(
                f"{path} is not a log that transduce wrote. Move it away, or give another folder."
            ) from None

    def step(self, step: int, loss: float, lr: float, error: float | None, measured: bool) -> None:
        """Show one step, and record it if it is due.

        Args:
            step: the step, from 1.
            loss: its training loss.
            lr: its learning rate.
            error: the last validation error, or None before the first.
            measured: whether `error` was measured at this step.
        """
        if self.quiet:
            return
        seconds = time.monotonic() - self.begun
        rate = (step - self.start) / seconds
        left = (self.steps - step) / rate
        text = f"step {step}/{self.steps}  loss {loss:.3e}"
        text += "" if error is None else f"  validation {error:.3e}"
        text += f"  {rate * self.tasks:.0f} tasks/s  {int(left // 60)}:{int(left % 60):02d} left"
        if self.live is not None:
            self.live.update(text)
        if step % self.every == 0 or step == self.steps or measured:
            self._record(
                step,
                text,
                loss=loss,
                lr=lr,
                validation=error if measured else None,
                seconds=round(self.before + seconds, 2),
            )

    def _record(self, step: int, text: str, **values: int | float | None) -> None:
        if self.live is None:
            print(text, file=sys.stderr, flush=True)
        if self.file is not None:
            self.file.write(json.dumps({"step": step, **values}) + "\n")
            self.file.flush()
        if self.board is not None:
            for name, value in values.items():
                if value is not None:
                    self.board.add_scalar(name, value, step)

    def __exit__(self, *_: object) -> None:
        for thing in (self.file, self.board):
            if thing is not None:
                thing.close()
        if self.live is not None:
            self.live.stop()
