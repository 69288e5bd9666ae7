"""A classification in context with the interface of scikit-learn.

    fit(X, y)           conditions T on the examples (v_i, u_i) = (row i of X, the one-hot vector of class y_i)
    predict_proba(X)    softmax(beta T(D)(v)) for each row v, beta being what the examples, left out one by one, make likeliest

Rows are images, by their pixels from 0 to 1. With vectors=True they are any vectors instead: columns, each brought from its range over the
examples to [0, 1], are squares of an image. scikit-learn's checks are of such tables and hold with vectors=True; CANNOT_APPLY names those
that do not.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..spaces import Euclidean
from ..transducer import Transducer
from ..types import ExampleSet, TransduceError
from ..uncertainty.classes import class_probabilities, sharpness
from .saving import Saved

JSON = (str, int, float, bool)
ROUNDING = 1e-6  # by which pixels may lie outside [0, 1]


class TransducerClassifier(Saved, ClassifierMixin, BaseEstimator):
    """Two to ten classes of images from a few examples, in one pass: nothing is fitted.

    model: bundled weights by name, a .safetensors file, or a `Transducer` from images to classes. scale: whether to bring pixels to [0, 1]
    from their range over the examples, such as 0 to 255. vectors: whether rows are vectors rather than images.

    >>> TransducerClassifier().fit(images, labels).predict(new)      # images: (100, 784), labels: any
    """

    def __init__(self, model: Any = "images", scale: Any = False, vectors: Any = False):  # scikit-learn asks for no checks before `fit`
        self.model = model
        self.scale = scale
        self.vectors = vectors

    def fit(self, X: Any, y: Any) -> TransducerClassifier:
        """Condition the model on the examples."""
        X, y = self._finite(X, y)
        T = self.model if isinstance(self.model, Transducer) else Transducer.from_pretrained(str(self.model))
        _check_spaces(T)
        classes, labels = _numbered(y)
        if not 2 <= len(classes) <= T.U.size:
            raise TransduceError(
                f"y has {len(classes)} class{'es' * (len(classes) > 1)}; this classifier expects 2 to {T.U.size}. "
                + ("Give examples of another class." if len(classes) < 2 else "Merge some, or tell them apart in several steps.")
            )
        units = self._units(X)
        images = self._images(X, T.V.size, *units)
        with torch.no_grad():  # also of a model in training
            self.operator_ = T.regress(ExampleSet(images, np.eye(T.U.size)[labels]))
        self.beta_ = sharpness(self.operator_)
        self.classes_, self.model_, self.X_, self.y_, self._scaling = classes, T, X, labels, units
        return self

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each of `classes_`."""
        check_is_fitted(self, "operator_")
        images = self._images(self._finite(X)[0], self.model_.V.size, *self._scaling)
        return class_probabilities(self.operator_, images, self.beta_).numpy()[:, : len(self.classes_)]

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class."""
        p = self.predict_proba(X)
        return self.classes_[p.argmax(1)]

    def _finite(self, X: Any, *y: Any) -> tuple[Any, ...]:
        """X, and y in `fit`, as scikit-learn reads them, or an error that says what is wrong with them."""
        try:
            found = validate_data(self, X, *y, dtype=np.float64, reset=bool(y), ensure_all_finite=False)
        except ValueError as error:
            raise TransduceError(
                f"{error} Give X as (n, pixels), each row an image, like X.reshape(len(X), -1)" + ", and y as n labels" * bool(y) + "."
            ) from None
        X = found[0] if y else found
        wrong = np.argwhere(~np.isfinite(X))
        if len(wrong):
            row, column = wrong[0].tolist()
            raise TransduceError(
                f"X has NaN or infinite values, {len(wrong)} of {X.size}, the first in row {row}, column {column}; expected finite "
                "numbers. Drop those rows or fill the gaps."
            )
        return found if y else (X,)

    def _units(self, X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The least value and the range of what becomes [0, 1]: of each column of vectors, of all pixels of images alike."""
        if not self.vectors and not self.scale:
            return np.zeros(()), np.ones(())
        axis = 0 if self.vectors else None
        low, high = X.min(axis), X.max(axis)
        return np.asarray(low), np.where(high > low, high - low, 1.0)

    def _images(self, X: NDArray[Any], pixels: int, low: NDArray[Any], unit: NDArray[Any]) -> NDArray[Any]:
        """What the model reads: rows of pixels."""
        columns, side = X.shape[1], math.isqrt(pixels)
        if self.vectors and columns > pixels:
            raise TransduceError(f"X has {columns} columns; this model expects vectors of at most {pixels}. Reduce them first.")
        if not self.vectors and columns != pixels:
            raise TransduceError(
                f"X has {columns} columns; this model expects images of {side} x {side} = {pixels} pixels. Resize them (see "
                "transduce.families.resized), or, if rows are vectors of at most that length rather than images, give vectors=True."
            )
        if not self.vectors and not self.scale and (X.min() < -ROUNDING or X.max() > 1 + ROUNDING):
            raise TransduceError(
                f"X has values from {X.min():g} to {X.max():g}; expected pixels from 0 to 1. Divide them by the greatest, like 255, or "
                "give scale=True, which brings the range of the examples to [0, 1]."
            )
        if self.scale and not self.vectors and not 0.1 < np.ptp(X) / unit < 3:
            warnings.warn(
                f"X runs from {X.min():g} to {X.max():g}, where the examples ran from {low:g} to {low + unit:g}: they were scaled by the "
                "latter. Give both in the same units.",
                stacklevel=3,
            )
        scaled = np.clip((X - low) / unit, -1, 2).astype(np.float32)
        return scaled[:, squares(columns, side)] if self.vectors else scaled

    def _more(self) -> dict[str, Any]:
        classes = self.classes_.tolist()
        if not all(isinstance(label, JSON) for label in classes):
            raise TransduceError(
                f"classes of type {type(classes[0]).__name__} cannot be written; expected strings or numbers. Fit to y.astype(str)."
            )
        return {"classes": classes, "dtype": self.classes_.dtype.str if self.classes_.dtype != object else "object"}

    def _outputs(self, y: Any, card: dict[str, Any]) -> Any:
        return np.array(card["classes"], dtype=np.dtype(card["dtype"]))[y]


def squares(columns: int, side: int) -> NDArray[Any]:
    """Which column each pixel shows: all of them, in turn, in squares as large as there is room for."""
    across = math.ceil(math.sqrt(columns))
    place = np.arange(side) * across // side
    return (place[:, None] * across + place).ravel() % columns


def _check_spaces(T: Transducer) -> None:
    if not isinstance(T.V, Euclidean) or not isinstance(T.U, Euclidean) or math.isqrt(T.V.size) ** 2 != T.V.size:
        raise TransduceError(
            f"the model maps {type(T.V).__name__} of size {T.V.size} to {type(T.U).__name__} of size {T.U.size}; expected one from square "
            "images to classes, both Euclidean. Use 'images'."
        )


def _numbered(y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The classes in order, and the number of each label's."""
    try:
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:  # labels of several kinds have no order
        raise TransduceError(f"y is not of classes: {error} Expected labels of one kind; give y.astype(str) or y.astype(int).") from None
    return classes, labels
