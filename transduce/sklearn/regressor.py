"""A regression of operators with the interface of scikit-learn.

    fit(X, y)      conditions T on the examples (v_i, u_i) = (row i of X, row i of y)
    predict(X)     is T(D)(v) for each row v

Rows are functions by their values on a uniform grid. With vectors=True they are any vectors
instead: columns, in units of their spread over the examples, are taken for the first coefficients
of U, and of V in units of their spread over the functions that T was trained on. So what T knows of
smooth operators becomes a prior for smooth maps between vectors. scikit-learn's checks are of such
tables and hold with vectors=True; CANNOT_APPLY names those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..domains.functions import check_vector_model
from ..spaces import Space
from ..transducer import Transducer
from ..types import ExampleSet, TransduceError
from .saving import Saved


class TransducerRegressor(Saved, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Functions to functions from a few examples, in one pass.

    model: bundled weights by name, a .safetensors file, or a `Transducer` between functions of one
    variable. vectors: whether rows are vectors rather than functions, for models of sine modes,
    such as 'adr'.

    >>> TransducerRegressor().fit(V, U).predict(V_new)      # V, U: (50, 101)
    """

    def __init__(
        self, model: Any = "adr", vectors: Any = False
    ):  # scikit-learn asks for no checks before `fit`
        self.model = model
        self.vectors = vectors

    def fit(self, X: Any, y: Any) -> TransducerRegressor:
        """Condition the model on the examples."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        T = (
            self.model
            if isinstance(self.model, Transducer)
            else Transducer.from_pretrained(str(self.model))
        )
        _check_spaces(T)
        if self.vectors:
            check_vector_model(T)
        self.model_, self.X_, self.y_ = T, X, y
        rows = y.reshape(len(y), -1)
        if self.vectors:
            self._scalers = [self._scaler(table, space) for table, space in ((X, T.V), (rows, T.U))]
            self.operator_ = T.regress(ExampleSet(self._functions(X, 0), self._functions(rows, 1)))
            return self
        try:
            self.operator_ = T.regress(ExampleSet(X, rows))
        except TransduceError as error:
            raise TransduceError(
                f"{error} Or, if rows are vectors rather than functions, give vectors=True."
            ) from None
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The images of these rows."""
        v = self._checked(X)
        return self._rows(self.operator_(v))

    def predict_band(
        self, X: Any, level: float = 0.9
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The images of these functions, and the ends of a band meant to hold this share of their
        values."""
        v = self._checked(X)
        if self.vectors:
            raise TransduceError(
                "vectors=True has no bands: they are of functions' values. Expected vectors=False."
            )
        mean, low, high = (self._rows(f) for f in self.operator_.predict(v, band=level))
        return mean, low, high

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of y that is explained; of functions, over all points alike, as
        some may not vary at all."""
        how = "uniform_average" if self.vectors else "variance_weighted"
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight, multioutput=how))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = bool(self.vectors)
        return tags

    def _checked(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self, "operator_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._functions(X, 0) if self.vectors else X

    @staticmethod
    def _scaler(rows: NDArray[Any], space: Space) -> StandardScaler:
        if rows.shape[1] > space.size:
            raise TransduceError(
                f"rows have {rows.shape[1]} columns; with vectors=True at most {space.size}. "
                "Reduce them first."
            )
        return StandardScaler().fit(rows)

    def _functions(self, rows: NDArray[Any], which: int) -> NDArray[Any]:
        """Vectors of X (0) or y (1) as functions."""
        T = self.model_
        space: Any = (T.V, T.U)[which]
        unit = T.spread.double().cpu().numpy() if which == 0 else 1.0
        scaled = np.pad(
            self._scalers[which].transform(rows), ((0, 0), (0, space.size - rows.shape[1]))
        )
        return space.decode(torch.from_numpy(scaled * unit), space.points_for(space.modes)).numpy()

    def _rows(self, functions: NDArray[Any]) -> NDArray[Any]:
        """Answers as rows of the shape that y had."""
        if self.vectors:
            coefficients = self.model_.U.encode(torch.from_numpy(functions)).double().numpy()
            functions = self._scalers[1].inverse_transform(
                coefficients[:, : self._scalers[1].n_features_in_]
            )
        return functions.reshape(len(functions), *self.y_.shape[1:])


def _check_spaces(T: Transducer) -> None:
    """Raise an error if T does not map functions of one variable and one channel to such."""
    V, U = T.V, T.U
    if (V.dims, U.dims, V.channels, U.channels) != (1, 1, 1, 1):
        raise TransduceError(
            f"the model maps {V.channels} channels of {V.dims} variables to {U.channels} of "
            f"{U.dims}; rows of a table hold functions of one variable and one channel. Use "
            "'adr', or call Transducer.regress."
        )
