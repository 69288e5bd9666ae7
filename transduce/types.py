"""The four nouns: Operator, ExampleSet, OperatorFamily, Regressor.

    D_O = {(v_i, u_i) | u_i = O(v_i)}_{i <= n},      T: D_O -> O        (equations 1 and 2)

Functions are arrays of shape (n, *grid) when they have one channel and (n, channels, *grid) when
they have several: numpy arrays, torch tensors or xarray DataArrays. Results have the same kind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import torch

if TYPE_CHECKING:
    from xarray import DataArray

    A = TypeVar("A", bound="Array")
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:
    Json = bool | int | float | str | list | dict | None  # run-time checks take no recursive type
    A = TypeVar("A")  # ExampleSet converts lists, and raises its own errors

    class _LoadedDataArray(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, getattr(sys.modules.get("xarray"), "DataArray", ()))

    class DataArray(metaclass=_LoadedDataArray):
        """xarray.DataArray in annotations and isinstance checks, which do not import xarray."""


Array = np.ndarray | torch.Tensor | DataArray
Index = int | slice | Sequence[int] | np.ndarray | torch.Tensor


class TransduceError(ValueError):
    """Bad input. The message says what was expected, what was received, and the remedy.

    Args:
        message: for users of the library.
        in_shell: for users of the command line, if the remedy differs.
    """

    def __init__(self, message: str = "", in_shell: str = ""):
        super().__init__(message)
        self.in_shell = in_shell or message


@dataclass(frozen=True, eq=False)
class ExampleSet(Generic[A]):
    """n pairs of functions of one operator: the paper's D_O.

    Args:
        v: inputs, shape (n, *grid) or (n, channels, *grid).
        u: outputs, u[i] = O(v[i]), with the same first axis.
        x: None on uniform grids. For scattered sensors, their positions in the unit cube, shape
            (points,) or (points, dimensions), the same for v and u.

    >>> ExampleSet(v=np.zeros((50, 101)), u=np.zeros((50, 101)))
    ExampleSet(n=50, v=(50, 101), u=(50, 101))
    """

    v: A
    u: A
    x: Array | None = None

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

    def __getitem__(self, index: Index) -> ExampleSet:
        """The selected examples: a number, a slice, a list of numbers or a boolean mask."""
        rows = np.atleast_1d(np.arange(len(self))[index])
        return ExampleSet(self.v[rows], self.u[rows], self.x)

    def __repr__(self) -> str:
        sensors = "" if self.x is None else f", x={tuple(self.x.shape)}"
        return (
            f"ExampleSet(n={len(self)}, v={tuple(self.v.shape)}, u={tuple(self.u.shape)}{sensors})"
        )


@dataclass(frozen=True, eq=False)
class Task:
    """Examples of one operator, and other pairs of the same operator to predict."""

    examples: ExampleSet
    queries: ExampleSet


@runtime_checkable
class Operator(Protocol):
    """A map v -> u between functions. A PDE solver is one; so is the result of a regression."""

    def __call__(self, v: Array) -> Array: ...


@runtime_checkable
class OperatorFamily(Protocol):
    """The space B with a distribution over it. If each operator has a limited number of pairs, the
    attribute `pairs` is that number."""

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        """Draw one operator, n example pairs and m query pairs of it."""
        ...


@runtime_checkable
class Regressor(Protocol):
    """The map T of equation 2 from examples to an operator."""

    def regress(self, examples: ExampleSet) -> Operator: ...


def _as_array(values: object, name: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:
        raise TransduceError(
            f"{name} is a list of rows of unequal length; expected an array. Give every function "
            "the same points."
        ) from None


def is_uniform(x: np.ndarray) -> bool:
    """Whether x increases by equal steps, up to a hundredth of a step."""
    if x.ndim != 1 or len(x) < 2 or x.dtype.kind not in "fiu":
        return False
    step = (float(x[-1]) - float(x[0])) / (len(x) - 1)
    return step > 0 and bool(np.abs(x - np.linspace(x[0], x[-1], len(x))).max() < 0.01 * step)


def check_coordinates(array: object, dims: int, name: str) -> None:
    """Raise if the coordinates of a DataArray show that its grid is not uniform.

    Args:
        array: any array; only a DataArray has coordinates.
        dims: the number of axes at the end that form the grid.
        name: the array's name in the error message.
    """
    if not isinstance(array, DataArray):
        return
    for axis in array.dims[-dims:]:
        x = np.asarray(array.coords[axis]) if axis in array.coords else np.arange(2)
        if x.dtype.kind in "fiu" and len(x) > 1 and not is_uniform(x) and not is_uniform(x[::-1]):
            raise TransduceError(
                f"{name} has coordinates {axis!r} of unequal steps ({x[0]:g}, {x[1]:g}, ..., "
                f"{x[-1]:g}); expected a uniform grid. Give the "
                "positions as x, ExampleSet(v, u, x=...) and O(v, x=...), or interpolate."
            )


def to_tensor(array: object, name: str) -> torch.Tensor:
    """`array` as a real, finite, floating-point tensor. Error messages call it `name`."""
    tensor = array if isinstance(array, torch.Tensor) else _from_numpy(array, name)
    if tensor.is_complex():
        raise TransduceError(
            f"{name} is complex; expected real numbers. Give its real and imaginary parts as two "
            "channels."
        )
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.get_default_dtype())
    if not torch.isfinite(tensor).all():
        place = tuple(torch.nonzero(~torch.isfinite(tensor))[0].tolist())
        count = int((~torch.isfinite(tensor)).sum())
        raise TransduceError(
            f"{name}{list(place)} is {tensor[place].item()} ({count} of {tensor.numel()} values "
            "are not finite); expected finite numbers. Drop those functions or fill the gaps."
        )
    return tensor


def _from_numpy(values: object, name: str) -> torch.Tensor:
    """A DataArray, a numpy array or nested lists of real numbers, as a tensor."""
    array = _as_array(values.values if isinstance(values, DataArray) else values, name)
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
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def like(result: torch.Tensor, template: object, same_grid: bool = True, of: object = None) -> Any:
    """`result` as the same kind of array as `template`.

    Args:
        result: the values.
        template: a torch tensor gives its device and dtype, a DataArray its dimensions and
            coordinates. Anything else gives a numpy array.
        same_grid: whether `result` is on the template's grid. If not, a DataArray keeps only the
            coordinates of its first axis.
        of: an array of the same quantity as `result`. A DataArray gives its name and attributes,
            such as units.
    """
    if isinstance(template, torch.Tensor):
        return result.to(
            device=template.device,
            dtype=template.dtype if template.is_floating_point() else result.dtype,
        )
    values = result.detach().cpu().numpy()
    dtype = getattr(template, "dtype", values.dtype)
    values = values.astype(dtype if dtype.kind == "f" else values.dtype, copy=False)
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
