"""Atomic file writes, the folders that data is read from, the provenance of results, and the
commands that install optional packages."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .types import TransduceError

PathLike = str | os.PathLike[str]


def source_checkout() -> Path | None:
    """The folder of the source repository that this code runs from, or None if it is installed."""
    root = Path(__file__).parents[1]
    return root if (root / "pyproject.toml").is_file() else None


def data_folders() -> list[Path]:
    """The folders that may hold data: the one that TRANSDUCE_DATA names, then, in a source
    checkout, `../shared/data`."""
    named, checkout = os.environ.get("TRANSDUCE_DATA"), source_checkout()
    folders = [Path(named)] if named else []
    return folders if checkout is None else [*folders, checkout.parent / "shared" / "data"]


def not_found_in(folders: Sequence[Path]) -> str:
    """The part of an error message that says which folders do not hold a file."""
    if not folders:
        return "not found (TRANSDUCE_DATA is not set)"
    return f"not in {' or '.join(map(str, folders))}"


def pip_install(extra: str) -> str:
    """The command that installs the packages of an optional extra, for error messages.

    >>> pip_install("train")
    "pip install 'transduce[train]'"
    """
    return f"pip install 'transduce[{extra}]'"


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """A temporary path in the same folder to write to. It replaces `path` on success and is removed
    on failure."""
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
    """Rename `new` to `path`. A folder cannot be replaced in one step, so an old one is kept under
    another name until the new one is in place."""
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
    """The first line of an error's message."""
    return (str(error) or type(error).__name__).splitlines()[0]


def versions() -> dict[str, str]:
    """The versions of transduce ("0" in a source tree that is not installed), torch and numpy, for
    the record of a result."""
    installed = next((found.version for found in metadata.distributions(name="transduce")), "0")
    return {"transduce": installed, "torch": str(torch.__version__), "numpy": np.__version__}


def provenance() -> dict[str, Any]:
    """Versions, commit and machine, for the record of a result."""
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
    """The commit of the source checkout, and whether the library has changed since."""
    root = source_checkout()
    if root is None or not (root / ".git").exists():
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
