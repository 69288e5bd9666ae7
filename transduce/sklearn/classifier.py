"""A classification in context with the interface of scikit-learn.

    fit(X, y)
    conditions T on the examples (v_i, u_i) = (row i of X, the one-hot vector of class y_i)
    predict_proba(X)
    softmax(beta T(D)(v)) for each row v, averaged over beta as likely as the
    examples, left out one by one, make it

Rows are images, by their pixels from 0 to 1. With vectors=True they are any vectors instead:
columns, each brought from its range over the examples to [0, 1], are squares of an image.
scikit-learn's checks are of such tables and hold with vectors=True; CANNOT_APPLY names those that
do not."""

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

from ..domains import domain
from ..domains.images import check_pixels
from ..transducer import Transducer
from ..types import ExampleSet, TransduceError
from ..uncertainty.classes import class_probabilities, sharpness
from .saving import Saved

JSON = (str, int, float, bool)


class TransducerClassifier(Saved, ClassifierMixin, BaseEstimator):
    """Two to ten classes of images from a few examples, in one pass: nothing is fitted.

    model: bundled weights by name, a .safetensors file, or a `Transducer` from images to classes.
    scale: whether to bring pixels to [0, 1] from their range over the examples, such as 0 to 255.
    vectors: whether rows are vectors rather than images.

    >>> # images: (100, 784), labels: any
    >>> TransducerClassifier().fit(images, labels).predict(new)
    """

    def __init__(
        self, model: Any = "images", scale: Any = False, vectors: Any = False
    ):  # scikit-learn asks for no checks before `fit`
        self.model = model
        self.scale = scale
        self.vectors = vectors

    def fit(self, X: Any, y: Any) -> TransducerClassifier:
        """Condition the model on the examples."""
        y = self._labels(y)
        X = self._rows(X, fitting=True)
        if len(X) != len(y):
            raise TransduceError(
                f"X has {len(X)} rows and y {len(y)} labels; expected as many. Drop those that "
                "have no partner."
            )
        T = (
            self.model
            if isinstance(self.model, Transducer)
            else Transducer.from_pretrained(str(self.model))
        )
        domain("images").check_model(T)
        classes, labels = _numbered(y)
        if not 2 <= len(classes) <= T.U.size:
            raise TransduceError(
                f"y has {len(classes)} class{'es' * (len(classes) > 1)}; this classifier expects "
                f"2 to {T.U.size}. "
                + (
                    "Give examples of another class."
                    if len(classes) < 2
                    else "Merge some, or tell them apart in several steps."
                )
            )
        units = self._units(X)
        images = self._images(X, T.V.size, *units)
        with torch.no_grad():  # also of a model in training
            self.operator_ = T.regress(ExampleSet(images, np.eye(T.U.size)[labels]))
        self.sharpness_ = sharpness(self.operator_)
        self.classes_, self.model_, self.X_, self.y_, self._scaling = classes, T, X, labels, units
        return self

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each of `classes_`."""
        check_is_fitted(self, "operator_")
        images = self._images(self._rows(X), self.model_.V.size, *self._scaling)
        return class_probabilities(self.operator_, images, self.sharpness_).numpy()[
            :, : len(self.classes_)
        ]

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class."""
        p = self.predict_proba(X)
        return self.classes_[p.argmax(1)]

    def _labels(self, y: Any) -> NDArray[Any]:
        """y as scikit-learn reads it, or an error that says what is wrong with it."""
        try:
            return validate_data(self, y=y)
        except ValueError as error:
            one_hot = (
                ": np.argmax(y, 1), if y is one-hot"
                if np.asarray(y, dtype=object).ndim == 2
                else ""
            )
            raise TransduceError(
                f"{error} Give y as n labels, one for each row of X{one_hot}."
            ) from None

    def _rows(self, X: Any, fitting: bool = False) -> NDArray[Any]:
        """X as scikit-learn reads it, or an error that says what is wrong with it."""
        what, shape = (
            "vector" if self.vectors else "image",
            tuple(getattr(X, "shape", (0, 0))),
        )  # lists are left to scikit-learn
        if len(shape) != 2:
            how = (
                f"X.reshape(1, -1) for a single {what}"
                if len(shape) < 2
                else "X.reshape(len(X), -1)"
            )
            raise TransduceError(
                f"X has shape {shape}; expected (n, columns), a row for each {what}. Reshape your "
                f"data: {how}."
            )
        try:
            X = validate_data(self, X, dtype=np.float64, reset=fitting, ensure_all_finite=False)
        except ValueError as error:
            remedy = (
                "Expected rows of numbers, one or more, with the same columns in fit and predict."
            )
            if not fitting and math.prod(shape) == self.n_features_in_:
                remedy = f"If X is a single {what}, give X.reshape(1, -1)."
            elif not self.vectors and "features, but" in str(error):
                side = math.isqrt(self.n_features_in_)
                remedy = f"Bring images to {side} x {side} pixels: see transduce.families.resized."
            raise TransduceError(f"{error} {remedy}") from None
        wrong = np.argwhere(~np.isfinite(X))
        if len(wrong):
            row, column = wrong[0].tolist()
            raise TransduceError(
                f"X has NaN or infinite values, {len(wrong)} of {X.size}, the first in row {row}, "
                f"column {column}; expected finite "
                "numbers. Drop those rows or fill the gaps."
            )
        return X

    def _units(self, X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The least value and the range of what becomes [0, 1]: of each column of vectors, of all
        pixels of images alike."""
        if not self.vectors and not self.scale:
            return np.zeros(()), np.ones(())
        axis = 0 if self.vectors else None
        low, high = X.min(axis), X.max(axis)
        return np.asarray(low), np.where(high > low, high - low, 1.0)

    def _images(
        self, X: NDArray[Any], pixels: int, low: NDArray[Any], unit: NDArray[Any]
    ) -> NDArray[Any]:
        """What the model reads: rows of pixels."""
        columns, side = X.shape[1], math.isqrt(pixels)
        if self.vectors and columns > pixels:
            raise TransduceError(
                f"X has {columns} columns; this model expects vectors of at most {pixels}. Reduce "
                "them first."
            )
        if not self.vectors and columns != pixels:
            raise TransduceError(
                f"X has {columns} columns; this model expects images of {side} x {side} = "
                f"{pixels} pixels. Resize them (see "
                "transduce.families.resized), or, if rows are vectors of at most that length "
                "rather than images, give vectors=True."
            )
        if not self.vectors and not self.scale:
            check_pixels(
                X, "X", ", or give scale=True, which brings the range of the examples to [0, 1]"
            )
        if self.scale and not self.vectors and not 0.1 < np.ptp(X) / unit < 3:
            warnings.warn(
                f"X runs from {X.min():g} to {X.max():g}, where the examples ran from {low:g} to "
                f"{low + unit:g}: they were scaled by the "
                "latter. Give both in the same units.",
                stacklevel=3,
            )
        scaled = np.clip((X - low) / unit, -1, 2).astype(np.float32)
        return scaled[:, squares(columns, side)] if self.vectors else scaled

    def _more(self) -> dict[str, Any]:
        classes = self.classes_.tolist()
        if not all(isinstance(label, JSON) for label in classes):
            raise TransduceError(
                f"classes of type {type(classes[0]).__name__} cannot be written; expected strings "
                "or numbers. Fit to y.astype(str)."
            )
        return {
            "classes": classes,
            "dtype": self.classes_.dtype.str if self.classes_.dtype != object else "object",
        }

    def _outputs(self, y: Any, card: dict[str, Any]) -> Any:
        return np.array(card["classes"], dtype=np.dtype(card["dtype"]))[y]


def squares(columns: int, side: int) -> NDArray[Any]:
    """Which column each pixel shows: all of them, in turn, in squares as large as there is room
    for."""
    across = math.ceil(math.sqrt(columns))
    place = np.arange(side) * across // side
    return (place[:, None] * across + place).ravel() % columns


def _numbered(y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The classes in order, and the number of each label's."""
    values = y.tolist()
    missing = sum(value is None for value in values)
    if missing:
        raise TransduceError(
            f"y is None for {missing} of {len(y)} rows; expected a class for each. Drop the rows "
            "that have none."
        )
    try:
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:  # labels of several kinds have no order
        remedy = "Expected labels of one kind; give y.astype(str)."
        if all(isinstance(value, float) for value in values):
            remedy = (
                "For values to predict, use TransducerRegressor; if each is the name "
                "of a class, give y.astype(str)."
            )
        raise TransduceError(f"y is not of classes: {error} {remedy}") from None
    return classes, labels
