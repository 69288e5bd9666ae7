"""Blocks of work on one process, on several, or on a dask cluster; and how far they are."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..types import TransduceError


def completed(
    work: Callable[[int], int], blocks: list[int], workers: int | None, scheduler: str | None
) -> Iterator[int]:
    """Work on all blocks; yields the number of each as it is finished.

    Args:
        work: works on one block and returns its number.
        blocks: the numbers of the blocks.
        workers: processes on this machine; default: one per core. One works in this process.
        scheduler: the address of a dask scheduler to use instead.
    """
    workers = min(workers or os.cpu_count() or 1, len(blocks))
    if scheduler is None and workers <= 1:
        yield from map(work, blocks)
        return
    with connected(workers, scheduler) as client:
        from distributed import as_completed

        for future in as_completed(client.map(work, blocks, pure=False)):
            yield future.result()


@contextmanager
def connected(workers: int, scheduler: str | None) -> Iterator[Any]:
    """A dask client: of a cluster on this machine, or of the one at `scheduler`."""
    try:
        from distributed import Client
    except ImportError:
        raise TransduceError(
            "several workers run through dask, which is not installed. Install it: "
            "pip install 'transduce[train]', or ask for one worker."
        ) from None
    if scheduler is None:
        with local_client(workers) as client:
            yield client
        return
    try:
        client = Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise TransduceError(
            f"no dask scheduler answers at {scheduler!r}; expected its address, like "
            "tcp://host:8786. Start one."
        ) from error
    with client, client.as_current():
        yield client


@contextmanager
def local_client(workers: int) -> Iterator[Any]:
    """A dask client of a cluster of processes on this machine."""
    import dask
    from distributed import Client, LocalCluster

    # By default dask makes workers return memory at each free. Solvers then request it again, which
    # is more than twice as slow.
    keep_memory = dask.config.set(
        {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}
    )
    options = {"memory_limit": 0, "dashboard_address": None, "silence_logs": logging.ERROR}
    with (
        keep_memory,
        LocalCluster(n_workers=workers, threads_per_worker=1, **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def progress(total: int, done: int) -> Iterator[Callable[[int], None]]:
    """A function that counts finished operators: a bar on a terminal, ten lines elsewhere."""
    if sys.stderr.isatty():
        columns = (
            TextColumn("operators"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=total, completed=done)
            yield lambda count: bar.advance(task, count)
        return
    start = time.monotonic()

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if 10 * done // total > 10 * (done - count) // total:
            seconds = time.monotonic() - start
            print(f"{done} of {total} operators, {seconds:.0f} s", file=sys.stderr, flush=True)

    yield advance
