"""File formats by suffix and by first bytes, and checks before a file is read or written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..files import PathLike, brief
from ..types import TransduceError

FORMATS = {
    ".npz": ("npz",),
    ".nc": ("NetCDF", "HDF5"),
    ".h5": ("HDF5",),
    ".hdf5": ("HDF5",),
    ".zarr": ("Zarr",),
    ".csv": ("text",),
    ".tsv": ("text",),
    ".txt": ("text",),
    ".npy": ("npy",),
    ".mat": ("MATLAB 5", "MATLAB 7.3"),
    ".parquet": ("Parquet",),
    ".rda": ("R",),
    ".rdata": ("R",),
    ".rds": ("R",),
}
READ_ONLY = (".rda", ".rdata", ".rds")
WRITTEN = tuple(suffix for suffix in FORMATS if suffix not in READ_ONLY)
FIRST_BYTES = {
    b"PK": "npz",
    b"CDF": "NetCDF",
    b"\x89HDF": "HDF5",
    b"\x93NUMPY": "npy",
    b"MATLAB 5": "MATLAB 5",
    b"MATLAB 7": "MATLAB 7.3",
    b"PAR1": "Parquet",
    b"RDX": "R",
    b"RDA": "R",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}
PACKED = ("gzip", "bzip2", "xz")  # how R compresses its files
BARE = (b"X\n", b"A\n", b"B\n")  # how files of saveRDS begin that are not compressed
REMEDIES = {
    ".mat": "In MATLAB or Octave, save it again with the option -v7.",
    ".rda": "In R, save it again by save().",
}
ZARR_METADATA = ("zarr.json", ".zgroup", ".zmetadata", ".zarray")


def check_writable(path: PathLike, force: bool = False, suffixes: Sequence[str] = WRITTEN) -> None:
    """Raise an error if `path` cannot be written.

    Args:
        path: the file or Zarr store to write.
        force: whether an existing file may be replaced.
        suffixes: the suffixes that are allowed.
    """
    path = Path(path)
    if suffix_of(path) not in suffixes:
        raise TransduceError(
            f"{path} ends in {path.suffix!r}; expected one of {', '.join(suffixes)}. Rename it."
        )
    if not path.parent.is_dir():
        raise TransduceError(
            f"{path} cannot be written: {path.parent} is not a folder. Make it first, or give "
            "another path."
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise TransduceError(
            f"{path} cannot be written: {path.parent} may not be written to. Give another path."
        )
    if path.exists() and not force:
        raise TransduceError(
            f"{path} exists already. Give another path, or force=True to replace it."
        )
    if path.is_dir() and not _is_zarr(path) and any(path.iterdir()):
        raise TransduceError(
            f"{path} is a folder of other things, which is not replaced. Give another path."
        )


def suffix_of(path: Path) -> str:
    """The suffix in lower case: R's files end in .RData."""
    return path.suffix.lower()


def check_readable(path: Path) -> None:
    """Raise an error if the suffix is unknown, the file is missing, or its first bytes belong to
    another format."""
    suffix = suffix_of(path)
    if suffix not in FORMATS:
        raise TransduceError(
            f"{path} ends in {path.suffix!r}; expected one of {', '.join(FORMATS)}. Convert it, "
            "as by np.savez."
        )
    if not path.exists():
        raise TransduceError(f"there is no file {path}. Check the path.")
    found = format_of(path)
    if found not in FORMATS[suffix]:
        problem = (
            f"it is {found}"
            if found
            else "its first bytes are not: it is damaged or something else"
        )
        raise TransduceError(
            f"{path} should be {FORMATS[suffix][0]} by its suffix, but {problem}. "
            f"{REMEDIES.get(suffix, 'Rename it or write it again.')}"
        )


def format_of(path: Path) -> str | None:
    """The format of a file by its first bytes; None if they are unknown. Text has no first bytes
    of its own: it is what is called so and is no other format."""
    if path.is_dir():
        return "Zarr" if _is_zarr(path) else "a folder"
    try:
        with path.open("rb") as file:
            first = file.read(8)
    except OSError as error:
        raise TransduceError(
            f"{path} cannot be opened ({brief(error)}). Check its permissions."
        ) from error
    found = next((name for magic, name in FIRST_BYTES.items() if first.startswith(magic)), None)
    expected = FORMATS.get(suffix_of(path), ())
    if expected == ("R",) and (found in PACKED or first[:2] in BARE):
        return "R"
    return "text" if found is None and expected == ("text",) else found


def _is_zarr(path: Path) -> bool:
    return any((path / name).exists() for name in ZARR_METADATA)
