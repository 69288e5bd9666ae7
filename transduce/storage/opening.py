"""Files as open files. Each format has one function that opens it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np

from ..files import PathLike, brief
from ..types import TransduceError
from .formats import check_readable, format_of, suffix_of
from .open_file import Description, OpenFile, check_size, describe_array

Opener = Callable[[Path, int | None], AbstractContextManager[OpenFile]]


@contextmanager
def opened(path: PathLike, most: int | None = None) -> Iterator[OpenFile]:
    """An open file, whose variables are read one by one.

    Args:
        path: the file.
        most: the bytes that its numbers may take; default: as much as there is.
    """
    path = Path(path)
    check_readable(path)
    try:
        with _opener(path)(path, most) as file:
            yield file
    except TransduceError:
        raise
    except Exception as error:  # each library raises its own error for a damaged file
        raise TransduceError(
            f"{path} cannot be read ({brief(error)}); it is truncated or damaged. Write it again."
        ) from error


def _opener(path: Path) -> Opener:
    """The function that opens files of this format."""
    found = format_of(path)
    if found == "npz":
        return _open_npz
    if found == "npy":
        return _open_npy
    if found == "text":
        from .table_files import open_text

        return open_text
    if found in ("MATLAB 5", "MATLAB 7.3"):
        from .matlab import open_matlab_5, open_matlab_73

        return open_matlab_5 if found == "MATLAB 5" else open_matlab_73
    if found in ("Parquet", "R"):
        from .frames import open_parquet, open_r

        return open_parquet if found == "Parquet" else open_r
    return _open_dataset


@contextmanager
def _open_npz(path: Path, most: int | None) -> Iterator[OpenFile]:
    with np.load(path, allow_pickle=False) as file:
        check_size(path, sum(entry.file_size for entry in file.zip.infolist()), most)
        yield OpenFile(path, file.files, file.__getitem__, x_is_positions=True)


@contextmanager
def _open_npy(path: Path, most: int | None) -> Iterator[OpenFile]:
    """One array, called values. Mapped first: a header may claim more than the file holds."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if "Python objects" not in str(error):
            raise
        raise TransduceError(
            f"{path} holds Python objects, which is a pickle and is not read; expected numbers. "
            "Convert it with .astype(float)."
        ) from None
    check_size(path, array.nbytes, most)
    yield OpenFile(path, ["values"], lambda _: np.array(array))


@contextmanager
def _open_dataset(path: Path, most: int | None) -> Iterator[OpenFile]:
    """NetCDF, HDF5 and Zarr, by xarray."""
    import xarray as xr

    try:
        if suffix_of(path) == ".zarr":
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
        check_size(path, int(dataset.nbytes), most)
        names = [str(name) for name in dataset.variables]
        yield OpenFile(
            path,
            names,
            lambda name: dataset[name].load(),
            describe=lambda name: _described(dataset, name),
        )


def _described(dataset: object, name: str) -> Description:
    import xarray as xr

    assert isinstance(dataset, xr.Dataset)
    variable = dataset[name]
    return Description(
        name,
        tuple(variable.shape),
        str(variable.dtype),
        str(variable.attrs.get("units", "")),
        tuple(map(str, variable.dims)),
        variable.dtype.kind in "fiub",
        name in dataset.coords,
    )


def _plain_zarr(path: Path) -> OpenFile:
    import zarr

    arrays = dict(zarr.open_group(path, mode="r").arrays())
    return OpenFile(
        path,
        list(arrays),
        lambda name: np.asarray(arrays[name]),
        describe=lambda name: describe_array(name, np.asarray(arrays[name])),
    )
