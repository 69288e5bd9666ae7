"""Example sets and whole families in files: .npz, .nc (NetCDF), .h5 or .hdf5, .zarr.

    an ExampleSet    v (n, *grid), u (n, *grid), perhaps x: the positions of scattered sensors
    a family         v (operator, example, *grid), u (operator, example, *grid)

Only the order of the dimensions counts, not their names, so plain HDF5 files and Zarr groups are
read like those of xarray. What comes from an .npz is a numpy array, what comes from the others an
xarray DataArray. No pickle is ever read. A file is written under another name beside its target and
then renamed, so that a target is always whole: the old one or the new."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .files import PathLike, brief, replacing
from .types import Array, DataArray, ExampleSet, Task, TransduceError, is_uniform, to_tensor

if TYPE_CHECKING:
    import xarray as xr

FORMATS = {
    ".npz": ("npz",),
    ".nc": ("NetCDF", "HDF5"),
    ".h5": ("HDF5",),
    ".hdf5": ("HDF5",),
    ".zarr": ("Zarr",),
}
FIRST_BYTES = {b"PK": "npz", b"CDF": "NetCDF", b"\x89HDF": "HDF5", b"\x93NUMPY": "npy"}
ZARR_METADATA = ("zarr.json", ".zgroup", ".zmetadata", ".zarray")


def read_examples(path: PathLike, v: str = "v", u: str = "u", x: str = "x") -> ExampleSet:
    """The pairs in a file; v, u and x are the names of its variables, of which x may be absent.

    In an .npz, x is the sensors' positions. In the other formats x is often just the coordinate of
    a grid: there it means scattered sensors only if its steps are unequal.

    >>> read_examples("pairs.npz")
    ExampleSet(n=50, v=(50, 101), u=(50, 101))
    """
    with _opened(path) as variables:
        return ExampleSet(
            _fetch(variables, v, path), _fetch(variables, u, path), _sensors(variables, x, path)
        )


def read_functions(
    path: PathLike, v: str = "v", x: str = "x", keep_uniform: bool = False
) -> tuple[Array, Array | None]:
    """Functions without partners, and their sensors' positions as `read_examples` finds them;
    keep_uniform: those of a uniform grid too."""
    with _opened(path) as variables:
        return _fetch(variables, v, path), _sensors(
            variables, x, path, keep_uniform
        ) if x in variables else None


def read_variable(path: PathLike, name: str) -> Array:
    """One variable of a file."""
    with _opened(path) as variables:
        return _fetch(variables, name, path)


class StoredFamily:
    """The operators of a file, each with its examples, as an `OperatorFamily`; held in memory in
    single precision.

    A task is an operator drawn from the file, and n + m of its stored pairs drawn without
    repetition."""

    def __init__(self, path: PathLike, v: str = "v", u: str = "u", x: str = "x"):
        with _opened(path) as variables:
            stored = {name: _fetch(variables, name, path) for name in (v, u)}
            sensors = _sensors(variables, x, path)
        self.path = Path(path)
        self.v, self.u = (to_tensor(stored[name], f"{path}: {name}").float() for name in (v, u))
        self.x = None if sensors is None else to_tensor(sensors, f"{path}: {x}")
        for name in (v, u):
            if stored[name].ndim < 3:
                raise TransduceError(
                    f"{name} in {path} has shape {tuple(stored[name].shape)}; expected (operator, "
                    "example, *grid). "
                    f"If it holds one operator's examples, give {name}[None]."
                )
        if self.v.shape[:2] != self.u.shape[:2] or 0 in self.v.shape[:2]:
            raise TransduceError(
                f"{path} holds {v} of shape {tuple(self.v.shape)} and {u} of shape "
                f"{tuple(self.u.shape)}; expected the same numbers "
                "of operators and of examples, at least one of each. Drop what has no partner."
            )

    def __len__(self) -> int:
        return len(self.v)

    def __repr__(self) -> str:
        """Shapes and a checksum: two families that look the same hold the same."""
        checksum = zlib.crc32(self.u[0].contiguous().numpy().tobytes())
        return (
            f"StoredFamily(v={tuple(self.v.shape)}, u={tuple(self.u.shape)}, first u: "
            f"{checksum:08x})"
        )

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        """Draw an operator, n example pairs and m other pairs of it as queries."""
        return self.task_of(int(torch.randint(len(self), (), generator=generator)), n, m, generator)

    def task_of(self, operator: int, n: int, m: int, generator: torch.Generator) -> Task:
        """Draw n example pairs and m other pairs of one operator."""
        stored = self.v.shape[1]
        if n + m > stored:
            remedy = (
                f"Ask for n up to {stored - m}, or for fewer queries."
                if m < stored
                else "Ask for fewer queries, or store more."
            )
            raise TransduceError(
                f"n = {n} examples and {m} queries need {n + m} pairs; {self.path} holds {stored} "
                f"of each operator. {remedy}"
            )
        picked = torch.randperm(stored, generator=generator)[: n + m]
        pairs = ExampleSet(self.v[operator, picked], self.u[operator, picked], self.x)
        return Task(pairs[:n], pairs[n:])

    def hold_out(self, share: float) -> tuple[StoredFamily, StoredFamily]:
        """Two families: the operators without the last `share` of them, and those, at least one."""
        kept = len(self) - max(1, round(share * len(self)))
        if kept < 1:
            raise TransduceError(
                f"{self.path} holds {len(self)} operator(s), too few to hold some out; expected "
                "at least 2. Store more."
            )
        return self._part(slice(None, kept)), self._part(slice(kept, None))

    def first(self, operators: int, examples: int | None = None) -> StoredFamily:
        """The family of the first operators, with the first examples of each."""
        return self._part(slice(operators), slice(examples))

    def _part(self, operators: slice, examples: slice = slice(None)) -> StoredFamily:
        part = copy(self)
        part.v, part.u = self.v[operators, examples], self.u[operators, examples]
        return part


def write_arrays(
    path: PathLike,
    arrays: Mapping[str, Array],
    force: bool = False,
    attrs: Mapping[str, Any] | None = None,
) -> None:
    """Write named arrays in the format of the suffix. Attributes go into every format but .npz,
    which has none.

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


def check_writable(
    path: PathLike, force: bool = False, suffixes: Sequence[str] = tuple(FORMATS)
) -> None:
    """Raise if `path` cannot be written: an unknown suffix, no such folder, or something there
    already and force is False."""
    path = Path(path)
    if path.suffix not in suffixes:
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
            f"{path} exists already. Give another path, or --force (force=True) to replace it."
        )
    if path.is_dir() and not _is_zarr(path) and any(path.iterdir()):
        raise TransduceError(
            f"{path} is a folder of other things, which is not replaced. Give another path."
        )


@contextmanager
def _opened(path: PathLike) -> Iterator[Mapping[str, Any]]:
    """The variables of a file, each read when it is asked for."""
    path = Path(path)
    _check_format(path)
    try:
        with _variables(path) as variables:
            yield variables
    except TransduceError:
        raise
    except Exception as error:  # each library has its own for a damaged file
        raise TransduceError(
            f"{path} cannot be read ({brief(error)}); it is truncated or damaged. Write it again."
        ) from error


@contextmanager
def _variables(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            yield file
        return
    import xarray as xr

    options: dict[str, Any] = {
        "engine": "h5netcdf",
        "phony_dims": "sort",
    }  # for files without names of dimensions
    if path.suffix == ".zarr":
        options = {"engine": "zarr", "consolidated": False}
    elif _found_format(path) == "NetCDF":
        options = {"engine": "scipy"}
    try:
        dataset = xr.open_dataset(path, decode_times=False, **options)
    except KeyError:  # a Zarr group without names of dimensions
        import zarr

        yield dict(zarr.open_group(path, mode="r").arrays())
        return
    with dataset:
        yield {str(name): dataset[name] for name in dataset.variables}


def _fetch(variables: Mapping[str, Any], name: str, path: PathLike) -> Array:
    if name not in variables:
        raise TransduceError(
            f"{path} has no variable {name!r}; it has {', '.join(sorted(variables)) or 'none'}. "
            "Name one of these that all files have "
            "(--v, --u, --x), or rename it; files of weather need --model climate-europe."
        )
    try:
        variable = variables[name]
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise TransduceError(
            f"{name} in {path} holds Python objects, which is a pickle and is not read; expected "
            "numbers. Convert it with .astype(float)."
        ) from None
    return variable.load() if isinstance(variable, DataArray) else np.asarray(variable)


def _sensors(
    variables: Mapping[str, Any], name: str, path: PathLike, keep_uniform: bool = False
) -> Array | None:
    """The positions of scattered sensors, if there are any: an `x` may be absent, another name has
    been asked for."""
    if name == "x" and name not in variables:
        return None
    x = _fetch(variables, name, path)
    return (
        x
        if keep_uniform
        or isinstance(variables, np.lib.npyio.NpzFile)
        or not is_uniform(np.asarray(x))
        else None
    )


def _check_format(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise TransduceError(
            f"{path} ends in {path.suffix!r}; expected one of {', '.join(FORMATS)}. Convert it, "
            "as by np.savez."
        )
    if not path.exists():
        raise TransduceError(f"there is no file {path}. Check the path.")
    found = _found_format(path)
    if found not in FORMATS[path.suffix]:
        problem = (
            f"it is {found}"
            if found
            else "its first bytes are not: it is damaged or something else"
        )
        raise TransduceError(
            f"{path} should be {FORMATS[path.suffix][0]} by its suffix, but {problem}. Rename it "
            "or write it again."
        )


def _found_format(path: Path) -> str | None:
    """What a file is by its first bytes."""
    if path.is_dir():
        return "Zarr" if _is_zarr(path) else "a folder"
    try:
        with path.open("rb") as file:
            first = file.read(8)
    except OSError as error:
        raise TransduceError(
            f"{path} cannot be opened ({brief(error)}). Check its permissions."
        ) from error
    return next((name for magic, name in FIRST_BYTES.items() if first.startswith(magic)), None)


def _is_zarr(path: Path) -> bool:
    return any((path / name).exists() for name in ZARR_METADATA)


def _dataset(arrays: Mapping[str, Array]) -> xr.Dataset:
    """One dataset of all; DataArrays keep their dimensions and coordinates, which must agree."""
    import xarray as xr

    named = {
        name: array
        if isinstance(array, DataArray)
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
