"""The tab of fields: Burgers' equation in two dimensions, v = s(., 0) -> u = s(., t), of a
viscosity that the examples alone tell of.

As with curves, a request says all: the operator by a seed and the sliders, the query by a number,
or by its values once it was stirred."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Annotated

import torch
from pydantic import BaseModel, Field

from ..conditioned import ConditionedOperator
from ..families import Burgers2d
from ..families.burgers import Burgers2dOperator
from ..metrics import relative_l2, relative_mse
from ..random_fields import generator_for
from ..types import ExampleSet, TransduceError
from .models import model
from .packing import Packed, packed

MOST = 50
SHOWN = 9  # pairs that the page shows
OPERATOR, STARTS, QUERY = range(3)  # what a seed is drawn for
SOLVER = ThreadPoolExecutor(2)


class Fluid(BaseModel, frozen=True):
    """An operator, by its seed and the sliders; bounds are those of the sliders."""

    seed: Annotated[int, Field(ge=0, lt=2**31)]
    amplitude: Annotated[float, Field(ge=0.05, le=0.3)] = 0.2
    t: Annotated[float, Field(ge=0.5, le=10)] = 5.0


class Stirred(BaseModel):
    """What is asked: the answer for `v`, or for draw `query` of the fields like the examples'."""

    fluid: Fluid
    n: Annotated[int, Field(ge=2, le=MOST)] = 10
    query: Annotated[int, Field(ge=0, lt=2**31)] = 0
    v: Packed | None = None


def _family(fluid: Fluid) -> Burgers2d:
    return Burgers2d(amplitude=fluid.amplitude, increment=fluid.t)


def solver(fluid: Fluid) -> Burgers2dOperator:
    """The operator itself, which the regression never sees."""
    return _family(fluid).sample_operator(generator_for("test", OPERATOR, fluid.seed))


@lru_cache(maxsize=8)
def _pairs(fluid: Fluid, n: int) -> ExampleSet:
    return _family(fluid).sample_pairs(solver(fluid), n, generator_for("test", STARTS, fluid.seed))


@lru_cache(maxsize=8)
def regressed(fluid: Fluid, n: int) -> tuple[ConditionedOperator, float]:
    """The operator regressed from n examples, and how many milliseconds that took."""
    pairs = _pairs(fluid, n)
    start = time.perf_counter()
    return model("burgers").regress(pairs), 1000 * (time.perf_counter() - start)


def _query(stirred: Stirred) -> torch.Tensor:
    points = _family(stirred.fluid).points
    if stirred.v is None:
        draw = generator_for("test", QUERY, stirred.fluid.seed, stirred.query)
        return _family(stirred.fluid).sample_starts(solver(stirred.fluid), 1, draw)
    v = torch.from_numpy(stirred.v.unpacked("v"))
    if v.shape != (2, points, points):
        raise TransduceError(
            f"v has shape {tuple(v.shape)}; expected (2, {points}, {points}), the two components "
            "of a field."
        )
    return v[None]


def predict(stirred: Stirred) -> dict[str, object]:
    """The field after a time t as regressed, and as it is; v too, where the page does not know it
    yet."""
    v = _query(stirred)
    O, regression = regressed(stirred.fluid, stirred.n)
    solving = SOLVER.submit(solver(stirred.fluid), v)  # as long as the answer takes
    start = time.perf_counter()
    u_hat = O(v)
    milliseconds = 1000 * (time.perf_counter() - start)
    truth = solving.result()
    errors = {
        "error": float(relative_l2(u_hat, truth)),
        "squared": float(relative_mse(u_hat, truth)),
    }
    fields = {
        "v": packed(v[0]) if stirred.v is None else None,
        "u_hat": packed(u_hat[0]),
        "truth": packed(truth[0]),
    }
    return {
        **fields,
        **errors,
        "milliseconds": milliseconds,
        "regression": regression,
        "viscosity": solver(stirred.fluid).nu,
    }


def show(stirred: Stirred) -> dict[str, object]:
    """The first pairs on every second point, to be drawn small."""
    pairs = _pairs(stirred.fluid, stirred.n)[:SHOWN]
    return {name: packed(getattr(pairs, name)[..., ::2, ::2]) for name in ("v", "u")}
