"""What the parts of the climate experiment share: which years, which contexts, which regressors.

    error(t) = latitude-weighted mean of (u_hat(t) - u(t))^2 in hPa^2,
    u_hat(t) = T(context of t)(v(t))

Days of test are asked about one by one, each with the context that it would have had: the n steps
that ended a week before (P.W.), or those around the same date a year before (P.Y.)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from ...baselines import INDUCTIVE
from ...baselines.inductive import CHOSEN, Rival
from ...families import (
    ClimateFields,
    ClimateWindows,
    Period,
    latitude_weights,
    load_climate,
    previous_week,
    previous_year,
)
from ...metatraining import Training
from ...recipes import KNOWN, recipe
from ...settings import Json
from ...transducer import Transducer
from ...types import ExampleSet
from ..lab import Lab, Row
from ..names import describe, weights_of
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
    **{
        name: {
            "space": "Patches",
            "patch": PATCHES_SET["patch"],
            "width": PATCHES_SET["token"],
            **scale,
        }
        for name, scale in (("V", TEMPERATURE), ("U", PRESSURE))
    },
    "kappa": "exp_dot",
    **{name: PATCHES_SET[name] for name in ("depth", "heads", "width", "hidden", "neighbours")},
}
WINDOWS = ClimateWindows(KNOWN)  # 20 days, of which 5 are to be told from 15, as in the paper
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
    """How much is measured. n: examples. every: how many days apart the days of test are that are
    asked about, curve_every of the curves. sizes, lags: of the curves. steps: of the paper's model,
    if not its own number. repeats: of what is timed. region_steps: of trainings in other regions,
    network_steps of their networks. maps: months that are drawn."""

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


@torch.no_grad()
def in_context(
    T: Any, context: Callable[[int], ExampleSet], at: np.ndarray, of: ClimateFields | None = None
) -> list[float]:
    """The error of each day, told from its own context."""
    whole = fields() if of is None else of
    found = []
    for day in at.tolist():
        u_hat = T.regress(context(day))(torch.from_numpy(whole.v[day : day + 1])).numpy()
        found.append(round(float(square_errors(u_hat, whole.u[day : day + 1], whole.lat)[0]), 4))
    return found


def without_context(R: Rival, at: np.ndarray, of: ClimateFields | None = None) -> list[float]:
    """The error of each day, told by a rival that sees no context."""
    whole = fields() if of is None else of
    return [round(float(e), 4) for e in square_errors(R.answers(whole[at]), whole.u[at], whole.lat)]


def chunked(
    lab: Lab, at: np.ndarray, measure: Callable[[np.ndarray], list[float]], **key: Any
) -> list[float]:
    """What is measured at each day, kept every so many of them."""
    found: list[float] = []
    for first in range(0, len(at), CHUNK):
        some = at[first : first + CHUNK]
        days = [int(some[0]), int(some[-1]), len(some)]
        found += lab.once(partial(measure, some), days=days, **key)
    return found


def day_by_day(lab: Lab, name: str, T: Any, of: Json, context: str) -> list[float]:
    """The errors of the days of test, in one of the `CONTEXTS`; measured once, whichever part
    asks."""
    whole, before = fields(), CONTEXTS[context]

    def told(some: np.ndarray) -> list[float]:
        return in_context(T, lambda day: days(before(whole, whole.time[day], lab.scale.n)), some)

    return chunked(
        lab.of("accuracy"),
        asked(lab),
        told,
        regressor=name,
        identity=of,
        context=context,
        n=lab.scale.n,
    )


def day_by_day_without(lab: Lab, name: str) -> list[float]:
    """The same of a rival that sees no context."""
    key = {"regressor": name, "identity": [identity(name), lab.scale.steps]}
    return chunked(
        lab.of("accuracy"),
        asked(lab),
        lambda some: without_context(rival(name, lab.scale.steps), some),
        **key,
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
def rival(name: str, steps: int = 0, period: Period = KNOWN) -> Rival:
    """An inductive rival, tuned, fitted to the years before those of test."""
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
    T: Any = Transducer.from_pretrained(BEST)
    alone: Any = Transducer.from_config(recipe(BEST).model)
    for mine, its in (
        (alone.V, T.V),
        (alone.U, T.U),
        (alone.layers[0].kappa, T.prior.kappa.kernel),
    ):
        mine.load_state_dict(its.state_dict())
    with torch.no_grad():
        alone.spread.copy_(T.spread)
    return alone.eval()
