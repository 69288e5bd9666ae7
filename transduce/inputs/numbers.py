"""Real numbers as float64 arrays, from whatever numpy can read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .messages import problem

if TYPE_CHECKING:
    import torch

    Values: TypeAlias = np.ndarray | torch.Tensor
else:
    Values = object  # numpy array or torch tensor; torch is not imported for its name

ROW_OF_EACH = "an array of real numbers with one row for each function"


def loaded(module: str, *names: str) -> tuple[type, ...]:
    """Classes of a module that the program has imported; () if it has not. For isinstance."""
    found = sys.modules.get(module)
    return tuple(getattr(found, name) for name in names if hasattr(found, name))


def number_of(value: object) -> float:
    """An option as a number; NaN for what is none."""
    known = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return float(value) if known else np.nan  # type: ignore[arg-type]


def is_tensor(values: object) -> bool:
    """Whether `values` is a torch tensor; does not import torch."""
    return isinstance(values, loaded("torch", "Tensor"))


def detached(values: Values) -> np.ndarray:
    """The values as a numpy array without gradients."""
    if not is_tensor(values):
        return np.asarray(values)
    tensor: Any = values
    return tensor.detach().cpu().numpy()


def real_array(values: object, name: str) -> np.ndarray:
    """`values` as a float64 array; masked values and None become NaN.

    Args:
        values: numpy array, masked array, nested lists, or an object that numpy converts.
        name: the argument's name, for messages.
    """
    array = _as_array(values, name)
    if array.ndim == 0 and array.dtype == object:
        raise _not_an_array(values, name)
    if array.dtype == object:
        array = _from_objects(array, name)
    if array.dtype.kind not in "fiub":
        raise _wrong_kind(array, name)
    with np.errstate(over="ignore"):  # beyond float64 is infinite, and is reported as such
        numbers = array.astype(np.float64)
    return np.ma.filled(numbers, np.nan)


def answer_dtype(dtype: object) -> str:
    """The dtype of answers to examples of this dtype: float32 stays, all others give float64."""
    name = str(getattr(dtype, "name", dtype)).lower().removeprefix("torch.")
    return "float32" if name == "float32" else "float64"


def _as_array(values: object, name: str) -> np.ndarray:
    masked = np.ma.MaskedArray
    if isinstance(values, list | tuple) and any(isinstance(row, masked) for row in values):
        values = np.ma.stack([np.ma.asarray(row) for row in values])
    try:
        return values if isinstance(values, masked) else np.asarray(values)
    except TypeError:
        raise _not_an_array(values, name) from None
    except ValueError:
        lengths = [len(row) for row in values if hasattr(row, "__len__")]  # type: ignore[attr-defined]
        raise problem(
            f"{name} is a list of rows of unequal length{_few(lengths)}",
            ROW_OF_EACH,
            "Give every function the same points, for instance by interpolation.",
        ) from None


def _few(lengths: list[int]) -> str:
    different = sorted(set(lengths))
    shown = ", ".join(map(str, different[:4])) + (", ..." if len(different) > 4 else "")
    return f" ({shown})" if len(different) > 1 else ""


def _not_an_array(values: object, name: str) -> ValueError:
    remedy = "Give a numpy array, nested lists, a DataFrame, a DataArray or a tensor."
    if hasattr(values, "toarray"):
        remedy = f"Give {name}.toarray()."
    elif isinstance(values, loaded("xarray", "Dataset")):
        remedy = f"Give one variable, {name}[...], or {name}.to_dataarray()."
    elif isinstance(values, dict):
        remedy = f"Give list({name}.values()), or one of its values."
        single = all(np.ndim(value) == 0 for value in values.values())
        text = any(isinstance(cell, str) for value in values.values() for cell in np.ravel(value))
        if name == "parameters" or single or text:
            remedy = f"Give pd.DataFrame({f'[{name}]' if single else name})."
    return problem(f"{name} is a {type(values).__name__}", ROW_OF_EACH, remedy)


def _from_objects(array: np.ndarray, name: str) -> np.ndarray:
    """Python numbers such as Decimal as floats, and None as NaN; text stays as it is."""
    flat = np.ma.getdata(array).ravel()
    if any(isinstance(value, str | bytes) for value in flat):
        return np.array([str(value) for value in flat])
    if any(isinstance(value, complex | np.complexfloating) for value in flat):
        return np.ma.getdata(array).astype(complex)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        kinds = sorted({type(value).__name__ for value in flat[:1000]})
        raise problem(
            f"{name} holds Python objects ({', '.join(kinds[:3])})",
            "real numbers",
            "Convert each to a number first; dates, to the time since the first one.",
        ) from None


def _wrong_kind(array: np.ndarray, name: str) -> ValueError:
    """The error for complex numbers, text, dates and others."""
    if array.dtype.kind == "c":
        parts, stack = f"[np.real({name}), np.imag({name})]", "column_stack"
        channels = f"Give real and imaginary parts as two channels: np.stack({parts}, axis=1)."
        columns = f"Give real and imaginary parts as columns: np.{stack}({parts})."
        remedy = columns if name == "parameters" else channels
        return problem(f"{name} holds complex numbers", "real numbers", remedy)
    if array.dtype.kind in "Mm":
        since = f"{name} - {name}.min()" if array.dtype.kind == "M" else name
        noun = "dates" if array.dtype.kind == "M" else "durations"
        return problem(
            f"{name} holds {noun}",
            "real numbers",
            f"Give seconds: ({since}) / np.timedelta64(1, 's'). Dates of a grid go in x.",
        )
    if array.dtype.kind in "USOT":
        remedy = "Encode categories as numbers, or leave them out."
        if name == "parameters":
            remedy = "Give categories as a table: pd.DataFrame(parameters)."
        if reads_as_numbers(array):
            remedy = f"Convert it: np.asarray({name}).astype(float)."
        return problem(f"{name} holds text ({array.ravel()[0]!s:.20})", "real numbers", remedy)
    return problem(
        f"{name} has dtype {array.dtype}",
        "real numbers",
        f"Give each field apart, or numpy.lib.recfunctions.structured_to_unstructured({name}).",
    )


def reads_as_numbers(text: object) -> bool:
    """Whether an array or a column of text converts to numbers."""
    values: Any = text
    try:
        values.astype(float)
    except (TypeError, ValueError):
        return False
    return True


def numeric_objects(column: object) -> bool:
    """Whether a column of Python objects holds numbers and missing values only."""
    data: Any = column
    if data.ndim != 1 or data.dtype != object:
        return False
    known = data.dropna()
    if any(isinstance(value, str | bytes) for value in known):
        return False
    try:
        known.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
