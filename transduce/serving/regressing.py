"""From the fields of a request's body to an operator, and to predictions, within sizes that bound
memory and time.

The memory of a regression grows with the coefficients of the examples and, for kernels that solve,
with the squared number of examples times the number of systems. The memory of a prediction grows
with the coefficients of the queries and with the size of the answer, whose grid the client
chooses."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..inputs import read_pairs
from ..regression import RegressedOperator
from ..regression.named import suited
from ..transducer import Transducer
from ..types import ExampleSet, TransduceError
from .bodies import TooLargeError
from .operators import Regressed
from .served import Operator, served
from .warned import collecting_warnings

ADAPTING = ("x_v", "x_u", "parameters")  # fields for models that adapt to grids
COARSER = "Send them on a coarser grid."
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
        points: of a function along an axis, and of its answers, for models that adapt to grids:
            their memory grows with the square of it.
        values: of a function, for these models.
        curves: numbers of all examples for these models.
    """

    examples: int = 1000
    queries: int = 10_000
    coefficients: int = 2**20
    function: int = 2**17
    positions: int = 4096
    answer: int = 2**22
    points: int = 2048
    values: int = 2**13
    curves: int = 2**18

    def check(self, what: str, size: int, most: int, remedy: str) -> None:
        """Raise an error if `size` is above `most`."""
        if size > most:
            raise TooLargeError(f"{what}: {size}; this server takes at most {most}. {remedy}")

    def check_function(self, name: str, f: np.ndarray) -> None:
        """Raise an error if functions are too large for models that adapt to grids."""
        axes = max(f.shape[1:], default=1)
        self.check(f"points of each {name} along an axis", axes, self.points, COARSER)
        self.check(f"values of each {name}", f.size // len(f), self.values, COARSER)


def condition(
    models: Mapping[str, Transducer], fields: Mapping[str, object], model: str, sizes: Sizes
) -> Regressed:
    """Regress the operator that the examples in a request come from.

    Args:
        models: by name.
        fields: v, u and optionally x, x_v, x_u, parameters and model, from the body of the
            request.
        model: the name of the model if `fields` has none.
        sizes: what the server accepts.
    """
    _check_names(fields, ("v", "u"), ("x", *ADAPTING, "model"))
    name = fields.get("model", model)
    if not isinstance(name, str) or name not in models:
        raise TransduceError(
            f"this server has no model {str(name)[:50]!r}; it has {', '.join(models)}. Name one "
            "of these."
        )
    T = models[name]
    regress = (
        _of_any_grid(name, T, fields, sizes) if T.V.adapts else _of_family(name, T, fields, sizes)
    )
    start = time.perf_counter()
    with collecting_warnings() as said:
        O = regress()
        errors = served(O).errors
    return Regressed(name, O, 1000 * (time.perf_counter() - start), said, *errors)


def _of_family(
    name: str, T: Transducer, fields: Mapping[str, object], sizes: Sizes
) -> Callable[[], Operator]:
    """The regression by a model of one family, once sizes are checked."""
    given = [field for field in ADAPTING if field in fields]
    if given:
        raise TransduceError(
            f"{', '.join(given)} with the model {name!r}; expected a model that adapts to grids, "
            "such as 'general'. Name it, or leave them out."
        )
    v, u = _functions(fields, "v", sizes), _functions(fields, "u", sizes)
    sizes.check("examples", len(v), sizes.examples // T.systems, "Send fewer.")
    sizes.check(
        "coefficients of all examples",
        len(v) * T.V.size,
        sizes.coefficients,
        "Send fewer examples.",
    )
    examples = ExampleSet(v, u, _positions(fields, "x", sizes))
    return lambda: T.regress(examples)


def _of_any_grid(
    name: str, T: Transducer, fields: Mapping[str, object], sizes: Sizes
) -> Callable[[], Operator]:
    """The regression by a model that adapts to grids, once sizes are checked."""
    v, u = (_functions(fields, key, sizes, np.float64, 1) for key in ("v", "u"))
    sizes.check("examples", len(v), sizes.examples, "Send fewer.")
    for key, f in (("v", v), ("u", u)):
        sizes.check_function(key, f)
        sizes.check(f"numbers of all examples {key}", f.size, sizes.curves, "Send fewer examples.")
    x, x_v, x_u = (_positions(fields, key, sizes) for key in ("x", "x_v", "x_u"))
    parameters = _parameters(fields, sizes)

    def regress() -> RegressedOperator:
        pairs = read_pairs(v, u, x=x, x_v=x_v, x_u=x_u, parameters=parameters)
        return RegressedOperator(pairs, name, suited(name, T, pairs))

    return regress


def predict(O: Operator, fields: Mapping[str, object], sizes: Sizes) -> Prediction:
    """Predictions u for the queries in a request, with low and high if it asks for a band,
    milliseconds and warnings.

    Args:
        O: the operator.
        fields: v and optionally x, at, band and parameters, from the body of the request.
        sizes: what the server accepts.
    """
    asked = served(O)
    _check_names(fields, ("v",), asked.fields)
    v = _functions(fields, "v", sizes, asked.precision, 1 if asked.adapts else 2)
    at = _where(fields, asked.dims, sizes)
    given = {"x": _positions(fields, "x", sizes)}
    if asked.adapts:
        given["parameters"] = _parameters(fields, sizes)
        sizes.check_function("v", v)
        if at is not None:
            sizes.check("points to answer at", asked.values(at), sizes.points, "Ask for fewer.")
    band = (
        None
        if "band" not in fields
        else _number(fields["band"], "band", "a share of the values between 0 and 1, like 0.9")
    )
    names = ("u",) if band is None else ("u", "low", "high")
    sizes.check("queries", len(v), sizes.queries, "Send fewer at a time.")
    sizes.check(
        "coefficients of all queries",
        asked.coefficients(v),
        sizes.coefficients,
        "Send fewer queries at a time.",
    )
    sizes.check(
        "numbers of the answer",
        len(names) * len(v) * asked.values(at),
        sizes.answer,
        "Send fewer queries, or ask for fewer points.",
    )
    start = time.perf_counter()
    with collecting_warnings() as said:
        arrays = asked.answer(v, at, given, band)
    milliseconds = 1000 * (time.perf_counter() - start)
    if not all(np.isfinite(array).all() for array in arrays):
        raise TransduceError(
            "the answer is not finite: values of the examples or queries are far from those this "
            "model knows. Rescale them."
        )
    found: Prediction = {"milliseconds": milliseconds, "warnings": said}
    return {**dict(zip(names, arrays, strict=True)), **found}


def _check_names(
    fields: Mapping[str, object], required: tuple[str, ...], optional: tuple[str, ...]
) -> None:
    if not set(required) <= set(fields) <= {*required, *optional}:
        received = ", ".join(sorted(name[:50] for name in fields)) or "none"
        raise TransduceError(
            f"the body has the fields {received}; expected {', '.join(required)}, and, if wanted, "
            f"{', '.join(optional)}."
        )


def _functions(
    fields: Mapping[str, object],
    name: str,
    sizes: Sizes,
    precision: type[np.floating] = np.float32,
    fewest_axes: int = 2,
) -> np.ndarray:
    """A field of functions, in the precision in which the model computes."""
    f = fields[name]
    if not isinstance(f, np.ndarray) or f.ndim < fewest_axes or f.size == 0:
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
        return f.astype(precision)


def _parameters(fields: Mapping[str, object], sizes: Sizes) -> np.ndarray | None:
    """The numbers that come with each function."""
    p = fields.get("parameters")
    if "parameters" not in fields:
        return None
    if not isinstance(p, np.ndarray) or p.ndim not in (1, 2) or p.size == 0:
        raise TransduceError(
            "parameters are no list of numbers; expected one number, or a list, for each function."
        )
    sizes.check("parameters of each function", p.size // len(p), sizes.points, "Send fewer.")
    return p.astype(np.float64)


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
