"""Operator regression with the interface of scikit-learn.

    fit(X, y)      conditions T on the examples (v_i, u_i) = (row i of X, row i of y)
    predict(X)     is T(D)(v) for each row v

Rows are functions by their values on a uniform grid. With vectors=True rows are vectors: columns
are standardised over the examples and used as the first coefficients of U, or of V, where they are
scaled by the spread of the functions that T was trained on. So T's prior on smooth operators
becomes a prior on smooth maps between vectors. scikit-learn's estimator checks use such tables and
pass with vectors=True, except those in CANNOT_APPLY."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..domains.functions import check_vector_model
from ..spaces import Space
from ..transducer import Transducer
from ..types import ExampleSet, TransduceError
from .saving import Saved

if TYPE_CHECKING:
    from ..spaces import SineModes


class TransducerRegressor(Saved, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Functions from functions, given a few examples, in one pass without training.

    Args:
        model: bundled weights by name, a .safetensors file, or a `Transducer` between functions of
            one variable.
        vectors: whether rows are vectors rather than functions. This needs a model of sine modes,
            such as 'adr'.

    >>> TransducerRegressor().fit(V, U).predict(V_new)      # V, U: (50, 101)
    """

    def __init__(
        self, model: object = "adr", vectors: object = False
    ):  # scikit-learn asks for no checks before `fit`
        self.model = model
        self.vectors = vectors

    def fit(self, X: object, y: object) -> TransducerRegressor:
        """Condition the model on the examples."""
        rows_v, outputs = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True
        )
        outputs = check_array(outputs, dtype=np.float64, ensure_2d=False, input_name="y")
        T = (
            self.model
            if isinstance(self.model, Transducer)
            else Transducer.from_pretrained(str(self.model))
        )
        _check_spaces(T)
        if self.vectors:
            check_vector_model(T)
        self.model_, self.X_, self.y_ = T, rows_v, outputs
        rows_u = outputs.reshape(len(outputs), -1)
        if self.vectors:
            self._scalers = [self._scaler(rows_v, T.V), self._scaler(rows_u, T.U)]
            v, u = self._functions(rows_v, 0), self._functions(rows_u, 1)
            self.operator_ = T.regress(ExampleSet(v, u))
            return self
        try:
            self.operator_ = T.regress(ExampleSet(rows_v, rows_u))
        except TransduceError as error:
            raise TransduceError(
                f"{error} Or, if rows are vectors rather than functions, give vectors=True."
            ) from None
        return self

    def predict(self, X: object) -> np.ndarray:
        """The prediction for each row."""
        v = self._checked(X)
        return self._rows(self.operator_(v))

    def predict_band(
        self, X: object, level: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Predictions, and the lower and upper end of their band.

        Args:
            X: functions as rows.
            level: the share of values that the band should contain.
        """
        v = self._checked(X)
        if self.vectors:
            raise TransduceError(
                "vectors=True has no bands: they are of functions' values. Expected vectors=False."
            )
        mean, low, high = (self._rows(f) for f in self.operator_.predict(v, band=level))
        return mean, low, high

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """The share of the variance of y that is explained. For functions it is pooled over all
        points, since y may be constant at some."""
        how = "uniform_average" if self.vectors else "variance_weighted"
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight, multioutput=how))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = bool(self.vectors)
        return tags

    def _checked(self, X: object) -> np.ndarray:
        check_is_fitted(self, "operator_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return self._functions(rows, 0) if self.vectors else rows

    @staticmethod
    def _scaler(rows: np.ndarray, space: Space) -> StandardScaler:
        if rows.shape[1] > space.size:
            raise TransduceError(
                f"rows have {rows.shape[1]} columns; with vectors=True at most {space.size}. "
                "Reduce them first."
            )
        return StandardScaler().fit(rows)

    def _functions(self, rows: np.ndarray, which: int) -> np.ndarray:
        """Vectors of X (0) or y (1) as functions."""
        T = self.model_
        space = cast("SineModes", (T.V, T.U)[which])
        unit = T.spread.double().cpu().numpy() if which == 0 else 1.0
        scaled = np.pad(
            self._scalers[which].transform(rows), ((0, 0), (0, space.size - rows.shape[1]))
        )
        return space.decode(torch.from_numpy(scaled * unit), space.points_for(space.modes)).numpy()

    def _rows(self, functions: np.ndarray) -> np.ndarray:
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
