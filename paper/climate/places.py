"""Other regions and other steps of time: a kernel learned, pairs remembered and a difference
regressed there as on Europe, from its own years alone. Settings of baselines are chosen on the last
years before those of test; they are then fitted to all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from transduce.families import ClimateHistory, ClimateWindows, Period
from transduce.metatraining import Training, make_fabric
from transduce.settings import Json, register
from transduce.transducer import Transducer

from ..baselines import INDUCTIVE
from ..baselines.inductive import CHOSEN, Inductive
from ..lab import Lab, Row
from ..names import describe
from ..recipes import Remembering
from ..trainings import trained
from .setting import (
    PAPER,
    PATCHES,
    PATCHES_SET,
    PATCHES_TRAINING,
    patches_training,
    square_errors,
)

BASELINES = [name for name in CHOSEN if name != "vit-positions-removed"]
REMEMBERING = "remembering"  # a model like climate-europe

GRIDS: Mapping[str, dict[str, tuple[float, ...]]] = {  # all combinations are tried
    "climatology": {"window": (0, 1, 2)},
    "nearest-day": {"neighbours": (1, 2, 5, 10, 20)},
    "ridge": {"alpha": (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)},
    "kernel-ridge": {
        "level": (0.2, 1.0),
        "width": (1.0, 1.8, 3.0),
        "alpha": (0.003, 0.03, 0.3),
        "linear": (0.1, 1.0),
        "slopes": (0.0, 0.5, 1.0),
    },
}
LEARNING = Training(steps=150, tasks=1, muon_lr=0.0, warmup=1, loss="relative_mse")  # of the kernel
ADAPTING = replace(LEARNING, tasks=8, lr=3e-3, standardise=False)  # of the difference


@dataclass(frozen=True)
class Place:
    """A region and its experiment.

    Attributes:
        name: of its reanalysis.
        learned: years to learn from.
        chosen: later years, on which settings are chosen.
        test: the years after those.
        n: examples, which end `lag` steps before the query.
        history: of the kernel's training.
        queries: of the kernel's training.
        block: of the kernel's training.
        patch: side of the networks' patches.
    """

    name: str
    learned: tuple[str, str]
    chosen: tuple[str, str]
    test: tuple[str, str]
    n: int
    lag: int
    history: int
    queries: int
    block: int
    patch: int
    asked: int  # queries of a window

    def period(self, years: tuple[str, str]) -> Period:
        return Period(self.name, *years)

    @property
    def kept(self) -> Period:
        """All years before those of test."""
        return Period(self.name, self.learned[0], self.chosen[1])


register("place", Place)
NORTH_PACIFIC = Place(
    "north-pacific", ("1948", "1989"), ("1990", "1999"), ("2000", "2025"), 15, 1, 300, 100, 10, 7, 5
)
WINTERS = Place(
    "winters", ("1949", "1979"), ("1980", "1989"), ("1990", "2010"), 5, 1, 22, 6, 1, 12, 3
)
# For the time that they take.
FEWER: Mapping[tuple[str, str], Row] = {("winters", "fno"): {"steps": 400, "batch": 8}}
COMPARED = {"slopes": 1.0, "level": 0.4}  # how fields are: as a whole
GLOBE = Place(
    "globe", ("1948", "1989"), ("1990", "1999"), ("2000", "2013"), 15, 1, 100, 50, 10, 12, 5
)


def remembering(lab: Lab, place: Place) -> Transducer:
    """A model like climate-europe of this place."""
    fields = place.period(place.learned).fields
    space = {"space": "Region", "lat": fields.lat.tolist(), "lon": fields.lon.tolist()}
    model = {"model": "region", "V": space | COMPARED, "U": space}
    steps = {"steps": lab.scale.region_steps, "validate_every": lab.scale.region_steps}
    how = replace(LEARNING, n=(place.history, place.history), queries=place.queries, **steps)
    kernel = trained(
        lab, model, how, ClimateHistory(place.period(place.learned), block=place.block), None
    )
    assert isinstance(kernel.T, Transducer)
    windows = ClimateWindows(
        place.period(place.chosen), place.n + place.lag + place.asked - 1, place.lag
    )
    adapting = replace(ADAPTING, n=(place.n, place.n), queries=place.asked, **steps)
    then, folder = (
        Remembering(place.period(place.learned), place.kept),
        lab.work / "trainings" / f"{kernel.identity}-windows",
    )
    return then.trained(kernel.T, windows, adapting, folder, make_fabric())[0]


def of_patches(lab: Lab, place: Place) -> Transducer:
    """The paper's model, trained on random steps of windows of this place."""
    fields, spaces = place.kept.fields, {}
    for name, f in (("V", fields.v), ("U", fields.u)):
        spaces[name] = {
            **PATCHES[name],
            "patch": place.patch,
            "mean": round(float(f.mean()), 3),
            "unit": round(float(f.std()), 3),
        }
    window = place.n + 5
    how = replace(patches_training(lab.scale.network_steps), n=(place.n, place.n))
    T = trained(lab, PATCHES | spaces, how, ClimateWindows(place.kept, window), None).T
    assert isinstance(T, Transducer)
    return T


@cache
def tuned(name: str, place: Place, steps: int) -> Inductive:
    """A baseline with the settings that did best on the years that were held out, fitted to all
    years before those of test."""
    learned, chosen = (place.period(years).fields for years in (place.learned, place.chosen))
    if name in GRIDS:

        def error(options: Row) -> float:
            return float(
                square_errors(
                    INDUCTIVE[name](**options).fit(learned).answers(chosen), chosen.u, chosen.lat
                ).mean()
            )

        tried = product(*GRIDS[name].values())
        options = min((dict(zip(GRIDS[name], values, strict=True)) for values in tried), key=error)
    else:
        own = {"patch": place.patch} if "patch" in CHOSEN[name] else {}
        options = CHOSEN[name] | own | {"steps": steps} | FEWER.get((place.name, name), {})
        options["steps"] = min(steps, options["steps"])
    return INDUCTIVE[name](**options).fit(place.kept.fields)


def identities() -> dict[str, Json]:
    """Of the regressors of these places: what is the same of each in all of them."""
    ours: dict[str, Json] = {
        REMEMBERING: {
            "learning": describe(LEARNING),
            "adapting": describe(ADAPTING),
            "compared": describe(COMPARED),
        },
        "networks": [
            {"place": place, "network": network, **options}
            for (place, network), options in FEWER.items()
        ],
        PAPER: {"model": PAPER, **PATCHES_SET, "training": describe(PATCHES_TRAINING)},
    }
    tuned: dict[str, Json] = {
        name: {"chosen of": describe(GRIDS[name])} if name in GRIDS else describe(CHOSEN[name])
        for name in BASELINES
    }
    return {f"{name}, elsewhere": what for name, what in (ours | tuned).items()}
