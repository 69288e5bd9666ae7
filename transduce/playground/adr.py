"""The tab of curves: an advection-diffusion-reaction operator that its examples alone tell of.

Nothing is kept for a visitor: each request says which operator it means, by a seed and the sliders,
and which of its POOL examples are given. What was drawn or regressed last is remembered, so that a
drag takes only a prediction."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import Annotated

import torch
from pydantic import BaseModel, Field

from ..conditioned import ConditionedOperator
from ..families import AdvectionDiffusionReaction
from ..families.adr import AdvectionDiffusionReactionOperator
from ..metrics import relative_l2, relative_mse
from ..random_fields import generator_for
from ..types import ExampleSet, TransduceError
from ..uncertainty import influence, outlier_scores
from .models import model
from .packing import packed

POOL = 100
POINTS = 101
REGRESSIONS = 200  # of the search for outliers
OPERATOR, PAIRS, STRANGER = range(3)  # what a seed is drawn for

Indices = Annotated[tuple[Annotated[int, Field(ge=0, lt=POOL)], ...], Field(max_length=POOL)]
State = Annotated[tuple[float, ...], Field(min_length=POINTS, max_length=POINTS)]


class Hidden(BaseModel, frozen=True):
    """An operator, by its seed and the sliders; bounds are those of the sliders."""

    seed: Annotated[int, Field(ge=0, lt=2**31)]
    length_scale: Annotated[float, Field(ge=0.05, le=0.8)] = 0.2
    k: Annotated[float, Field(ge=0, le=0.4)] = 0.2
    t: Annotated[float, Field(ge=0.1, le=1.25)] = 1.0


class Given(BaseModel):
    """What the regression is given: examples of an operator, by their numbers in its pool;
    strangers: those that come from another."""

    hidden: Hidden
    examples: Indices
    strangers: Indices = ()


class Asked(Given):
    """An initial state to answer for; chosen: the example to leave out for comparison, if one
    is."""

    v: State
    chosen: int | None = None


def _family(hidden: Hidden) -> AdvectionDiffusionReaction:
    return AdvectionDiffusionReaction(length_scale=hidden.length_scale, k_max=hidden.k, t=hidden.t)


@lru_cache(maxsize=16)
def solver(hidden: Hidden) -> AdvectionDiffusionReactionOperator:
    """The operator itself, which the regression never sees."""
    return replace(
        _family(hidden).sample_operator(generator_for("test", OPERATOR, hidden.seed)), k=hidden.k
    )


@lru_cache(maxsize=16)
def pool(hidden: Hidden) -> tuple[ExampleSet, torch.Tensor]:
    """All its examples, and the images of the same functions under another operator, which does not
    react and so never blows up."""
    family = _family(hidden)
    pairs = family.sample_pairs(solver(hidden), POOL, generator_for("test", PAIRS, hidden.seed))
    stranger = replace(family.sample_operator(generator_for("test", STRANGER, hidden.seed)), k=0.0)
    return pairs, stranger(pairs.v)


def examples_of(given: Given) -> ExampleSet:
    """The pairs that a regression is given, strangers among them."""
    if not given.examples or len(set(given.examples)) < len(given.examples):
        raise TransduceError(
            f"{len(given.examples)} examples, {len(set(given.examples))} of them distinct; "
            "expected one or more, each once."
        )
    pairs, foreign = pool(given.hidden)
    rows = torch.tensor(given.examples)
    spoiled = torch.isin(rows, torch.tensor(given.strangers, dtype=rows.dtype))
    return ExampleSet(pairs.v[rows], torch.where(spoiled[:, None], foreign[rows], pairs.u[rows]))


def regressed(given: Given) -> tuple[ConditionedOperator, float]:
    """The operator regressed from the examples, and how many milliseconds that took."""
    return _regressed(given.hidden, given.examples, tuple(sorted(set(given.strangers))))


@lru_cache(maxsize=64)
def _regressed(
    hidden: Hidden, examples: tuple[int, ...], strangers: tuple[int, ...]
) -> tuple[ConditionedOperator, float]:
    pairs = examples_of(Given(hidden=hidden, examples=examples, strangers=strangers))
    start = time.perf_counter()
    return model("adr").regress(pairs), 1000 * (time.perf_counter() - start)


def show(hidden: Hidden) -> dict[str, object]:
    """The pool of examples, to be drawn."""
    pairs, foreign = pool(hidden)
    return {"v": packed(pairs.v), "u": packed(pairs.u), "foreign": packed(foreign)}


def predict(asked: Asked) -> dict[str, object]:
    """The prediction with its band, and the truth if the solution does not blow up."""
    O, regression = regressed(asked)
    v = torch.tensor(asked.v)[None]
    start = time.perf_counter()
    u_hat, low, high = O.predict(v, band=0.9)
    answer: dict[str, object] = {
        "milliseconds": 1000 * (time.perf_counter() - start),
        "regression": regression,
    }
    answer |= {"u_hat": packed(u_hat[0]), "low": packed(low[0]), "high": packed(high[0])}
    truth = solver(asked.hidden)(v)
    if not torch.isfinite(truth).all() or not truth.any():
        return answer | {"truth": None}
    errors = {
        "error": float(relative_l2(u_hat, truth)),
        "squared": float(relative_mse(u_hat, truth)),
    }
    return (
        answer
        | errors
        | {
            "truth": packed(truth[0]),
            "inside": float(((low <= truth) & (truth <= high)).double().mean()),
        }
    )


def influences(asked: Asked) -> dict[str, object]:
    """What each example added to the answer's energy |u|^2 / 2, and the answer without the chosen
    one."""
    O, _ = regressed(asked)
    v = torch.tensor(asked.v)[None]
    answer: dict[str, object] = {"influence": influence(O, v).tolist(), "without": None}
    if asked.chosen in asked.examples and len(asked.examples) > 1:
        answer["without"] = packed(O.drop(asked.examples.index(asked.chosen))(v)[0])
    return answer


def outliers(given: Given) -> dict[str, object]:
    """Which of the examples do not belong to the others."""
    start = time.perf_counter()
    found = outlier_scores(model("adr"), examples_of(given), n_regressions=REGRESSIONS)
    flagged = [given.examples[i] for i in torch.nonzero(found.flagged).flatten().tolist()]
    milliseconds = 1000 * (time.perf_counter() - start)
    return {
        "flagged": flagged,
        "scores": found.scores.tolist(),
        "threshold": found.threshold,
        "milliseconds": milliseconds,
    }
