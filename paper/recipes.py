"""The recipes that the experiments use, and what only they need: the softmax models, and
climate-europe, which remembers training pairs.

`transduce train NAME` knows them in the source repository."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from transduce import recipes
from transduce.families import Burgers2d, ClimateWindows, Moved, Period
from transduce.metatraining import Training, metatrain
from transduce.recipes import ALL_MODES, IMAGES, IMAGES_TO_CLASSES, Recipe, Run, fitted
from transduce.storage import StoredFamily
from transduce.transducer import Transducer
from transduce.types import ExampleSet, OperatorFamily

from . import losses as losses  # registers loss="lesson"
from . import models as models  # registers builders
from .models import remember


@dataclass(frozen=True)
class LessonFirst(Recipe):
    """A recipe with a training that comes first, in a folder of its own.

    Attributes:
        lesson: this training; None for none. A model that starts from earlier weights skips it.
        moved: whether the symmetries of vector fields move the generated pairs.
    """

    lesson: Training | None = None
    moved: bool = False

    def tasks(self, path: Path) -> OperatorFamily:
        return Moved(StoredFamily(path)) if self.moved else StoredFamily(path)

    def learn(self, T: Transducer, run: Run) -> tuple[Transducer, float | None]:
        lesson = self._lesson(run)
        if lesson is not None:
            metatrain(T, run.family, lesson, out=run.out / "lesson", fabric=run.fabric)
        return super().learn(T, run)

    def record(self, run: Run) -> dict[str, Any]:
        lesson = self._lesson(run)
        return super().record(run) | {"lesson": None if lesson is None else asdict(lesson)}

    def _lesson(self, run: Run) -> Training | None:
        """The lesson of a run, as its data allows."""
        if self.lesson is None or run.started:
            return None
        lesson = replace(self.lesson, seed=run.training.seed)
        return lesson if run.pairs is None else fitted(lesson, run.pairs)


@dataclass(frozen=True)
class Remembering:
    """Which pairs weights remember.

    Attributes:
        known: the pairs remembered while a training on windows of other years measures how far the
            operators of windows differ from what they have in common.
        kept: the pairs remembered in the end.
    """

    known: Period
    kept: Period

    def trained(
        self,
        T: Transducer,
        windows: OperatorFamily,
        training: Training,
        out: Path,
        fabric: Any,
        validation: OperatorFamily | None = None,
        until: float = 0.0,
    ) -> tuple[Transducer, float | None]:
        """T with its memory, and the validation error while only `known` was remembered. T's spaces
        are measured, if they were not."""
        learner, whole = (
            remember(T, ExampleSet(period.fields.v, period.fields.u))
            for period in (self.known, self.kept)
        )
        error = metatrain(
            learner, windows, training, validation=validation, out=out, fabric=fabric, until=until
        )
        whole.steps[-1].load_state_dict(learner.steps[-1].state_dict())
        return whole, error


@dataclass(frozen=True)
class Remembers(Recipe):
    """A recipe whose model remembers training pairs. On the user's own data, or from earlier
    weights, nothing more is remembered."""

    remembering: Remembering | None = None

    def learn(self, T: Transducer, run: Run) -> tuple[Transducer, float | None]:
        if self.remembering is None or run.started or run.pairs is not None:
            return super().learn(T, run)
        return self.remembering.trained(
            T, run.family, run.training, run.out, run.fabric, run.validation, run.until
        )


EUROPE = {
    "space": "Region",
    "lat": [55 - 2.5 * i for i in range(11)],
    "lon": [-15 + 2.5 * i for i in range(13)],
}
LEARNED_FROM, CHOSEN_ON, KNOWN = (
    Period("europe", *years) for years in (("2000", "2004"), ("2005", "2006"), ("2000", "2006"))
)
RECIPES: dict[str, Any] = {
    recipe.name: recipe
    for recipe in [
        Recipe(
            name="adr-softmax",
            model={
                "model": "softmax",
                **ALL_MODES,
                "depth": 8,
                "heads": 4,
                "width": 64,
                "hidden": 256,
                "gain": 0.1,
            },
            training=Training(
                steps=10_000,
                muon_lr=0.005,
                tasks=16,
                n=(4, 128),
                loss="log_l2",
                validate_every=250,
                checkpoint_every=250,
            ),
            operators=6_000,
            examples=144,
        ),
        LessonFirst(
            name="burgers-softmax",
            model={
                "model": "softmax-descent",
                **{
                    name: {"space": "FourierModes", "modes": (6, 6), "channels": 2, "unit": 0.01}
                    for name in "VU"
                },
                "depth": 5,
                "heads": 400,
                "width": 2,
                "hidden": 1024,
                "gain": 0.003,
                "memory": 224,
            },
            family=Burgers2d(amplitude=0.1, increment=(0.5, 10.5)),
            training=Training(
                steps=1_500,
                lr=3e-4,
                muon_lr=0.0,
                kernel_rate=0.05,
                tasks=4,
                n=(20, 100),
                queries=48,
                loss="log_l2",
                validate_every=250,
                validation_tasks=8,
            ),
            operators=400,
            examples=160,
            moved=True,
            lesson=Training(
                steps=1_500,
                lr=5e-3,
                muon_lr=0.0,
                tasks=4,
                n=(20, 100),
                queries=48,
                warmup=50,
                loss="lesson",
            ),
        ),
        Recipe(
            name="images-softmax",
            model={
                "model": "softmax-mirrored",
                **IMAGES_TO_CLASSES,
                "V": {"space": "Euclidean", "size": 784, "power": 0.5},
                "depth": 2,
                "heads": 32,
                "width": 32,
                "hidden": 256,
                "tau": 0.3,
            },
            family=IMAGES,
            domain="images",
            training=Training(
                steps=6_000,
                lr=3e-4,
                muon_lr=0.0,
                kernel_rate=0.5,
                tasks=4,
                n=(100, 100),
                queries=50,
                warmup=50,
                loss="relative_mse",
                standardise=False,
                validate_every=250,
            ),
        ),
        Remembers(
            name="climate-europe",
            domain="climate",
            model={
                "model": "region",
                "V": EUROPE | {"slopes": 1.0, "level": 0.4, "reach": 10.0, "block": 4},
                "U": EUROPE,
                "signal": 16.0,
            },
            family=ClimateWindows(CHOSEN_ON, window=26, lag=7),
            training=Training(
                steps=150,
                lr=3e-3,
                muon_lr=0.0,
                tasks=8,
                n=(15, 15),
                queries=5,
                warmup=1,
                loss="relative_mse",
                standardise=False,
                validate_every=150,
            ),
            remembering=Remembering(known=LEARNED_FROM, kept=KNOWN),
        ),
    ]
}


def recipe(name: str) -> Any:
    """The recipe of this name, of the paper or of the library."""
    return RECIPES.get(name) or recipes.recipe(name)
