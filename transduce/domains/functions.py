"""Functions on uniform grids or at scattered sensors, and any other arrays without more structure.

Files hold v and u of shape (n, *grid), and positions x if sensors are scattered; see `storage`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ..storage import MissingVariableError, read_examples, read_functions
from ..types import Array, ExampleSet, TransduceError
from .base import DEFAULTS, Domain, Queries, Request

if TYPE_CHECKING:
    from ..conditioned import ConditionedOperator
    from ..files import PathLike
    from ..transducer import Transducer


class Functions(Domain):
    """The domain of every model that names no other."""

    name = "functions"

    def check_model(self, T: Transducer) -> None:
        """Every model takes arrays of functions."""

    def check(self, T: Transducer, examples: ExampleSet) -> None:
        """Functions may have any finite values, which `T.regress` checks."""

    def read_examples(
        self, T: Transducer, source: PathLike, request: Request = DEFAULTS
    ) -> ExampleSet:
        with _hint():
            return read_examples(source, request.v or "v", request.u or "u", request.x or "x")

    def read_queries(
        self,
        T: Transducer,
        source: PathLike,
        examples: ExampleSet,
        request: Request = DEFAULTS,
    ) -> Queries:
        scattered = examples.x is not None
        with _hint():
            return Queries(*read_functions(source, request.v or "v", request.x or "x", scattered))

    def answer(
        self, O: ConditionedOperator, queries: Queries, request: Request = DEFAULTS
    ) -> dict[str, Array]:
        """The predictions; with the sensors' positions if predictions are made there."""
        u_hat = O(queries.v, at=request.at, x=queries.x)
        if O.examples.x is None or request.at is not None:
            return {request.u or "u": u_hat}
        positions = np.asarray(O.examples.x)
        return {request.u or "u": np.asarray(u_hat), request.x or "x": positions}


DOMAIN = Functions()


def check_vector_model(T: Transducer) -> None:
    """Raise an error if vectors cannot take the place of coefficients: those of sine modes can
    have any values."""
    if not (T.V.free and T.U.free):
        V, U = type(T.V).__name__, type(T.U).__name__
        raise TransduceError(
            f"vectors=True with a model from {V} to {U}; expected SineModes, whose "
            "coefficients are free. Use 'adr', or vectors=False."
        )


@contextmanager
def _hint() -> Iterator[None]:
    """Adds to the error of a missing variable that the model may be of the wrong domain."""
    try:
        yield
    except MissingVariableError as error:
        raise TransduceError(
            f"{error} Models of other domains read other files: see transduce regress --help."
        ) from None
