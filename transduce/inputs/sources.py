"""The user's arrays as float64 values, with their labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .messages import MOST_NAMED, named, problem
from .numbers import (
    ROW_OF_EACH,
    Values,
    answer_dtype,
    is_tensor,
    loaded,
    numeric_objects,
    real_array,
)
from .positions import read_labels
from .templates import Template


@dataclass(frozen=True, eq=False)
class Source:
    """One argument of the user, as numbers.

    Args:
        name: the argument's name: "v", "u" or "parameters".
        values: float64 array or tensor of shape (n, ...).
        template: the user's kind of array.
        labels: positions that columns or a coordinate hold, or None.
        sort: code that sorts the labels, for messages.
        names: of the columns, if they are labelled by names and not by positions; else ().
        listed: whether the user gave lists.
    """

    name: str
    values: Values
    template: Template
    labels: np.ndarray | None = None
    sort: str = ""
    names: tuple[str, ...] = ()
    listed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def sorting(self, x_name: str) -> str:
        """What to do about labels that do not ascend, for messages."""
        if self.labels is not None and len(np.unique(self.labels)) < len(self.labels):
            return f"Leave out repeated points, or give other positions as {x_name}."
        return f"Sort them: {self.sort}. Or give the positions as {x_name}."

    @property
    def transposed(self) -> str:
        """Code that swaps rows and columns, for messages."""
        return f"np.transpose({self.name})" if self.listed else f"{self.name}.T"

    @property
    def transposes(self) -> bool:
        """Whether rows and columns can be swapped."""
        return len(self.shape) == 2 and self.template.kind != "fda"

    @property
    def flattened(self) -> str:
        """Code that gives one axis of values to each row, for messages."""
        return f"np.reshape({self.name}, (len({self.name}), -1))"

    @property
    def without(self) -> str:
        """Code that leaves out rows, for messages; {rows} stands for their numbers."""
        name = self.name
        template: Any = self.template
        if template.kind == "pandas" and template.rows.is_unique:
            return f"{name}.drop({name}.index[{{rows}}])"
        if template.kind == "xarray":
            return f"{name}.drop_isel({template.empty.dims[0]}={{rows}})"
        if template.kind == "numpy":
            return f"np.delete({name}, {{rows}}, axis=0)"
        whole = f"np.delete(np.arange(len({name})), {{rows}})"
        return f"{name}{'.iloc' if template.kind == 'pandas' else ''}[{whole}]"

    @property
    def one(self) -> str:
        """Code that turns a single function into an array of one row, for messages."""
        name = self.name
        return {
            "pandas": f"{name}.to_frame().T",
            "xarray": f'{name}.expand_dims("row")',
        }.get(self.template.kind, f"np.asarray({name})[None]" if self.listed else f"{name}[None]")


def read_source(values: object, name: str) -> Source:
    """The values of one argument.

    Args:
        values: numpy array, nested lists, tensor, DataFrame, Series, DataArray or FDataGrid.
        name: the argument's name, for messages.
    """
    source = _reader(values)(values, name)
    if not source.shape:
        raise problem(f"{name} is a single number", ROW_OF_EACH, f"Give [{name}] for one number.")
    if 0 in source.shape:
        raise problem(
            f"{name} is empty, of shape {source.shape}",
            ROW_OF_EACH,
            "Give at least one function with at least one value.",
        )
    return source


def _reader(values: object) -> Callable[[object, str], Source]:
    if is_tensor(values):
        return _from_torch
    if isinstance(values, loaded("pandas", "DataFrame")):
        return _from_frame
    if isinstance(values, loaded("pandas", "Series")):
        return _from_series
    if isinstance(values, loaded("xarray", "DataArray")):
        return _from_data_array
    if isinstance(values, loaded("skfda", "FDataGrid", "FDataBasis")):
        return _from_fda
    if isinstance(values, list | tuple) and values and all(is_tensor(row) for row in values):
        return _from_tensors
    return _from_numpy


def _from_numpy(values: object, name: str) -> Source:
    array = real_array(values, name)
    template = Template("numpy", answer_dtype(getattr(values, "dtype", None)))
    return Source(name, array, template, listed=isinstance(values, list | tuple))


def _from_torch(values: object, name: str) -> Source:
    tensor: Any = values
    if tensor.is_complex():
        raise problem(
            f"{name} holds complex numbers",
            "real numbers",
            "Give real and imaginary parts as two channels: "
            f"torch.stack([{name}.real, {name}.imag], dim=1).",
        )
    import torch

    if tensor.layout != torch.strided:
        raise problem(f"{name} is a sparse tensor", ROW_OF_EACH, f"Give {name}.to_dense().")
    template = Template("torch", answer_dtype(tensor.dtype), device=tensor.device)
    return Source(name, tensor.to(torch.float64), template)


def _from_tensors(values: object, name: str) -> Source:
    import torch

    rows: Any = values
    if len({row.shape for row in rows}) > 1:
        raise problem(
            f"{name} is a list of tensors of unequal shape",
            ROW_OF_EACH,
            "Give every function the same points, for instance by interpolation.",
        )
    return _from_torch(torch.stack(tuple(rows)), name)


def _from_frame(values: object, name: str) -> Source:
    import pandas as pd

    frame: Any = values
    types = pd.api.types
    wrong = [c for c in frame.columns[~frame.dtypes.map(types.is_numeric_dtype).to_numpy()]]
    mixed = [c for c in wrong if not numeric_objects(frame[c])]
    if mixed:
        raise _wrong_columns(frame, mixed, name)
    labels = read_labels(frame.columns)
    dates = labels is not None and labels.dtype.kind in "MmO"
    sort = f"{name}.sort_index(axis=1)" if dates else f"{name}[sorted({name}.columns, key=float)]"
    kinds = {str(dtype).lower() for dtype in frame.dtypes}
    template = Template(
        "pandas",
        answer_dtype(kinds.pop() if len(kinds) == 1 else "float64"),
        empty=frame.iloc[:0],
        rows=frame.index,
    )
    array = real_array(_without_missing_type(frame), name)
    by_name = labels is None and not isinstance(frame.columns, pd.RangeIndex)
    names = tuple(map(str, frame.columns)) if by_name else ()
    return Source(name, array, template, labels, sort, names)


def _from_series(values: object, name: str) -> Source:
    series: Any = values
    template = Template("pandas", answer_dtype(series.dtype), series.iloc[:0], series.index)
    return Source(name, real_array(_without_missing_type(series), name), template)


def _from_data_array(values: object, name: str) -> Source:
    array: Any = values
    template = Template("xarray", answer_dtype(array.dtype))
    numbers = real_array(array.values, name)
    if not array.ndim:
        return Source(name, numbers, template)
    rows, points = array.dims[0], array.dims[-1]
    coordinates = {key: c for key, c in array.coords.items() if c.dims == (rows,)}
    template = Template("xarray", template.dtype, array.isel({rows: slice(0, 0)}), coordinates)
    found = array.coords[points].to_index() if points in array.coords and array.ndim > 1 else None
    labels = None if found is None else read_labels(found)
    return Source(name, numbers, template, labels, f'{name}.sortby("{points}")')


def _from_fda(values: object, name: str) -> Source:
    """Functions of scikit-fda: (n, points), (n, channels, points) or (n, x, y)."""
    functions: Any = values
    if not hasattr(functions, "data_matrix"):
        raise problem(
            f"{name} is an FDataBasis",
            "values on a grid",
            f"Give {name}.to_grid(), or {name}.to_grid(points).",
        )
    matrix = np.moveaxis(np.asarray(functions.data_matrix), -1, 1)
    template = Template(
        "fda",
        answer_dtype(matrix.dtype),
        empty=functions[:0],
        rows=np.array(functions.sample_names, dtype=object),
    )
    array = real_array(matrix[:, 0] if functions.dim_codomain == 1 else matrix, name)
    labels = read_labels(functions.grid_points[0]) if functions.dim_domain == 1 else None
    return Source(name, array, template, labels, f"{name}.to_grid(sorted points)")


def _wrong_columns(values: object, columns: list[object], name: str) -> ValueError:
    frame: Any = values
    remedy = (
        f"Leave them out, {name}.drop(columns={_shown(columns)}), or encode them as numbers. "
        "Columns that name series belong in groups=."
    )
    try:
        frame.astype(np.float64)
        remedy = f"Convert them: {name}.astype(float)."
    except (TypeError, ValueError):
        pass
    kinds = sorted({str(dtype) for dtype in frame[columns].dtypes})
    return problem(
        f"{name} has {named([repr(c) for c in columns], 'column')} of {' and '.join(kinds)} values",
        "real numbers",
        remedy,
    )


def _shown(columns: list[object]) -> str:
    """The columns as code, if they are few."""
    return repr(columns) if len(columns) <= MOST_NAMED else "[...]"


def _without_missing_type(values: object) -> np.ndarray:
    """A frame or series as an array; pandas.NA becomes NaN."""
    from pandas.api.types import is_extension_array_dtype, is_numeric_dtype

    data: Any = values
    dtypes = [data.dtype] if data.ndim == 1 else list(data.dtypes)
    if any(is_extension_array_dtype(d) for d in dtypes) and all(map(is_numeric_dtype, dtypes)):
        return data.to_numpy(dtype=np.float64, na_value=np.nan)
    if any(dtype.kind == "O" for dtype in dtypes):
        return data.to_numpy(dtype=object, na_value=np.nan)
    return data.to_numpy()
