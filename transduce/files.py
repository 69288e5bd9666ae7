"""Files written whole or not at all, where data is looked for, and what a result says of where it
comes from."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .types import TransduceError

PathLike = str | os.PathLike[str]
BESIDE = Path(__file__).parents[2] / "shared" / "data"


def data_folders() -> list[Path]:
    """Where data is looked for: the folder that TRANSDUCE_DATA names, then `shared/data` beside the
    project's."""
    named = os.environ.get("TRANSDUCE_DATA")
    return [*([Path(named)] if named else []), BESIDE]


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` on success and goes away on
    failure."""
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        move_into_place(temporary, path)
    except OSError as error:
        raise TransduceError(
            f"{path} could not be written ({brief(error)}). Give a folder that can be, with room "
            "left."
        ) from error
    finally:
        _remove(temporary)


def move_into_place(new: Path, path: Path) -> None:
    """Rename `new` to `path`. What was there is kept until the new one stands, since a folder
    cannot be replaced in one step."""
    if not path.is_dir() and not (path.exists() and new.is_dir()):
        os.replace(new, path)
        return
    old = path.with_name(f".{path.stem}.{os.getpid()}.old")
    os.rename(path, old)
    try:
        os.rename(new, path)
    except OSError:
        os.rename(old, path)
        raise
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        with suppress(NotADirectoryError):
            path.unlink(missing_ok=True)


def brief(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error) or type(error).__name__).splitlines()[0]


def versions() -> dict[str, str]:
    """The versions of transduce ("0" in a source tree that is not installed), torch and numpy, for
    the record of a result."""
    installed = next((found.version for found in metadata.distributions(name="transduce")), "0")
    return {"transduce": installed, "torch": str(torch.__version__), "numpy": np.__version__}


def provenance() -> dict[str, Any]:
    """Versions, commit and machine: what a result says of where it comes from."""
    return {
        "versions": versions() | {"python": platform.python_version()},
        "commit": _commit(),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cpus": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
    }


def _commit() -> str | None:
    """The commit of this source tree, if it is one, and whether the library has changed since."""
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return None
    try:
        said = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=root, check=False
        )
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", "transduce"],
            capture_output=True,
            text=True,
            cwd=root,
            check=False,
        )
    except OSError:
        return None
    return said.stdout.strip() + " and changes" * bool(changed.stdout.strip()) or None
