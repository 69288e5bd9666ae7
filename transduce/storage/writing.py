"""Named arrays into files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..files import PathLike, brief, replacing
from ..types import Array, TransduceError
from .formats import check_writable

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
        attrs: attributes of the whole file. An .npz has none.

    >>> write_arrays("u.nc", {"u": u_hat}, attrs={"model": "adr"})
    """
    path = Path(path)
    check_writable(path, force)
    with replacing(path) as temporary:
        if path.suffix == ".npz":
            np.savez(temporary, **{name: _numpy(array) for name, array in arrays.items()})  # type: ignore[arg-type]
            return
        dataset = _dataset(arrays).assign_attrs(attrs or {})
        if path.suffix == ".zarr":
            dataset.to_zarr(temporary, zarr_format=3, consolidated=False)
        else:
            dataset.to_netcdf(temporary, engine="h5netcdf")


def _dataset(arrays: Mapping[str, Array]) -> xr.Dataset:
    """One dataset of all arrays; the coordinates that they share must agree."""
    import xarray as xr

    named = {
        name: array
        if isinstance(array, xr.DataArray)
        else xr.DataArray(_numpy(array), dims=[f"{name}_{i}" for i in range(array.ndim)])
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


def _numpy(array: Array) -> np.ndarray:
    return array.detach().cpu().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)
