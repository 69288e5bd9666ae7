"""In-context classification with the interface of scikit-learn.

    fit(X, y)          conditions T on (v_i, u_i) = (row i of X, the one-hot vector of class y_i)
    predict_proba(X)   softmax(beta T(D)(v)) for each row v, averaged over beta, weighted by the
                       leave-one-out likelihood of the examples

Rows are images with pixels from 0 to 1. With vectors=True rows are vectors: each column is scaled
from its range over the examples to [0, 1] and fills a square of an image. scikit-learn's estimator
checks use such tables and pass with vectors=True, except those in CANNOT_APPLY."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import numpy as np
import torch
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
    """Two to ten classes of images from a few examples, in one pass without training.

    Args:
        model: bundled weights by name, a .safetensors file, or a `Transducer` from images to
            classes.
        scale: whether to scale pixels from their range over the examples, such as 0 to 255, to
            [0, 1].
        vectors: whether rows are vectors rather than images.

    >>> # images: (100, 784), labels: any
    >>> TransducerClassifier().fit(images, labels).predict(new)
    """

    def __init__(
        self, model: object = "images", scale: object = False, vectors: object = False
    ):  # scikit-learn asks for no checks before `fit`
        self.model = model
        self.scale = scale
        self.vectors = vectors

    def fit(self, X: object, y: object) -> TransducerClassifier:
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

    def predict_proba(self, X: object) -> np.ndarray:
        """The probability of each of `classes_`."""
        check_is_fitted(self, "operator_")
        images = self._images(self._rows(X), self.model_.V.size, *self._scaling)
        return class_probabilities(self.operator_, images, self.sharpness_).numpy()[
            :, : len(self.classes_)
        ]

    def predict(self, X: object) -> np.ndarray:
        """The most probable class."""
        p = self.predict_proba(X)
        return self.classes_[p.argmax(1)]

    def _labels(self, y: object) -> np.ndarray:
        """y as scikit-learn reads it; raises an error with a remedy otherwise."""
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

    def _rows(self, X: object, fitting: bool = False) -> np.ndarray:
        """X as scikit-learn reads it; raises an error with a remedy otherwise."""
        # Lists are left to scikit-learn.
        what, shape = (
            "vector" if self.vectors else "image",
            tuple(getattr(X, "shape", (0, 0))),
        )
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
            rows: np.ndarray = validate_data(
                self, X, dtype=np.float64, reset=fitting, ensure_all_finite=False
            )
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
        wrong = np.argwhere(~np.isfinite(rows))
        if len(wrong):
            row, column = wrong[0].tolist()
            raise TransduceError(
                f"X has NaN or infinite values, {len(wrong)} of {rows.size}, the first in row "
                f"{row}, column {column}; expected finite numbers. Drop those rows or fill the "
                "gaps."
            )
        return rows

    def _units(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The minimum and the range of the values that are scaled to [0, 1]: per column for
        vectors, over all pixels for images."""
        if not self.vectors and not self.scale:
            return np.zeros(()), np.ones(())
        axis = 0 if self.vectors else None
        low, high = X.min(axis), X.max(axis)
        return np.asarray(low), np.where(high > low, high - low, 1.0)

    def _images(self, X: np.ndarray, pixels: int, low: np.ndarray, unit: np.ndarray) -> np.ndarray:
        """Rows of pixels, as the model reads them."""
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

    def _more(self) -> dict[str, object]:
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

    def _outputs(self, y: np.ndarray, card: Mapping[str, object]) -> np.ndarray:
        return np.array(card["classes"], dtype=np.dtype(str(card["dtype"])))[y]


def squares(columns: int, side: int) -> np.ndarray:
    """The column that each pixel shows. Each column fills a square of the image, as large as
    possible."""
    across = math.ceil(math.sqrt(columns))
    place = np.arange(side) * across // side
    return (place[:, None] * across + place).ravel() % columns


def _numbered(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes, and the index of each label among them."""
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
