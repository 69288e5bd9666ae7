"""Functions on uniform grids or at scattered sensors, and any other arrays without more structure.

Files hold v and u of shape (n, *grid), and positions x if sensors are scattered; see `storage`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ..inputs import read_pairs
from ..regression import RegressedOperator
from ..storage import MissingVariableError, read_examples, read_functions
from ..types import Array, ExampleSet, TransduceError
from .base import DEFAULTS, Domain, Queries, Request, ends_of

if TYPE_CHECKING:
    from ..conditioned import ConditionedOperator
    from ..files import PathLike
    from ..transducer import Transducer


class Functions(Domain["Transducer", ExampleSet, "ConditionedOperator"]):
    """The domain of every model that names no other."""

    name = "functions"

    def check_model(self, T: Transducer) -> None:
        """Every model takes arrays of functions."""

    def check(self, T: Transducer, examples: ExampleSet) -> None:
        """Functions may have any finite values, which `T.regress` checks."""

    def read_examples(
        self, T: Transducer, source: PathLike, request: Request = DEFAULTS
    ) -> ExampleSet:
        with hint():
            return read_examples(source, request.v or "v", request.u or "u", request.x or "x")

    def read_queries(
        self,
        T: Transducer,
        source: PathLike,
        examples: ExampleSet,
        request: Request = DEFAULTS,
    ) -> Queries:
        scattered = examples.x is not None
        with hint():
            return Queries(*read_functions(source, request.v or "v", request.x or "x", scattered))

    def regress(self, T: Transducer, examples: ExampleSet, name: str = "") -> ConditionedOperator:
        return T.regress(examples)

    def answer(
        self, O: ConditionedOperator, queries: Queries, request: Request = DEFAULTS
    ) -> dict[str, Array]:
        """The predictions; with the sensors' positions if predictions are made there."""
        at, x = request.at, queries.x
        if request.band is None:
            parts: tuple[Array, ...] = (O(queries.v, at=at, x=x),)
        else:
            parts = O.predict(queries.v, band=request.band, at=at, x=x)
        answers = dict(zip(ends_of(request.u or "u"), parts, strict=False))
        if O.examples.x is None or at is not None:
            return answers
        plain: dict[str, Array] = {name: np.asarray(part) for name, part in answers.items()}
        return plain | {request.x or "x": np.asarray(O.examples.x)}

    def report(self, O: ConditionedOperator, name: str = "") -> str:
        if O.T.V.dims != 1 or O.T.V.vectors:
            return super().report(O)
        v, u, x = (np.asarray(f) for f in (O.examples.v, O.examples.u, O.examples.x))
        if O.examples.x is None:
            pairs = read_pairs(v, u)
        else:
            order = np.argsort(x)
            pairs = read_pairs(v[..., order], u[..., order], x=x[order])
        return str(RegressedOperator(pairs, name, O.T).report())


DOMAIN = Functions()


def check_vector_model(T: Transducer) -> None:
    """Raise an error if vectors cannot take the place of coefficients: those of sine modes can
    have any values."""
    if not (T.V.free and T.U.free):
        V, U = type(T.V).__name__, type(T.U).__name__
        raise TransduceError(
            f"vectors=True with a model from {V} to {U}; expected SineModes, whose "
            "coefficients are free. Use 'adr', or vectors=False with model='general', which takes "
            "any columns."
        )


@contextmanager
def hint() -> Iterator[None]:
    """Adds to the error of a missing variable that the model may be of the wrong domain."""
    try:
        yield
    except MissingVariableError as error:
        raise TransduceError(
            f"{error} Models of other domains read other files: see transduce regress --help."
        ) from None
