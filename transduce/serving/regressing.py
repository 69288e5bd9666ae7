"""From the fields of a request's body to an operator, and to predictions, within sizes that bound
memory and time.

The memory of a regression grows with the coefficients of the examples and, for kernels that solve,
with the squared number of examples times the number of systems. The memory of a prediction grows
with the coefficients of the queries and with the size of the answer, whose grid the client
chooses."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..conditioned import ConditionedOperator
from ..transducer import Transducer
from ..types import ExampleSet, TransduceError
from .bodies import TooLargeError
from .operators import Regressed
from .warned import collecting_warnings

Prediction = dict[str, np.ndarray | float | list[str]]  # arrays, milliseconds and warnings


@dataclass(frozen=True)
class Sizes:
    """The largest sizes that the server accepts.

    Args:
        examples: examples of an operator, divided by the number of systems that the model solves.
        queries: queries of one request.
        coefficients: coefficients of all examples, or of all queries of one request.
        function: values of one function.
        positions: scattered positions.
        answer: numbers of one answer.
    """

    examples: int = 1000
    queries: int = 10_000
    coefficients: int = 2**20
    function: int = 2**17
    positions: int = 4096
    answer: int = 2**22

    def check(self, what: str, size: int, most: int, remedy: str) -> None:
        """Raise an error if `size` is above `most`."""
        if size > most:
            raise TooLargeError(f"{what}: {size}; this server takes at most {most}. {remedy}")


def condition(
    models: Mapping[str, Transducer], fields: Mapping[str, object], model: str, sizes: Sizes
) -> Regressed:
    """Regress the operator that the examples in a request come from.

    Args:
        models: by name.
        fields: v, u and optionally x and model, from the body of the request.
        model: the name of the model if `fields` has none.
        sizes: what the server accepts.
    """
    _check_names(fields, ("v", "u"), ("x", "model"))
    name = fields.get("model", model)
    if not isinstance(name, str) or name not in models:
        raise TransduceError(
            f"this server has no model {str(name)[:50]!r}; it has {', '.join(models)}. Name one "
            "of these."
        )
    v, u = _functions(fields, "v", sizes), _functions(fields, "u", sizes)
    sizes.check("examples", len(v), sizes.examples // models[name].systems, "Send fewer.")
    sizes.check(
        "coefficients of all examples",
        len(v) * models[name].V.size,
        sizes.coefficients,
        "Send fewer examples.",
    )
    examples = ExampleSet(v, u, _positions(fields, "x", sizes))
    start = time.perf_counter()
    with collecting_warnings() as said:
        O = models[name].regress(examples)
    return Regressed(name, O, 1000 * (time.perf_counter() - start), said)


def predict(O: ConditionedOperator, fields: Mapping[str, object], sizes: Sizes) -> Prediction:
    """Predictions u for the queries in a request, with low and high if it asks for a band,
    milliseconds and warnings.

    Args:
        O: the operator.
        fields: v and optionally x, at and band, from the body of the request.
        sizes: what the server accepts.
    """
    _check_names(fields, ("v",), ("x", "at", "band"))
    v, x, at = (
        _functions(fields, "v", sizes),
        _positions(fields, "x", sizes),
        _where(fields, O.T.U.dims, sizes),
    )
    band = (
        None
        if "band" not in fields
        else _number(fields["band"], "band", "a share of the values between 0 and 1, like 0.9")
    )
    names = ("u",) if band is None else ("u", "low", "high")
    asked = len(at) if isinstance(at, np.ndarray) else math.prod(at or ())
    values = math.prod(O.examples.u.shape[1:]) if at is None else O.T.U.channels * asked
    sizes.check("queries", len(v), sizes.queries, "Send fewer at a time.")
    sizes.check(
        "coefficients of all queries",
        len(v) * O.T.V.size,
        sizes.coefficients,
        "Send fewer queries at a time.",
    )
    sizes.check(
        "numbers of the answer",
        len(names) * len(v) * values,
        sizes.answer,
        "Send fewer queries, or ask for fewer points.",
    )
    start = time.perf_counter()
    with collecting_warnings() as said:
        arrays = (O(v, at=at, x=x),) if band is None else O.predict(v, band=band, at=at, x=x)
    milliseconds = 1000 * (time.perf_counter() - start)
    if not all(np.isfinite(array).all() for array in arrays):
        raise TransduceError(
            "the answer is not finite: values of the examples or queries are far from those this "
            "model knows. Rescale them."
        )
    return dict(zip(names, arrays, strict=True)) | {"milliseconds": milliseconds, "warnings": said}


def _check_names(
    fields: Mapping[str, object], required: tuple[str, ...], optional: tuple[str, ...]
) -> None:
    if not set(required) <= set(fields) <= {*required, *optional}:
        received = ", ".join(sorted(name[:50] for name in fields)) or "none"
        raise TransduceError(
            f"the body has the fields {received}; expected {', '.join(required)}, and, if wanted, "
            f"{', '.join(optional)}."
        )


def _functions(fields: Mapping[str, object], name: str, sizes: Sizes) -> np.ndarray:
    """A field of functions, in single precision, in which models compute."""
    f = fields[name]
    if not isinstance(f, np.ndarray) or f.ndim < 2 or f.size == 0:
        received = (
            f"has shape {f.shape}" if isinstance(f, np.ndarray) else f"is a {type(f).__name__}"
        )
        raise TransduceError(
            f"{name} {received}; expected at least one function, (n, points). For a single one, "
            "give a list of one list."
        )
    sizes.check(
        f"values of each function {name}",
        math.prod(f.shape[1:]),
        sizes.function,
        "Send them on a coarser grid.",
    )
    with np.errstate(over="ignore"):
        return f.astype(np.float32)


def _positions(fields: Mapping[str, object], name: str, sizes: Sizes) -> np.ndarray | None:
    x = fields.get(name)
    if name not in fields:
        return None
    if not isinstance(x, np.ndarray) or x.ndim not in (1, 2):
        raise TransduceError(
            f"{name} is no list of positions; expected numbers in [0, 1], or in two dimensions "
            "lists of two."
        )
    sizes.check(f"positions in {name}", len(x), sizes.positions, "Send fewer.")
    return x


def _where(
    fields: Mapping[str, object], dims: int, sizes: Sizes
) -> tuple[int, ...] | np.ndarray | None:
    """`at`, as the library takes it. A number of points, or two numbers in two dimensions, are a
    uniform grid; other values are positions."""
    at = fields.get("at")
    if "at" not in fields or (
        isinstance(at, np.ndarray) and at.ndim and not (dims > 1 and at.shape == (dims,))
    ):
        return _positions(fields, "at", sizes)
    counts = (
        at.tolist()
        if isinstance(at, np.ndarray) and at.ndim
        else [_number(at, "at", "a whole number of points, or positions")] * dims
    )
    if not all(count == int(count) and count >= 1 for count in counts):
        raise TransduceError(
            f"at is {counts}; expected whole numbers of points, each at least 1, or positions in "
            "[0, 1]."
        )
    sizes.check(
        "points to answer at", math.prod(map(int, counts)), sizes.function, "Ask for fewer."
    )
    return tuple(map(int, counts))


def _number(value: object, name: str, expected: str) -> float:
    number = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(number, bool) or not isinstance(number, int | float) or abs(number) > 1e9:
        raise TransduceError(f"{name} is {str(value)[:50]}; expected {expected}.")
    return float(number)
