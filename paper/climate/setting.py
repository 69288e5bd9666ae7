"""What the parts of the climate experiment share: which years, which contexts, which regressors.

    error(t) = latitude-weighted mean of (u_hat(t) - u(t))^2 in hPa^2,
    u_hat(t) = T(context of t)(v(t))

Days of test are asked about one by one, each with the context that it would have had: the n steps
that ended a week before (P.W.), or those around the same date a year before (P.Y.)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from transduce.families import (
    ClimateFields,
    ClimateWindows,
    Period,
    latitude_weights,
    load_climate,
    previous_week,
    previous_year,
)
from transduce.kernels import Mean
from transduce.layer import Layer
from transduce.metatraining import Training
from transduce.settings import Json
from transduce.transducer import Transducer
from transduce.types import Array, ExampleSet, Operator, Task

from ..baselines import INDUCTIVE
from ..baselines.inductive import CHOSEN, Inductive
from ..lab import Lab, Row
from ..measuring import Numbered, one_by_one
from ..names import describe, weights_of
from ..recipes import KNOWN
from ..trainings import trained

BEST, PAPER = "climate-europe", "patches"
TEST = Period("europe", "2007", "2010")
CONTEXTS: dict[str, Callable[..., np.ndarray]] = {
    "week before": previous_week,
    "year before": previous_year,
}
PASCALS = 100  # of a hectopascal
CHUNK = 100  # days that are measured between two lines of the ledger
TEMPERATURE, PRESSURE = {"mean": 280.0, "unit": 8.0}, {"mean": 101_500.0, "unit": 800.0}
PATCHES_SET: dict[str, Json] = {  # the supplement's model, made as small as the region
    "patch": 3,
    "token": 64,
    "depth": 3,
    "heads": 4,
    "width": 16,
    "hidden": 128,
    "neighbours": 1,
}
PATCHES: Row = {
    "model": "softmax-patches",
    **{
        name: {
            "space": "Patches",
            "patch": PATCHES_SET["patch"],
            "width": PATCHES_SET["token"],
            **scale,
        }
        for name, scale in (("V", TEMPERATURE), ("U", PRESSURE))
    },
    **{name: PATCHES_SET[name] for name in ("depth", "heads", "width", "hidden")},
    "reach": PATCHES_SET["neighbours"],
}
WINDOWS = ClimateWindows(KNOWN)  # 20 days: 15 examples and 5 queries, as in the paper
PATCHES_TRAINING = Training(
    steps=4_000,
    lr=1e-3,
    muon_lr=0.0,
    tasks=4,
    n=(15, 15),
    queries=5,
    warmup=100,
    loss="squared",
    standardise=False,
    validate_every=4_000,
)


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    Attributes:
        n: examples.
        every: days from one query to the next in the test years.
        curve_every: the same for curves.
        sizes: numbers of examples of a curve.
        lags: of a curve, in days.
        steps: training steps of the paper's model; 0 for its own number.
        repeats: of timings.
        region_steps: of trainings in other regions.
        network_steps: of the networks of other regions.
        maps: months that are drawn.
    """

    quick: bool = False
    seed: int = 0
    n: int = 15
    every: int = 1
    curve_every: int = 5
    sizes: tuple[int, ...] = (1, 2, 3, 5, 7, 10, 15, 20, 30)
    lags: tuple[int, ...] = (1, 2, 3, 7)
    steps: int = 0
    repeats: int = 20
    region_steps: int = 150
    network_steps: int = 1500
    maps: tuple[str, ...] = ("2009-01", "2009-07")


FULL = Scale()
QUICK = Scale(
    quick=True,
    every=97,
    curve_every=400,
    sizes=(1, 15),
    lags=(1, 7),
    steps=2,
    repeats=1,
    region_steps=2,
    network_steps=2,
    maps=("2009-01",),
)


def fields() -> ClimateFields:
    """All years of Europe."""
    return load_climate("europe")


def asked(lab: Lab, every: int | None = None) -> np.ndarray:
    """Where in all years the days of test are that are asked about."""
    return np.flatnonzero(np.isin(fields().time, TEST.fields.time))[
        :: lab.scale.every if every is None else every
    ]


def days(at: Any, of: ClimateFields | None = None) -> ExampleSet:
    """Pairs of some days."""
    whole = fields() if of is None else of
    return ExampleSet(torch.from_numpy(whole.v[at]), torch.from_numpy(whole.u[at]))


def square_errors(u_hat: np.ndarray, u: np.ndarray, lat: np.ndarray) -> np.ndarray:
    """The latitude-weighted mean square of each day, in hPa^2."""
    return (latitude_weights(lat)[:, None] * ((u_hat - u) / PASCALS) ** 2).mean((1, 2))


@dataclass(frozen=True)
class SquareError:
    """The metric of fields at these latitudes: the latitude-weighted mean square, in hPa^2."""

    lat: np.ndarray

    def __call__(self, u_hat: Array, u: Array) -> dict[str, list[float]]:
        found = square_errors(np.asarray(u_hat), np.asarray(u), self.lat)
        return {"square_error": found.tolist()}


@dataclass(frozen=True, repr=False, eq=False)
class Context(ExampleSet):
    """Examples for one day, and which day that is."""

    day: int = -1


@dataclass(frozen=True)
class Blind:
    """An inductive baseline as a Regressor. Of its examples it reads only their day."""

    baseline: Inductive
    fields: ClimateFields

    def regress(self, examples: Context) -> Operator:
        asked = self.fields[[examples.day]]
        return lambda v: torch.from_numpy(self.baseline.answers(asked))


def day_errors(
    lab: Lab,
    R: Callable[[], Any],
    context: Callable[[int], ExampleSet],
    at: np.ndarray,
    of: ClimateFields | None = None,
    /,
    **key: Any,
) -> list[float]:
    """The error of each day.

    Args:
        lab: keeps what is measured.
        R: makes the regressor.
        context: the examples for a day.
        at: the days, as places in `of`.
        of: the fields; None for those of Europe.
        key: what identifies the measurement.
    """
    whole = fields() if of is None else of

    def task(n: int, m: int, day: int) -> Task:
        pairs = context(day)
        return Task(Context(pairs.v, pairs.u, day=day), days(slice(day, day + 1), whole))

    metric, n = SquareError(whole.lat), len(context(int(at[0])))
    return one_by_one(
        lab, R, Numbered(task, at.tolist()), metric, n=n, digits=4, chunk=CHUNK, **key
    )


def blind_errors(
    lab: Lab,
    R: Callable[[], Inductive],
    at: np.ndarray,
    of: ClimateFields | None = None,
    /,
    **key: Any,
) -> list[float]:
    """The error of each day, of a baseline that sees no context."""
    whole = fields() if of is None else of
    return day_errors(
        lab, lambda: Blind(R(), whole), lambda day: days([day - 1], whole), at, whole, **key
    )


def day_by_day(lab: Lab, name: str, T: Any, of: Json, context: str) -> list[float]:
    """The errors of the days of test, in one of the `CONTEXTS`; measured once, whichever part
    asks."""
    whole, before = fields(), CONTEXTS[context]
    return day_errors(
        lab.of("accuracy"),
        lambda: T,
        lambda day: days(before(whole, whole.time[day], lab.scale.n)),
        asked(lab),
        regressor=name,
        identity=of,
        context=context,
    )


def day_by_day_without(lab: Lab, name: str) -> list[float]:
    """The same of a baseline that sees no context."""
    return blind_errors(
        lab.of("accuracy"),
        lambda: fitted_baseline(name, lab.scale.steps),
        asked(lab),
        regressor=name,
        identity=[identity(name), lab.scale.steps],
    )


def summary(
    found: Sequence[float] | np.ndarray, at: np.ndarray, of: ClimateFields | None = None
) -> Row:
    """The mean over days with its 95 % interval, taking months for independent of one another."""
    whole, errors = fields() if of is None else of, np.asarray(found)
    month = whole.time[at].astype("datetime64[M]")
    by_month = np.array([errors[month == m].mean() for m in np.unique(month)])
    mean, half = (
        float(errors.mean()),
        float(1.96 * by_month.std(ddof=1) / len(by_month) ** 0.5)
        if len(by_month) > 1
        else float("nan"),
    )
    return {"days": len(errors), "mean": mean, "low": mean - half, "high": mean + half}


def with_interval(row: Row) -> str:
    """As tables show it: 23.1 ± 0.9."""
    return f"{row['mean']:.1f} ± {(row['high'] - row['low']) / 2:.1f}"


def patches_training(steps: int) -> Training:
    return (
        replace(PATCHES_TRAINING, steps=steps, validate_every=steps) if steps else PATCHES_TRAINING
    )


def patches(lab: Lab) -> Transducer:
    """The paper's model of a kernel at every patch, trained as the paper trains it, on the years
    before those of test."""
    T = trained(lab, PATCHES, patches_training(lab.scale.steps), WINDOWS, None).T
    assert isinstance(T, Transducer)
    return T


def models(lab: Lab) -> dict[str, tuple[Transducer, Json]]:
    """Those that see the context, each with what its measurements hold for."""
    return {
        BEST: (Transducer.from_pretrained(BEST), identity(BEST)),
        PAPER: (patches(lab), [identity(PAPER), lab.scale.steps]),
    }


@cache
def fitted_baseline(name: str, steps: int = 0, period: Period = KNOWN) -> Inductive:
    """An inductive fitted_baseline, tuned, fitted to the years before those of test."""
    own = CHOSEN[name] | ({"steps": steps} if steps and "steps" in CHOSEN[name] else {})
    return INDUCTIVE[name](**own).fit(period.fields)


def identity(name: str) -> Json:
    """What a measurement of this regressor holds for: the weights of a bundled model, the settings
    of another."""
    if name == BEST:
        return weights_of(BEST)
    if name == PAPER:
        return {
            "model": PAPER,
            **PATCHES_SET,
            "v": describe(TEMPERATURE),
            "u": describe(PRESSURE),
            "training": describe(PATCHES_TRAINING),
            "windows": describe(WINDOWS),
        }
    return describe(INDUCTIVE[name](**CHOSEN[name]))


def identities() -> dict[str, Json]:
    """Of all regressors that Europe is measured with."""
    return {name: identity(name) for name in (BEST, PAPER, *CHOSEN)}


def kernel_alone() -> Transducer:
    """The bundled model's kernel before it remembers anything."""
    T = Transducer.from_pretrained(BEST)
    memory = T.steps[0].kappa
    assert isinstance(memory, Mean)
    alone = Transducer(T.V, T.U, [Layer(memory.kernel)])
    with torch.no_grad():
        alone.spread.copy_(T.spread)
    alone.measured = True
    return alone.eval()
