"""The four nouns: Operator, ExampleSet, OperatorFamily, Regressor.

    D_O = {(v_i, u_i) | u_i = O(v_i)}_{i <= n},      T: D_O -> O        (equations 1 and 2)

Functions are arrays of shape (n, *grid) when they have one channel and (n, channels, *grid) when
they have several: numpy arrays, torch tensors or xarray DataArrays. Results come back as the kind
that went in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import torch

if TYPE_CHECKING:
    from xarray import DataArray
else:

    class _LoadedDataArray(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, getattr(sys.modules.get("xarray"), "DataArray", ()))

    class DataArray(metaclass=_LoadedDataArray):
        """xarray.DataArray in annotations and isinstance checks, which do not import xarray."""


Array = np.ndarray | torch.Tensor | DataArray


class TransduceError(ValueError):
    """Bad input. The message says what was expected, what came, and what to do."""


@dataclass(frozen=True, eq=False)
class ExampleSet:
    """n pairs of functions of one operator: the paper's D_O.

    `v` and `u` are arrays that share their first axis. `x` is None on uniform grids; for scattered
    sensors it holds their positions in the unit cube, (points,) or (points, dimensions), the same
    for v and for u.

    >>> ExampleSet(v=np.zeros((50, 101)), u=np.zeros((50, 101)))
    ExampleSet(n=50, v=(50, 101), u=(50, 101))
    """

    v: Any
    u: Any
    x: Any = None

    def __post_init__(self) -> None:
        for name in ("v", "u", "x"):
            value = getattr(self, name)
            if value is None and name != "x":
                raise TransduceError(
                    f"examples.{name} is None; expected an array of shape (n, *grid) or (n, "
                    "channels, *grid)."
                )
            if value is not None and not isinstance(value, Array):
                object.__setattr__(self, name, _as_array(value, f"examples.{name}"))
        for name in ("v", "u"):
            shape = tuple(getattr(self, name).shape)
            if len(shape) < 2:
                remedy = f"For a single example, give {name}[None]."
                if name == "u" and shape == (len(self.v),):
                    remedy = (
                        "Give labels of classes one-hot, or use "
                        "transduce.sklearn.TransducerClassifier; other numbers as u[:, "
                        "None]."
                    )
                raise TransduceError(
                    f"examples.{name} has shape {shape}; expected (n, *grid) or (n, channels, "
                    f"*grid). {remedy}"
                )
        if len(self.v) != len(self.u):
            raise TransduceError(
                f"examples.v holds {len(self.v)} functions and examples.u {len(self.u)}; expected "
                "the same number, "
                "u[i] being the image of v[i]. Drop those that have no partner."
            )
        if len(self.v) == 0:
            raise TransduceError(
                "no examples: expected at least one pair (v, u), received 0. Give one or more."
            )

    def __len__(self) -> int:
        return len(self.v)

    def __getitem__(self, index: Any) -> ExampleSet:
        """The examples at these places, as an ExampleSet: a slice, a list of numbers or a boolean
        mask."""
        index = np.atleast_1d(np.arange(len(self))[index])
        return ExampleSet(self.v[index], self.u[index], self.x)

    def __repr__(self) -> str:
        sensors = "" if self.x is None else f", x={tuple(self.x.shape)}"
        return (
            f"ExampleSet(n={len(self)}, v={tuple(self.v.shape)}, u={tuple(self.u.shape)}{sensors})"
        )


@dataclass(frozen=True, eq=False)
class Task:
    """Examples of one operator, and further pairs of it to be predicted from them."""

    examples: ExampleSet
    queries: ExampleSet


@runtime_checkable
class Operator(Protocol):
    """A map v -> u between functions. A PDE solver is one; so is the result of a regression."""

    def __call__(self, v: Array) -> Array: ...


@runtime_checkable
class OperatorFamily(Protocol):
    """The space B with a distribution over it. One whose operators have only so many pairs says how
    many, as `pairs`."""

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        """Draw one operator, n example pairs and m query pairs of it."""
        ...


@runtime_checkable
class Regressor(Protocol):
    """The map T of equation 2, from examples to an operator."""

    def regress(self, examples: ExampleSet) -> Operator: ...


def _as_array(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:
        raise TransduceError(
            f"{name} is a list of rows of unequal length; expected an array. Give every function "
            "the same points."
        ) from None


def is_uniform(x: np.ndarray) -> bool:
    """Whether x increases by equal steps, to a hundredth of one."""
    if x.ndim != 1 or len(x) < 2 or x.dtype.kind not in "fiu":
        return False
    step = (float(x[-1]) - float(x[0])) / (len(x) - 1)
    return step > 0 and bool(np.abs(x - np.linspace(x[0], x[-1], len(x))).max() < 0.01 * step)


def check_coordinates(array: Any, dims: int, name: str) -> None:
    """Raise if the last `dims` axes of a DataArray have coordinates of unequal steps, which say
    that it is not on a uniform grid."""
    for axis in array.dims[-dims:] if isinstance(array, DataArray) else ():
        x = np.asarray(array.coords[axis]) if axis in array.coords else np.arange(2)
        if x.dtype.kind in "fiu" and len(x) > 1 and not is_uniform(x) and not is_uniform(x[::-1]):
            raise TransduceError(
                f"{name} has coordinates {axis!r} of unequal steps ({x[0]:g}, {x[1]:g}, ..., "
                f"{x[-1]:g}); expected a uniform grid. Give the "
                "positions as x, ExampleSet(v, u, x=...) and O(v, x=...), or interpolate."
            )


def to_tensor(array: Any, name: str) -> torch.Tensor:
    """`array` as a real, finite, floating-point tensor; `name` is what error messages call it."""
    if isinstance(array, DataArray):
        array = array.values
    if not isinstance(array, torch.Tensor):
        array = _as_array(array, name)
        if array.dtype.kind not in "fiub":
            raise TransduceError(
                f"{name} holds {array.dtype} values; expected real numbers. "
                + (
                    "Give its real and imaginary parts as two channels."
                    if array.dtype.kind == "c"
                    else "Convert it with .astype(float)."
                )
            )
        if array.dtype == np.float16 or array.dtype.itemsize > 8:
            array = array.astype(np.float64)
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        array = torch.from_numpy(array if array.flags.writeable else array.copy())
    if array.is_complex():
        raise TransduceError(
            f"{name} is complex; expected real numbers. Give its real and imaginary parts as two "
            "channels."
        )
    if not array.is_floating_point():
        array = array.to(torch.get_default_dtype())
    if not torch.isfinite(array).all():
        place = tuple(torch.nonzero(~torch.isfinite(array))[0].tolist())
        count = int((~torch.isfinite(array)).sum())
        raise TransduceError(
            f"{name}{list(place)} is {array[place].item()} ({count} of {array.numel()} values are "
            "not finite); "
            "expected finite numbers. Drop those functions or fill the gaps."
        )
    return array


def like(result: torch.Tensor, template: Any, same_grid: bool = True, of: Any = None) -> Any:
    """`result` as the kind of array that `template` is: torch on its device and dtype, numpy, or
    xarray.

    A DataArray keeps the template's dimensions and coordinates; of its grid only where the result
    is on the same one. Its name and attributes, units among them, are those of `of`: an array of
    the same quantity, which the template need not be."""
    if isinstance(template, torch.Tensor):
        return result.to(
            device=template.device,
            dtype=template.dtype if template.is_floating_point() else result.dtype,
        )
    values = result.detach().cpu().numpy()
    dtype = (
        template.dtype if getattr(template, "dtype", np.dtype(int)).kind == "f" else values.dtype
    )
    values = values.astype(dtype, copy=False)
    if not isinstance(template, DataArray):
        return values
    name, attributes = (of.name, of.attrs) if isinstance(of, DataArray) else (None, None)
    import xarray as xr

    if same_grid and values.shape == template.shape:
        return xr.DataArray(values, template.coords, template.dims, name, attributes)
    dims = (template.dims[0], *(f"axis_{i}" for i in range(1, values.ndim)))
    return xr.DataArray(
        values,
        {k: c for k, c in template.coords.items() if c.dims == dims[:1]},
        dims,
        name,
        attributes,
    )
