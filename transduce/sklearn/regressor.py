"""Operator regression with the interface of scikit-learn.

    fit(X, y)      conditions T on the examples (v_i, u_i) = (row i of X, row i of y)
    predict(X)     is T(D)(v) for each row v

Rows are functions by their values on a uniform grid; with the general model, rows of fewer than 8
columns are plain numbers. scikit-learn's estimator checks pass with the defaults, except those in
CANNOT_APPLY.

With vectors=True, for models of sine modes such as 'adr', rows are vectors: columns are
standardised over the examples and used as the first coefficients of U, or of V, where they are
scaled by the spread of the functions that T was trained on. So T's prior on smooth operators
becomes a prior on smooth maps between vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..conditioned import ConditionedOperator
from ..domains.functions import check_vector_model
from ..inputs import read_pairs
from ..regression import RegressedOperator
from ..spaces import Space
from ..transducer import Transducer
from ..types import ExampleSet, TransduceError
from .saving import Saved

if TYPE_CHECKING:
    from ..spaces import SineModes


GENERAL = "general"


class TransducerRegressor(Saved, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Functions or numbers from functions or numbers, given examples, in one pass without training.

    Args:
        model: bundled weights by name, a .safetensors file, or a `Transducer` between functions of
            one variable. The general model takes any columns.
        vectors: whether rows are vectors rather than functions. The general model reads fewer than
            8 columns so in any case; else only models of sine modes take it, such as 'adr'.

    >>> TransducerRegressor().fit(V, U).predict(V_new)      # V, U: (50, 101)
    """

    def __init__(
        self, model: object = GENERAL, vectors: object = False
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
        self.model_, self.X_, self.y_ = T, rows_v, outputs
        if T.V.adapts:
            pairs = read_pairs(self._as_read(rows_v), self._as_read(outputs))
            self.operator_: RegressedOperator | ConditionedOperator
            self.operator_ = RegressedOperator(pairs, str(self.model), T)
            return self
        if self.vectors:
            check_vector_model(T)
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
                f"{error} Or give model='general', which takes any columns."
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
        if self.vectors and not self.model_.V.adapts:
            raise TransduceError(
                "vectors=True has no bands: they are of functions' values. Expected vectors=False: "
                "give model='general', which takes any columns."
            )
        mean, low, high = map(self._rows, self.operator_.predict(v, band=level))
        return mean, low, high

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """The share of the variance of y that is explained. For functions it is pooled over all
        points, since y may be constant at some; for numbers it is the mean over columns."""
        check_is_fitted(self, "operator_")
        how = "uniform_average" if self._numbers else "variance_weighted"
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight, multioutput=how))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = bool(self.vectors) or self.model == GENERAL
        return tags

    @property
    def _numbers(self) -> bool:
        """Whether columns of y are numbers of their own rather than values of a function."""
        if isinstance(self.operator_, RegressedOperator):
            return self.operator_.pairs.u.grid is None
        return bool(self.vectors)

    def _checked(self, X: object) -> np.ndarray:
        check_is_fitted(self, "operator_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        if self.model_.V.adapts:
            return self._as_read(rows)
        return self._functions(rows, 0) if self.vectors else rows

    def _as_read(self, rows: np.ndarray) -> np.ndarray:
        """Rows as the general model reads them: vectors have a second axis, hence no grid."""
        return rows[..., None] if self.vectors and rows.ndim > 1 else rows

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

    def _rows(self, answers: object) -> np.ndarray:
        """Answers as rows of the shape that y had."""
        functions = np.asarray(answers)
        if self.vectors and not self.model_.V.adapts:
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
            "'general', or call Transducer.regress."
        )
