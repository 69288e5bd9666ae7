"""The tab of images: classes from a few drawings with names, by the interface of scikit-learn."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field
from sklearn.datasets import load_digits

from ..sklearn import TransducerClassifier
from ..types import TransduceError
from .models import model
from .packing import Packed, packed

MOST = 200
EACH = 5  # digits of each class to start from

Name = Annotated[str, Field(min_length=1, max_length=24)]


class Drawings(BaseModel):
    """Drawings with their names, and one without: rows of 28 x 28 pixels from 0 to 1."""

    names: Annotated[tuple[Name, ...], Field(max_length=MOST)]
    images: Packed
    query: Packed


@lru_cache(maxsize=8)
def _fitted(
    names: tuple[str, ...], pixels: bytes, columns: int
) -> tuple[TransducerClassifier, float]:
    images = np.frombuffer(pixels, np.float32).reshape(-1, columns)
    start = time.perf_counter()
    return TransducerClassifier(model("images")).fit(images, np.array(names)), 1000 * (
        time.perf_counter() - start
    )


def classify(drawings: Drawings) -> dict[str, object]:
    """How likely each name is to be that of the drawing without one."""
    images, query = drawings.images.unpacked("images"), drawings.query.unpacked("query")
    if images.ndim != 2 or query.ndim != 2 or len(query) != 1:
        raise TransduceError(
            f"images have shape {images.shape} and query {query.shape}; expected (n, 784) and (1, "
            "784)."
        )
    classifier, regression = _fitted(drawings.names, images.tobytes(), images.shape[1])
    start = time.perf_counter()
    p = classifier.predict_proba(query)[0]
    milliseconds = 1000 * (time.perf_counter() - start)
    return {
        "classes": classifier.classes_.tolist(),
        "p": p.tolist(),
        "milliseconds": milliseconds,
        "regression": regression,
    }


def digits() -> dict[str, object]:
    """The first digits of each class in the set that comes with scikit-learn, 8 x 8 pixels from 0
    to 1."""
    found = load_digits()
    rows = np.concatenate([np.flatnonzero(found.target == digit)[:EACH] for digit in range(10)])
    return {
        "images": packed(found.data[rows] / 16),
        "names": [str(digit) for digit in found.target[rows]],
    }
