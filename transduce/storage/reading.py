"""Variables of files as arrays. Each format has one function that opens it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..files import PathLike, brief
from ..types import Array, ExampleSet, TransduceError, is_uniform
from .formats import check_readable, format_of


class MissingVariableError(TransduceError):
    """The file has no variable of this name."""


@dataclass(frozen=True)
class OpenFile:
    """An open file.

    Args:
        path: what error messages call the file.
        names: the names of its variables.
        load: reads the variable of a name.
        x_is_positions: whether a variable x always holds positions of scattered sensors. In the
            formats of xarray, x is often the coordinate of a uniform grid.
    """

    path: Path
    names: Sequence[str]
    load: Callable[[str], Array]
    x_is_positions: bool = False

    def fetch(self, name: str) -> Array:
        """The variable of this name."""
        if name not in self.names:
            raise MissingVariableError(
                f"{self.path} has no variable {name!r}; it has "
                f"{', '.join(sorted(self.names)) or 'none'}. Name one of these that all files "
                "have (--v, --u, --x), or rename it."
            )
        try:
            return self.load(name)
        except ValueError as error:
            if "pickle" not in str(error):
                raise
            raise TransduceError(
                f"{name} in {self.path} holds Python objects, which is a pickle and is not read; "
                "expected numbers. Convert it with .astype(float)."
            ) from None

    def positions(self, name: str, keep_uniform: bool = False) -> Array | None:
        """The positions of scattered sensors; None if functions are on a uniform grid.

        Args:
            name: of the variable. It may be missing if it is "x", which is the default name.
            keep_uniform: whether to return the coordinate of a uniform grid as well.
        """
        if name == "x" and name not in self.names:
            return None
        x = self.fetch(name)
        keep = keep_uniform or self.x_is_positions or not is_uniform(np.asarray(x))
        return x if keep else None


def read_examples(path: PathLike, v: str = "v", u: str = "u", x: str = "x") -> ExampleSet:
    """The example pairs in a file.

    In an .npz, x holds the positions of the sensors. In the other formats x is often the
    coordinate of a grid: there it means scattered sensors only if its steps are unequal.

    Args:
        path: the file.
        v: the name of the variable of inputs.
        u: the name of the variable of outputs.
        x: the name of the variable of positions, which may be missing.

    >>> read_examples("pairs.npz")
    ExampleSet(n=50, v=(50, 101), u=(50, 101))
    """
    with opened(path) as file:
        return ExampleSet(file.fetch(v), file.fetch(u), file.positions(x))


def read_functions(
    path: PathLike, v: str = "v", x: str = "x", keep_uniform: bool = False
) -> tuple[Array, Array | None]:
    """Functions without outputs, and the positions of their sensors if these are scattered.

    Args:
        path: the file.
        v: the name of the variable of functions.
        x: the name of the variable of positions, which may be missing.
        keep_uniform: whether to return the positions of a uniform grid as well.
    """
    with opened(path) as file:
        return file.fetch(v), file.positions(x, keep_uniform) if x in file.names else None


def read_variable(path: PathLike, name: str) -> Array:
    """One variable of a file."""
    with opened(path) as file:
        return file.fetch(name)


@contextmanager
def opened(path: PathLike) -> Iterator[OpenFile]:
    """An open file, whose variables are read one by one."""
    path = Path(path)
    check_readable(path)
    try:
        with _open_npz(path) if path.suffix == ".npz" else _open_dataset(path) as file:
            yield file
    except TransduceError:
        raise
    except Exception as error:  # each library raises its own error for a damaged file
        raise TransduceError(
            f"{path} cannot be read ({brief(error)}); it is truncated or damaged. Write it again."
        ) from error


@contextmanager
def _open_npz(path: Path) -> Iterator[OpenFile]:
    with np.load(path, allow_pickle=False) as file:
        yield OpenFile(path, file.files, file.__getitem__, x_is_positions=True)


@contextmanager
def _open_dataset(path: Path) -> Iterator[OpenFile]:
    """NetCDF, HDF5 and Zarr, by xarray."""
    import xarray as xr

    try:
        if path.suffix == ".zarr":
            dataset = xr.open_dataset(path, decode_times=False, engine="zarr", consolidated=False)
        elif format_of(path) == "NetCDF":
            dataset = xr.open_dataset(path, decode_times=False, engine="scipy")
        else:  # phony_dims: plain HDF5 files have no names of dimensions
            dataset = xr.open_dataset(
                path, decode_times=False, engine="h5netcdf", phony_dims="sort"
            )
    except KeyError:  # a Zarr group without names of dimensions
        yield _plain_zarr(path)
        return
    with dataset:
        names = [str(name) for name in dataset.variables]
        yield OpenFile(path, names, lambda name: dataset[name].load())


def _plain_zarr(path: Path) -> OpenFile:
    import zarr

    arrays = dict(zarr.open_group(path, mode="r").arrays())
    return OpenFile(path, list(arrays), lambda name: np.asarray(arrays[name]))
