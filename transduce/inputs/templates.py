"""Arrays of answers in the kind that the user works with: numpy, torch, pandas, xarray or
scikit-fda."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .numbers import Values, detached, is_tensor


@dataclass(frozen=True, eq=False)
class Template:
    """The user's array without its values.

    Args:
        kind: "numpy", "torch", "pandas", "xarray" or "fda".
        dtype: the dtype of answers, "float32" or "float64".
        empty: for pandas, xarray and scikit-fda, the user's object with no rows: columns,
            dimensions, coordinates, name and attributes.
        rows: for pandas, the index; for xarray, the coordinates of the first dimension; for
            scikit-fda, the names of samples.
        device: for torch, the device of answers.
    """

    kind: str = "numpy"
    dtype: str = "float64"
    empty: object = None
    rows: object = None
    device: object = None

    def take(self, rows: np.ndarray) -> Template:
        """The template of these rows."""
        labels: Any = self.rows
        if self.kind in ("pandas", "fda"):
            return replace(self, rows=labels[rows])
        if self.kind == "xarray":
            kept = {name: coordinate[rows] for name, coordinate in labels.items()}
            return replace(self, rows=kept)
        return self

    def numbered(self, count: int) -> Template:
        """The template of `count` rows that are numbered."""
        if self.kind == "pandas":
            import pandas as pd

            return replace(self, rows=pd.RangeIndex(count))
        if self.kind == "fda":
            return replace(self, rows=np.full(count, None))
        return replace(self, rows={}) if self.kind == "xarray" else self

    def labels(self) -> list[object] | None:
        """The labels of the rows, or None if there are none or they are 0, 1, 2, ..."""
        rows: Any = self.rows
        if self.kind == "xarray":
            name: Any = self.empty
            rows = rows.get(name.dims[0])
        if rows is None or self.kind not in ("pandas", "xarray"):
            return None
        found = np.asarray(rows).tolist()
        return None if found == list(range(len(found))) else found

    def answer(self, values: Values, query: Template, x: np.ndarray | None) -> object:
        """The values as the user's kind of array.

        Args:
            values: shape (m, *shape of one function).
            query: template of the queries: gives the labels of rows. A tensor makes the answer
                a tensor too, on its device.
            x: positions of the last axis, if they are not those of the examples; else None.
        """
        if "torch" in (query.kind, self.kind):
            import torch

            tensor: Any = values if is_tensor(values) else torch.as_tensor(values)
            device = query.device if query.kind == "torch" else self.device
            return tensor.to(device=device, dtype=getattr(torch, self.dtype))
        array = detached(values).astype(self.dtype)
        if self.kind == "pandas":
            return self._pandas(array, query, x)
        if self.kind == "fda":
            return self._fda(array, query, x)
        return self._xarray(array, query, x) if self.kind == "xarray" else array

    def _pandas(self, array: np.ndarray, query: Template, x: np.ndarray | None) -> object:
        import pandas as pd

        empty: Any = self.empty
        labels: Any = query.rows
        index = labels if query.kind == "pandas" and len(labels) == len(array) else None
        if isinstance(empty, pd.Series):
            return pd.Series(array.reshape(len(array)), index=index, name=empty.name)
        columns = empty.columns if x is None else pd.Index(x, name=empty.columns.name)
        return pd.DataFrame(array, index=index, columns=columns)

    def _xarray(self, array: np.ndarray, query: Template, x: np.ndarray | None) -> object:
        import xarray as xr

        empty: Any = self.empty
        labels: Any = query.rows
        source: Any = query.empty
        dims = list(empty.dims)
        changed = {dims[0]} if x is None else {dims[0], dims[-1]}
        coords = {
            name: coordinate.variable
            for name, coordinate in empty.coords.items()
            if not changed & set(coordinate.dims)
        }
        if x is not None:
            coords[dims[-1]] = (dims[-1], x)
        if query.kind == "xarray" and source.dims[0] not in dims[1:]:
            dims[0] = source.dims[0]
            for name, coordinate in labels.items():
                if name not in dims[1:] and len(coordinate) == len(array):
                    coords[name] = coordinate.variable
        return xr.DataArray(array, coords, dims, empty.name, empty.attrs)

    def _fda(self, array: np.ndarray, query: Template, x: np.ndarray | None) -> object:
        """An FDataGrid with the names and the interpolation of the examples' u."""
        from skfda import FDataGrid

        empty: Any = self.empty
        labels: Any = query.rows
        several = empty.dim_codomain > 1
        kept = ("dataset_name", "argument_names", "coordinate_names", "interpolation")
        return FDataGrid(
            np.moveaxis(array, 1, -1) if several else array[..., None],
            empty.grid_points if x is None else [x],
            extrapolation=empty.extrapolation,
            sample_names=labels if query.kind == "fda" and len(labels) == len(array) else None,
            **{name: getattr(empty, name) for name in kept},
        )
