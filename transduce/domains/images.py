"""Images as rows of pixels from 0 to 1, and their classes as one-hot vectors.

v_i in [0, 1]^pixels,      u_i = e_k, where k is the class of image i
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..storage import opened_pairs
from ..types import Array, ExampleSet, TransduceError, to_tensor
from .base import DEFAULTS, Queries, Request
from .curves import hint
from .functions import Arrays

if TYPE_CHECKING:
    from ..files import PathLike
    from ..transducer import Transducer

ROUNDING = 1e-6  # by which pixels may lie outside [0, 1]


class Images(Arrays):
    """Files are those of functions; pixels and classes are checked as well."""

    name = "images"

    def check_model(self, T: Transducer) -> None:
        if not (T.V.vectors and T.U.vectors) or math.isqrt(T.V.size) ** 2 != T.V.size:
            raise TransduceError(
                f"the model maps {type(T.V).__name__} of size {T.V.size} to "
                f"{type(T.U).__name__} of size {T.U.size}; expected one from square images to "
                "classes, both Euclidean. Use 'images'."
            )

    def check(self, T: Transducer, examples: ExampleSet) -> None:
        check_classes(examples.u, "examples.u", T.U.size)
        check_pixels(examples.v, "examples.v")

    def read_examples(
        self, T: Transducer, source: PathLike, request: Request = DEFAULTS
    ) -> ExampleSet:
        with hint(), opened_pairs(source, request.choice) as file:
            u = file.fetch("u")  # checked first: an ExampleSet refuses labels, but not by one-hot
        check_classes(u, f"{request.u or 'u'} in {request.outputs or source}", T.U.size)
        examples = super().read_examples(T, source, request)
        check_pixels(examples.v, f"{request.v or 'v'} in {source}")
        return examples

    def read_queries(
        self,
        T: Transducer,
        source: PathLike,
        examples: ExampleSet,
        request: Request = DEFAULTS,
    ) -> Queries:
        queries = super().read_queries(T, source, examples, request)
        check_pixels(queries.functions, f"{request.v or 'v'} in {source}")
        return queries


DOMAIN = Images()


def check_pixels(images: Array, name: str, otherwise: str = "") -> None:
    """Raise an error if pixels are not from 0 to 1.

    Args:
        images: arrays of pixels.
        name: what the error message calls them.
        otherwise: another remedy than dividing, to be added to the message.
    """
    pixels = to_tensor(images, name)
    if pixels.numel() and (pixels.min() < -ROUNDING or pixels.max() > 1 + ROUNDING):
        raise TransduceError(
            f"{name} has values from {pixels.min():g} to {pixels.max():g}; expected pixels from 0 "
            f"to 1. Divide them by the greatest, like 255{otherwise}."
        )


def check_classes(u: Array, name: str, classes: int) -> None:
    """Raise an error if the rows of u are not one-hot vectors.

    Args:
        u: the outputs of examples.
        name: what the error message calls them.
        classes: the number of columns.
    """
    values = to_tensor(u, name)
    if (
        values.ndim != 2
        or values.shape[1] != classes
        or not (((values == 0) | (values == 1)).all() and (values.sum(1) == 1).all())
    ):
        raise TransduceError(
            f"{name} has shape {tuple(u.shape)}; this model classifies images and expects one-hot "
            f"classes of {classes} columns, (n, {classes}), with a 1 in that of each image's "
            "class. For labels, use transduce.sklearn.TransducerClassifier."
        )
