"""Functions on uniform grids or at scattered sensors, and any other arrays without more structure.

Files hold v and u of shape (n, *grid), and positions x if sensors are scattered; see `storage`.
Positions in [0, 1] are those of the model. Functions of one variable at other positions are read as
curves: the interval of x becomes [0, 1], as `transduce.regress` does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union, cast

import numpy as np

from ..inputs import Pairs, read_pairs
from ..regression import RegressedOperator
from ..storage import read_examples, read_functions
from ..types import Array, ExampleSet, TransduceError
from .base import DEFAULTS, Domain, Queries, Request, ends_of
from .curves import DOMAIN as CURVES
from .curves import hint, own_positions

if TYPE_CHECKING:
    from ..conditioned import ConditionedOperator
    from ..files import PathLike
    from ..transducer import Transducer


class Arrays(Domain["Transducer", ExampleSet, "ConditionedOperator"]):
    """Functions on the grid of a model, or at sensors in [0, 1]."""

    name = "functions"

    def check_model(self, T: Transducer) -> None:
        """Every model takes arrays of functions."""

    def check(self, T: Transducer, examples: ExampleSet) -> None:
        """Functions may have any finite values, which `T.regress` checks."""

    def read_examples(
        self, T: Transducer, source: PathLike, request: Request = DEFAULTS
    ) -> ExampleSet:
        if request.parameters is not None:
            raise TransduceError(
                f"--parameters {request.parameters} with a model of a family; expected functions v "
                "alone. Use the general model, or leave out --parameters."
            )
        with hint():
            return read_examples(
                source, request.v, request.u, request.x or "x", request.outputs, request.columns
            )

    def read_queries(
        self,
        T: Transducer,
        source: PathLike,
        examples: ExampleSet,
        request: Request = DEFAULTS,
    ) -> Queries:
        scattered = examples.x is not None
        with hint():
            return Queries(
                *read_functions(source, request.v, request.x or "x", scattered, request.columns)
            )

    def regress(self, T: Transducer, examples: ExampleSet, name: str = "") -> ConditionedOperator:
        return T.regress(examples)

    def answer(
        self, O: ConditionedOperator, queries: Queries, request: Request = DEFAULTS
    ) -> dict[str, Array]:
        """The predictions; with the sensors' positions if predictions are made there."""
        at, x = request.at, queries.x
        if request.band is None:
            parts: tuple[Array, ...] = (O(queries.functions, at=at, x=x),)
        else:
            parts = O.predict(queries.functions, band=request.band, at=at, x=x)
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


ARRAYS = Arrays()
Examples = ExampleSet | Pairs
Answering = Union["ConditionedOperator", RegressedOperator]


class Functions(Domain["Transducer", Examples, Answering]):
    """The domain of every model that names no other."""

    name = "functions"

    def check_model(self, T: Transducer) -> None:
        ARRAYS.check_model(T)

    def check(self, T: Transducer, examples: Examples) -> None:
        """Functions may have any finite values, which `T.regress` checks."""

    def read_examples(
        self, T: Transducer, source: PathLike, request: Request = DEFAULTS
    ) -> Examples:
        examples = ARRAYS.read_examples(T, source, request)
        if _in_other_units(T, examples, source):
            return CURVES.read_examples(T, source, request)
        return examples

    def read_queries(
        self, T: Transducer, source: PathLike, examples: Examples, request: Request = DEFAULTS
    ) -> Queries:
        return _domain_of(examples).read_queries(T, source, examples, request)

    def regress(self, T: Transducer, examples: Examples, name: str = "") -> Answering:
        return _domain_of(examples).regress(T, examples, name)

    def answer(
        self, O: Answering, queries: Queries, request: Request = DEFAULTS
    ) -> dict[str, Array]:
        return _domain_of(O).answer(O, queries, request)

    def report(self, O: Answering, name: str = "") -> str:
        return _domain_of(O).report(O, name)


def _domain_of(data: Examples | Answering) -> Domain[Transducer, Examples, Answering]:
    """The domain of examples, or of the operator that was regressed from them."""
    curves = isinstance(data, Pairs | RegressedOperator)
    return cast("Domain[Transducer, Examples, Answering]", CURVES if curves else ARRAYS)


DOMAIN = Functions()


def _in_other_units(T: Transducer, examples: ExampleSet, source: PathLike) -> bool:
    """Whether functions of one variable have positions that are not in [0, 1]."""
    if T.V.dims != 1 or T.V.vectors:
        return False
    given = [*own_positions(source), *([] if examples.x is None else [examples.x])]
    found = [np.asarray(x) for x in given]
    return any(x.dtype.kind in "Mm" or x.min() < 0 or x.max() > 1 for x in found if x.size)


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
