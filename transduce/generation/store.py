"""The store: operators in blocks, one shard per block and variable, one chunk per operator.

It grows in `<path>.partial`, next to the request it answers and a mark for each finished block, and
is renamed at the end. A generation that was killed resumes when the same request comes again."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import zarr

from ..files import PathLike, move_into_place
from ..random_fields import one_thread
from ..storage import check_writable
from ..types import TransduceError
from .request import Request, SolverFamily
from .workers import completed, progress


def generate(
    family: SolverFamily,
    path: PathLike,
    operators: int,
    examples: int,
    *,
    seed: int = 0,
    split: str = "train",
    workers: int | None = None,
    scheduler: str | None = None,
    force: bool = False,
) -> None:
    """Draw operators of a family that has a solver, and examples of each, into a Zarr store.

    Args:
        family: has a solver, and says with `axes`, `parameters` and `parameters_of` what is stored.
        path: the store to write, ending in .zarr.
        operators: how many operators.
        examples: how many pairs of each.
        seed: of all draws.
        split: "train", "validation" or "test"; their draws never meet.
        workers: processes on this machine; default: one per core. With several, call this under
            `if __name__ == "__main__":`, because each of them imports the script.
        scheduler: the address of a dask scheduler, whose workers see the same folder.
        force: whether to replace what is at `path`.

    >>> generate(AdvectionDiffusionReaction(), "adr.zarr", operators=500, examples=100)
    """
    path = Path(path)
    check_writable(path, force, (".zarr",))
    request = Request(family, operators, examples, seed, split)
    unfinished = path.with_name(f"{path.name}.partial").absolute()
    try:
        prepare(unfinished, request, force)
        fill(unfinished, request, workers, scheduler)
        # a chunk that was being written when the process was killed
        for leftover in (unfinished / "store").rglob("*.partial"):
            leftover.unlink()
        move_into_place(unfinished / "store", path)
        shutil.rmtree(unfinished)
    except OSError as error:
        raise TransduceError(
            f"{path} could not be written ({error}). Give a folder that can be, with room left."
        ) from error


def prepare(unfinished: Path, request: Request, force: bool) -> None:
    """Create the empty store, unless one for the same request is there."""
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
                "Ask for that again to finish it, or give force=True to start again."
            )
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "done").mkdir(parents=True)
    create(unfinished / "store", request)
    complete = record.with_suffix(".new")
    complete.write_text(json.dumps(request.record()))
    os.replace(complete, record)


def create(store: Path, request: Request) -> None:
    """Create the variables of the store, all empty."""
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
            # a value that is never drawn, so that every shard is written
            fill_value=np.nan if dtype.startswith("float") else -1,
        )


def fill(unfinished: Path, request: Request, workers: int | None, scheduler: str | None) -> None:
    """Draw and write the blocks that are not done yet."""
    blocks = [block for block in request.blocks if not (unfinished / "done" / str(block)).exists()]
    missing = sum(len(request.members(block)) for block in blocks)
    write = partial(write_block, unfinished / "store", request)
    with progress(request.operators, request.operators - missing) as advance:
        for block in completed(write, blocks, workers, scheduler):
            (unfinished / "done" / str(block)).touch()
            advance(len(request.members(block)))


def write_block(store: Path, request: Request, block: int) -> int:
    """Draw and write one block; returns its number."""
    if not store.exists():
        raise TransduceError(
            f"a worker does not find {store.parent.name}; expected a folder that all workers see. "
            "Write to a shared disk."
        )
    members = request.members(block)
    with one_thread():
        drawn = [request.draw(operator) for operator in members]
    group = zarr.open_group(store, mode="r+")
    for name in request.layout():
        values = np.stack([operator[name] for operator in drawn])
        group[name][members.start : members.stop] = values  # type: ignore[index]
    return block
