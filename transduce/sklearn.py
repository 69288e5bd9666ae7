"""A regression of operators with the interface of scikit-learn.

    fit(X, y)      conditions T on the examples (v_i, u_i) = (row i of X, row i of y)
    predict(X)     is T(D)(v) for each row v

Rows are functions by their values on a uniform grid. With vectors=True they are any vectors instead: columns, in units of their spread over
the examples, are taken for the first coefficients of V and U in the units that T was trained in, so that what T knows of smooth operators
becomes a prior for maps between vectors: smooth ones, with little noise. scikit-learn's checks are of such tables, so they hold with
vectors=True; CANNOT_APPLY names those that do not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from . import weights
from .transducer import Transducer
from .types import ExampleSet, TransduceError

LEAST = 3  # points that make a function
GRID = 101  # points on which vectors are shown to T as functions
CANNOT_APPLY = {"check_methods_subset_invariance": "models are of single precision, and answers to fewer rows may be rounded otherwise"}


class TransducerRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Functions to functions from a few examples, in one pass.

    model: bundled weights by name, a .safetensors file, or a `Transducer` between functions of one variable. vectors: whether rows are
    vectors rather than functions.

    >>> TransducerRegressor().fit(V, U).predict(V_new)      # V, U: (50, 101)
    """

    def __init__(self, model: Any = "adr", vectors: Any = False):  # scikit-learn asks for no checks here
        self.model = model
        self.vectors = vectors

    def fit(self, X: Any, y: Any) -> TransducerRegressor:
        """Condition the model on the examples."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        T = self.model if isinstance(self.model, Transducer) else Transducer.from_pretrained(self.model)
        if T.V.dims != 1 or T.V.channels * T.U.channels != 1:
            raise TransduceError(
                f"model={self.model!r} is for functions of {T.V.dims} variables and {T.V.channels} channels; rows of a table hold those of "
                "one. Use 'adr', or call Transducer.regress."
            )
        self.model_ = T
        self.y_shape_ = y.shape[1:]
        self.X_, self.y_ = X, y.reshape(len(y), -1).astype(np.float64)
        if self.vectors:
            self._coordinates = [_Standardised(rows, space.size) for rows, space in ((self.X_, T.V), (self.y_, T.U))]
        elif X.shape[1] < LEAST or self.y_.shape[1] < LEAST:
            raise TransduceError(
                f"rows of X have {X.shape[1]} values and those of y {self.y_.shape[1]}; functions have at least {LEAST}, on a uniform "
                "grid. Give more points, or vectors=True for rows that are vectors."
            )
        self.operator_ = T.regress(ExampleSet(self._functions(self.X_, 0), self._functions(self.y_, 1)))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The images of these rows."""
        v = self._checked(X)
        return self._rows(self.operator_(v))

    def predict_band(self, X: Any, level: float = 0.9) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The images of these functions, and the ends of a band meant to hold this share of their values."""
        if self.vectors:
            raise TransduceError("vectors=True has no bands: they are of functions' values. Expected vectors=False.")
        v = self._checked(X)
        mean, low, high = (self._rows(f) for f in self.operator_.predict(v, band=level))
        return mean, low, high

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the examples and the name of the model to a .safetensors file; no pickle."""
        check_is_fitted(self)
        if not isinstance(self.model, str):
            raise TransduceError(
                "the model was given as an object, which has no name to write. Save it with save_pretrained and give its file."
            )
        if Path(path).exists() and not overwrite:
            raise TransduceError(f"{path} exists already. Give another name, or overwrite=True.")
        tensors = {"X": torch.from_numpy(self.X_), "y": torch.from_numpy(self.y_.reshape(-1, *self.y_shape_))}
        weights.save(path, tensors, {"estimator": type(self).__name__, **self.get_params()})

    @classmethod
    def load(cls, path: str | Path) -> TransducerRegressor:
        """The estimator that `save` wrote, fitted."""
        tensors, card = weights.load(Path(path))
        if card.get("estimator") != cls.__name__:
            raise TransduceError(f"{path} is no {cls.__name__} that was saved. Give a file that its `save` wrote.")
        estimator = cls(**{name: card[name] for name in cls().get_params()})
        return estimator.fit(tensors["X"].numpy(), tensors["y"].numpy())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = bool(self.vectors)
        return tags

    def _checked(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return self._functions(validate_data(self, X, dtype=np.float64, reset=False), 0)

    def _functions(self, rows: NDArray[Any], which: int) -> NDArray[Any]:
        """Rows of X (0) or y (1) as functions on a grid."""
        if not self.vectors:
            return rows
        space, unit = (self.model_.V, self.model_.spread.double().numpy()) if which == 0 else (self.model_.U, 1.0)
        return np.asarray(space.decode(torch.from_numpy(self._coordinates[which].padded(rows) * unit), GRID))

    def _rows(self, functions: NDArray[Any]) -> NDArray[Any]:
        """Answers as rows of the shape that y had."""
        if self.vectors:
            functions = self._coordinates[1].restored(self.model_.U.encode(torch.from_numpy(functions)).double().numpy())
        return functions.reshape(len(functions), *self.y_shape_)


class _Standardised:
    """Columns about their mean in units of their spread, and as many zeros as make up `size`."""

    def __init__(self, rows: NDArray[Any], size: int):
        if rows.shape[1] > size:
            raise TransduceError(f"rows of {rows.shape[1]} columns; with vectors=True the model takes at most {size}. Reduce them first.")
        spread = rows.std(0)
        self.size, self.mean, self.spread = size, rows.mean(0), np.where(spread > 0, spread, 1.0)

    def padded(self, rows: NDArray[Any]) -> NDArray[Any]:
        return np.pad((rows - self.mean) / self.spread, ((0, 0), (0, self.size - rows.shape[1])))

    def restored(self, coefficients: NDArray[Any]) -> NDArray[Any]:
        return coefficients[:, : len(self.mean)] * self.spread + self.mean
