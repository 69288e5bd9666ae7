"""A classification in context with the interface of scikit-learn.

    fit(X, y)           conditions T on the examples (v_i, u_i) = (row i of X, the one-hot vector of class y_i)
    predict_proba(X)    softmax(beta T(D)(v)) for each row v, beta being what the examples, left out one by one, make likeliest

Rows are images, by their pixels from 0 to 1. With vectors=True they are any vectors instead: columns, each brought from its range over the
examples to [0, 1], are the first pixels of an image. scikit-learn's checks are of such tables and hold with vectors=True.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..spaces import Euclidean
from ..transducer import Transducer
from ..types import ExampleSet, TransduceError
from ..uncertainty import class_probabilities
from .saving import Saved

JSON = (str, int, float, bool)


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
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        T = self.model if isinstance(self.model, Transducer) else Transducer.from_pretrained(str(self.model))
        if not isinstance(T.V, Euclidean) or not isinstance(T.U, Euclidean):
            raise TransduceError(
                f"the model maps {type(T.V).__name__} to {type(T.U).__name__}; expected one from images to classes. Use 'images'."
            )
        self.classes_, labels = np.unique(y, return_inverse=True)
        if not 2 <= len(self.classes_) <= T.U.size:
            raise TransduceError(
                f"y has {len(self.classes_)} class{'es' * (len(self.classes_) > 1)}; this classifier expects 2 to {T.U.size}. "
                + ("Give examples of another class." if len(self.classes_) < 2 else "Merge some, or tell them apart in several steps.")
            )
        self.model_, self.X_, self.y_ = T, X, labels
        self._low, self._range = self._units(X)
        self.operator_ = T.regress(ExampleSet(self._images(X), np.eye(T.U.size)[labels]))
        return self

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return class_probabilities(self.operator_, self._images(X)).numpy()[:, : len(self.classes_)]

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class."""
        p = self.predict_proba(X)
        return self.classes_[p.argmax(1)]

    def _units(self, X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The least value and the range of what becomes [0, 1]: of each column of vectors, of all pixels of images alike."""
        if not self.vectors and not self.scale:
            return np.zeros(()), np.ones(())
        axis = 0 if self.vectors else None
        low, high = X.min(axis), X.max(axis)
        return np.asarray(low), np.where(high > low, high - low, 1.0)

    def _images(self, X: NDArray[Any]) -> NDArray[Any]:
        pixels = self.model_.V.size
        if X.shape[1] > pixels or (X.shape[1] < pixels and not self.vectors):
            side = int(pixels**0.5)
            raise TransduceError(
                f"X has {X.shape[1]} columns; this model expects images of {side} x {side} = {pixels} pixels. Resize them (see "
                "transduce.families.resized), or, if rows are vectors of at most that length rather than images, give vectors=True."
            )
        if not self.vectors and not self.scale and (X.min() < 0 or X.max() > 1):
            raise TransduceError(
                f"X has values from {X.min():g} to {X.max():g}; expected pixels from 0 to 1. Divide them by the greatest, like 255, or "
                "give scale=True, which brings the range of the examples to [0, 1]."
            )
        scaled = np.clip((X - self._low) / self._range, -1, 2) if self.scale or self.vectors else X
        return np.pad(scaled, ((0, 0), (0, pixels - X.shape[1]))).astype(np.float32)

    def _more(self) -> dict[str, Any]:
        classes = self.classes_.tolist()
        if not all(isinstance(label, JSON) for label in classes):
            raise TransduceError(f"classes of type {type(classes[0]).__name__} cannot be written; expected strings or numbers.")
        return {"classes": classes, "dtype": self.classes_.dtype.str if self.classes_.dtype != object else "object"}

    def _outputs(self, y: Any, card: dict[str, Any]) -> Any:
        return np.array(card["classes"], dtype=np.dtype(card["dtype"]))[y]
