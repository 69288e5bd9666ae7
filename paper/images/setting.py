"""What the parts of the image experiment share: how much is measured, by which regressors, on which
images.

A task is of n examples and some queries of the test half of a set, unchanged: no pixel and no
class changes places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from transduce.baselines import CLASSIFIERS
from transduce.families import PermutedImages, load_images
from transduce.metatraining import Training
from transduce.metrics import hits
from transduce.random_fields import generator_for
from transduce.settings import Json
from transduce.transducer import Transducer
from transduce.types import Array, Regressor, Task

from .. import losses as losses  # registers loss="cross_entropy"
from ..lab import Lab, Row
from ..measuring import Numbered, one_by_one
from ..names import describe, weights_of
from ..recipes import IMAGES, recipe
from ..trainings import trained

SETS = {"mnist": "MNIST", "fashionmnist": "Fashion-MNIST", "kmnist": "KMNIST"}
BEST = "images"
MODELS = (BEST, "images-softmax")
CLASSICAL = tuple(CLASSIFIERS)
META: dict[str, Row] = {  # steps: as many as took about as long as the training of `images`
    "maml": {
        "model": {"learner": "maml", "options": {"rate": 0.1}},
        "training": {"steps": 500, "lr": 3e-3},
    },
    "gpicl": {
        "model": {"learner": "gpicl", "options": {}},
        "training": {"steps": 2_500, "lr": 1e-3, "muon_lr": 0.01},
    },
}


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    Attributes:
        n: examples, where one number is measured.
        tasks: of each set in the table.
        rival_tasks: the same for baselines; the name is part of committed results.
        queries: of each task.
        sizes: numbers of examples of the curve.
        many_until: up to this n the curve has `curve_tasks` of each set, above it `few_tasks`.
        calibrated: tasks whose probabilities are measured.
        repeats: of timings.
        steps: of the ablations' trainings.
        ablated: tasks that measure the ablations.
        meta_steps: of meta-trained baselines; 0 for their own number.
    """

    quick: bool = False
    seed: int = 0
    n: int = 100
    tasks: int = 1000
    rival_tasks: int = 500
    queries: int = 100
    sizes: tuple[int, ...] = (10, 20, 50, 100, 200, 500, 1000)
    many_until: int = 200
    curve_tasks: int = 50
    few_tasks: int = 5
    calibrated: int = 200
    repeats: int = 5
    steps: int = 300
    ablated: int = 100
    meta_steps: int = 0


FULL = Scale()
QUICK = Scale(
    quick=True,
    n=20,
    tasks=2,
    rival_tasks=2,
    queries=20,
    sizes=(10, 30),
    many_until=10,
    curve_tasks=2,
    few_tasks=1,
    calibrated=2,
    repeats=1,
    steps=2,
    ablated=2,
    meta_steps=2,
)


@cache
def images_of(name: str) -> PermutedImages:
    """Tasks of the test half of a set, as it is."""
    return PermutedImages(load_images(name, "test"), ())


def task_of(name: str, n: int, m: int, seed: int, number: int) -> Task:
    return images_of(name).sample_task(n, m, generator_for("test", seed, number))


def meta_trained(lab: Lab, name: str) -> Regressor:
    """A baseline, meta-trained on the tasks that `images` learned from."""
    R: Any = trained(
        lab, META[name]["model"], training_of(name, lab.scale.meta_steps), IMAGES, IMAGES
    ).T
    return R


def training_of(name: str, steps: int = 0) -> Training:
    """How a baseline is meta-trained: as `images` is, but with its own loss, steps and rate."""
    own = META[name]["training"] | ({"steps": steps} if steps else {})
    return replace(recipe(BEST).training, loss="cross_entropy", left_out=False, **own)


def regressor(lab: Lab, name: str) -> Regressor:
    """A bundled model or a baseline, by name."""
    if name in MODELS:
        return Transducer.from_pretrained(name)
    return meta_trained(lab, name) if name in META else CLASSIFIERS[name]()


def identity(name: str) -> Json:
    """What a measurement of this regressor holds for: the weights of a bundled model, the settings
    of a baseline."""
    if name in MODELS:
        return weights_of(name)
    if name in META:
        return {
            "model": name,
            **META[name]["model"]["options"],
            "training": describe(training_of(name)),
            "family": describe(IMAGES),
        }
    return describe(CLASSIFIERS[name]())


def identities() -> dict[str, Json]:
    """Of all regressors that the experiment measures."""
    return {name: identity(name) for name in (*MODELS, *CLASSICAL, *META)}


def accuracies(
    lab: Lab, name: str, R: Any, of: Json, data: str, n: int, tasks: int, **key: Any
) -> list[float]:
    """The share of queries that a regressor classifies rightly, of each task. of: its identity;
    what else identifies it is `key`."""

    def task(n: int, m: int, number: int) -> Task:
        return task_of(data, n, m, lab.scale.seed, number)

    family, about = Numbered(task, range(tasks)), {"set": data, "seed": lab.scale.seed}
    return one_by_one(
        lab,
        lambda: R,
        family,
        right,
        n=n,
        m=lab.scale.queries,
        regressor=name,
        identity=of,
        **about,
        **key,
    )


def right(u_hat: Array, u: Array) -> dict[str, list[float]]:
    """The metric of classes: 1 for the right one, 0 for another."""
    return {"right": [float(hit) for hit in hits(u_hat, u)]}


def summary(found: Sequence[float]) -> Row:
    """The mean in per cent with its 95 % interval, over tasks."""
    mean, half = (
        100 * float(np.mean(found)),
        100 * 1.96 * float(np.std(found, ddof=1)) / len(found) ** 0.5,
    )
    return {"tasks": len(found), "mean": mean, "low": mean - half, "high": mean + half}


def with_interval(row: Row) -> str:
    """As tables show it: 93.1 ± 0.3."""
    return f"{row['mean']:.1f} ± {(row['high'] - row['low']) / 2:.1f}"


def by_set(rows: Sequence[Row], name: str = "regressor") -> list[Row]:
    """One line for each regressor, or whatever else has this name, with a column for each set."""
    lines: dict[str, Row] = {}
    for row in rows:
        lines.setdefault(row[name], {name: row[name]})[SETS[row["set"]]] = with_interval(row)
    return list(lines.values())
