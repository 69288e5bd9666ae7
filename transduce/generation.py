"""A family's operators, each with its pairs, drawn once and stored: an xarray dataset in Zarr.

    v, u (operator, example, *axes)      and the family's `parameters`, such as k (operator)

Operator i comes from the generator of (split, seed, i), drawn alone and on one thread, so any
number of workers on one kind of machine gives the same bytes. Operators are stored in blocks, a
shard of each variable to a block, a chunk to an operator.

The store grows in `<path>.partial`, beside the request it answers and a mark for each finished
block, and is renamed at the end: a generation that was killed goes on when the same is asked again.
"""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .files import PathLike, move_into_place, versions
from .random_fields import SPLITS, generator_for, one_thread
from .storage import check_writable
from .types import TransduceError


@dataclass(frozen=True)
class Request:
    """What is asked for; it settles every byte of the store."""

    family: Any
    operators: int
    examples: int
    seed: int
    split: str

    def __post_init__(self) -> None:
        if self.operators < 1 or self.examples < 1:
            raise TransduceError(
                f"{self.operators} operators of {self.examples} examples were asked for; expected "
                "at least one of each."
            )
        if self.split not in SPLITS:
            raise TransduceError(f"split={self.split!r}; expected one of {', '.join(SPLITS)}.")

    @property
    def block(self) -> int:
        """Operators in a shard: few enough to share the work evenly, and not too many files."""
        return min(64, math.ceil(self.operators / 64))

    def members(self, block: int) -> range:
        """The operators of a block."""
        return range(block * self.block, min((block + 1) * self.block, self.operators))

    def attributes(self) -> dict[str, Any]:
        """What the store says of itself."""
        parameters = {
            field.name: getattr(self.family, field.name)
            for field in fields(self.family)
            if field.init
        }
        made_with = {f"{name}_version": version for name, version in versions().items()}
        return {
            "family": type(self.family).__name__,
            **parameters,
            "split": self.split,
            "seed": self.seed,
            **made_with,
        }

    def record(self) -> dict[str, Any]:
        """The request in JSON's own types, to compare with another."""
        return json.loads(
            json.dumps(
                {"operators": self.operators, "examples": self.examples, **self.attributes()}
            )
        )

    def layout(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """The variables of the store: their dtype and dimensions."""
        functions = ("float32", ("operator", "example", *self.family.axes))
        parameters = {
            name: (dtype, ("operator", *dims))
            for name, (dtype, dims) in self.family.parameters.items()
        }
        return {"v": functions, "u": functions, **parameters}

    def draw(self, operator: int) -> dict[str, Any]:
        """The variables of one operator."""
        family = replace(self.family)  # its count of redrawn solutions starts at zero
        generator = generator_for(self.split, self.seed, operator)
        O = family.sample_operator(generator)
        pairs = family.sample_pairs(O, self.examples, generator)
        return {"v": pairs.v, "u": pairs.u, **family.parameters_of(O)}


def generate(
    family: Any,
    path: PathLike,
    operators: int,
    examples: int,
    seed: int = 0,
    split: str = "train",
    workers: int | None = None,
    scheduler: str | None = None,
    force: bool = False,
) -> None:
    """Draw operators of a family that has a solver, and examples of each, into a Zarr store.

    The family says what is stored of an operator beside its pairs: `parameters`, each with dtype
    and dimensions, and `parameters_of(O)`. axes: the dimensions of its functions, with their
    coordinates.

    workers: processes on this machine, by default one a core; call this under `if __name__ ==
    "__main__":` if there are several, for each of them imports the script. scheduler: the address
    of a dask scheduler whose workers see the same folder.

    >>> generate(AdvectionDiffusionReaction(), "adr.zarr", operators=500, examples=100)
    """
    path = Path(path)
    check_writable(path, force, (".zarr",))
    request = Request(family, operators, examples, seed, split)
    unfinished = path.with_name(f"{path.name}.partial").absolute()
    try:
        _prepare(unfinished, request, force)
        _fill(unfinished, request, workers, scheduler)
        for leftover in (unfinished / "store").rglob(
            "*.partial"
        ):  # of a chunk that was being written at the kill
            leftover.unlink()
        move_into_place(unfinished / "store", path)
        shutil.rmtree(unfinished)
    except OSError as error:
        raise TransduceError(
            f"{path} could not be written ({error}). Give a folder that can be, with room left."
        ) from error


def _prepare(unfinished: Path, request: Request, force: bool) -> None:
    """Make the empty store, unless one for the same request is there."""
    record = unfinished / "request.json"
    if record.exists() and (unfinished / "store").exists():
        theirs, ours = json.loads(record.read_text()), request.record()
        if theirs == ours:
            return
        if not force:
            other = ", ".join(
                f"{key} {theirs.get(key)} there and {ours.get(key)} here"
                for key in ours
                if theirs.get(key) != ours.get(key)
            )
            raise TransduceError(
                f"{unfinished.name} is the unfinished generation of something else ({other}). "
                "Ask for that again to finish it, or give --force (force=True) to start anew."
            )
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "done").mkdir(parents=True)
    _create_store(unfinished / "store", request)
    complete = record.with_suffix(".new")
    complete.write_text(json.dumps(request.record()))
    os.replace(complete, record)


def _create_store(store: Path, request: Request) -> None:
    group = zarr.create_group(store, attributes=request.attributes(), zarr_format=3)
    sizes = {"operator": request.operators, "example": request.examples}
    for name, coordinates in request.family.axes.items():
        sizes[name] = len(coordinates)
        group.create_array(
            name, data=coordinates.numpy(), chunks=(len(coordinates),), dimension_names=(name,)
        )
    for name, (dtype, dims) in request.layout().items():
        shape = tuple(sizes[dim] for dim in dims)
        shard, rest = (request.block, *shape[1:]), shape[1:]
        group.create_array(
            name,
            shape=shape,
            dtype=dtype,
            chunks=(1, *rest) if rest else shard,
            shards=shard if rest else None,
            dimension_names=dims,
            fill_value=np.nan
            if dtype.startswith("float")
            else -1,  # no drawn value, so that every shard is written
        )


def _fill(unfinished: Path, request: Request, workers: int | None, scheduler: str | None) -> None:
    """Draw and write the blocks that are not done yet."""
    blocks = range(math.ceil(request.operators / request.block))
    left = [block for block in blocks if not (unfinished / "done" / str(block)).exists()]
    count = sum(len(request.members(block)) for block in left)
    with _progress(request.operators, request.operators - count) as advance:
        for block in _written(
            partial(_write_block, unfinished / "store", request), left, workers, scheduler
        ):
            (unfinished / "done" / str(block)).touch()
            advance(len(request.members(block)))


def _write_block(store: Path, request: Request, block: int) -> int:
    if not store.exists():
        raise TransduceError(
            f"a worker does not find {store.parent.name}; expected a folder that all workers see. "
            "Write to a shared disk."
        )
    with one_thread():
        drawn = [request.draw(operator) for operator in request.members(block)]
    group = zarr.open_group(store, mode="r+")
    members = request.members(block)
    for name in request.layout():
        group[name][members.start : members.stop] = np.stack([operator[name] for operator in drawn])  # type: ignore[index]
    return block


def _written(
    write: Callable[[int], int], blocks: list[int], workers: int | None, scheduler: str | None
) -> Iterator[int]:
    """The blocks as they are finished: here if one worker is enough, else by the workers of a dask
    cluster."""
    workers = min(workers or os.cpu_count() or 1, len(blocks))
    if scheduler is None and workers <= 1:
        yield from map(write, blocks)
        return
    with _client(workers, scheduler) as client:
        from distributed import as_completed

        for future in as_completed(client.map(write, blocks, pure=False)):
            yield future.result()


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Any]:
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise TransduceError(
            "several workers run through dask, which is not installed. Install it: pip install -c "
            "constraints.txt -e '.[train]', or ask "
            "for one worker."
        ) from None
    if scheduler is None:
        options = {"memory_limit": 0, "dashboard_address": None, "silence_logs": logging.ERROR}
        # dask would have workers give memory back at each free, and their solvers ask for it anew:
        # more than twice as slow
        keep_memory = dask.config.set(
            {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}
        )
        with (
            keep_memory,
            LocalCluster(n_workers=workers, threads_per_worker=1, **options) as cluster,
            Client(cluster) as client,
        ):
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
def _progress(total: int, done: int) -> Iterator[Callable[[int], None]]:
    """How many operators there are: a bar on a terminal, ten lines elsewhere."""
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
            print(
                f"{done} of {total} operators, {time.monotonic() - start:.0f} s",
                file=sys.stderr,
                flush=True,
            )

    yield advance
