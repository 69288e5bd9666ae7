"""Named arrays into files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..files import PathLike, brief, replacing
from ..types import Array, DataArray, TransduceError
from .formats import check_writable, suffix_of
from .open_file import RESERVED

if TYPE_CHECKING:
    import xarray as xr


def write_arrays(
    path: PathLike,
    arrays: Mapping[str, Array],
    force: bool = False,
    attrs: Mapping[str, str | int | float] | None = None,
) -> None:
    """Write named arrays in the format of the suffix.

    Args:
        path: the file or Zarr store to write.
        arrays: the variables by name. DataArrays keep their dimensions, coordinates and attributes.
        force: whether to replace an existing file.
        attrs: attributes of the whole file. Only NetCDF, HDF5 and Zarr have any.

    >>> write_arrays("u.nc", {"u": u_hat}, attrs={"model": "adr"})
    """
    path = Path(path)
    check_writable(path, force)
    with replacing(path) as temporary:
        _writer(path)(temporary, arrays, dict(attrs or {}))


Writer = Callable[[Path, Mapping[str, Array], dict[str, str | int | float]], None]


def _writer(path: Path) -> Writer:
    """The function that writes the format of the suffix."""
    suffix = suffix_of(path)
    if suffix in (".csv", ".tsv", ".txt", ".parquet"):
        from .writing_tables import write_parquet, write_text

        return write_parquet if suffix == ".parquet" else write_text
    return {
        ".npz": _write_npz,
        ".npy": _write_npy,
        ".mat": _write_mat,
        ".zarr": _write_zarr,
    }.get(suffix, _write_netcdf)


def _write_npz(path: Path, arrays: Mapping[str, Array], attrs: object) -> None:
    np.savez(path, **{name: as_numpy(array) for name, array in arrays.items()})  # type: ignore[arg-type]


def _write_npy(path: Path, arrays: Mapping[str, Array], attrs: object) -> None:
    """One array. Positions, which belong to the examples' file, are left out."""
    names = [name for name in arrays if name not in RESERVED]
    if len(names) != 1:
        raise TransduceError(
            f"{', '.join(names) or 'no array'} for an .npy file; expected one array. Write .npz, "
            "or leave out --band."
        )
    np.save(path, as_numpy(arrays[names[0]]))


def _write_mat(path: Path, arrays: Mapping[str, Array], attrs: object) -> None:
    """Version 5. Coordinates of DataArrays become variables."""
    from scipy.io import savemat

    content = {name: as_numpy(array) for name, array in with_positions(arrays).items()}
    savemat(path, content, oned_as="column", do_compression=True)


def _write_zarr(
    path: Path, arrays: Mapping[str, Array], attrs: dict[str, str | int | float]
) -> None:
    _dataset(arrays).assign_attrs(attrs).to_zarr(path, zarr_format=3, consolidated=False)


def _write_netcdf(
    path: Path, arrays: Mapping[str, Array], attrs: dict[str, str | int | float]
) -> None:
    _dataset(arrays).assign_attrs(attrs).to_netcdf(path, engine="h5netcdf")


def with_positions(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays, and the coordinate of each one's last dimension as x_NAME, if it is numeric and
    positions are not given otherwise."""
    found = dict(arrays)
    for name, array in arrays.items():
        if not isinstance(array, DataArray) or array.ndim < 2 or {"x", "x_u"} & set(found):
            continue
        points = array.dims[-1]
        if points in array.coords and array.coords[points].dtype.kind in "fiu":
            found[f"x_{name}"] = array.coords[points].values
    return found


def _dataset(arrays: Mapping[str, Array]) -> xr.Dataset:
    """One dataset of all arrays; the coordinates that they share must agree."""
    import xarray as xr

    named = {
        name: array
        if isinstance(array, xr.DataArray)
        else xr.DataArray(as_numpy(array), dims=[f"{name}_{i}" for i in range(array.ndim)])
        for name, array in arrays.items()
    }
    try:
        xr.align(*named.values(), join="exact", copy=False)
        return xr.Dataset(named).drop_encoding()
    except ValueError as error:
        raise TransduceError(
            f"{', '.join(named)} do not fit into one file ({brief(error)}). Rename their "
            "dimensions."
        ) from error


def as_numpy(array: Array) -> np.ndarray:
    """The values of an array."""
    return array.detach().cpu().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)
