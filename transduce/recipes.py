"""One frozen value for each trained model: what it is, what it learned from, and how. `train` makes
the weights anew."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from .families import (
    AdvectionDiffusionReaction,
    Burgers2d,
    ClimateWindows,
    ComposedImages,
    Mixture,
    Moved,
    Period,
    PermutedImages,
    SyntheticImages,
)
from .files import provenance
from .generation import generate
from .metatraining import Training, described, make_fabric, metatrain
from .metatraining import special as special  # registers loss="lesson"
from .storage import StoredFamily
from .transducer import Transducer
from .types import ExampleSet, OperatorFamily, TransduceError


@dataclass(frozen=True)
class Remembering:
    """What weights remember. While the pairs of `known` are, a training on windows of other years
    tells how far the operators of windows differ from what they have in common; in the end all
    pairs of `kept` are."""

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
            T.remember(ExampleSet(period.fields.v, period.fields.u))
            for period in (self.known, self.kept)
        )
        error = metatrain(
            learner, windows, training, validation=validation, out=out, fabric=fabric, until=until
        )
        whole.layers.load_state_dict(learner.layers.state_dict())
        return whole, error


@dataclass(frozen=True)
class Recipe:
    """model: the config of the Transducer. family: what it learns; validation: what it is validated
    on, if not on that. operators, examples: the size of the meta-dataset that is generated once and
    drawn from; without operators, every task is drawn anew. moved: whether its pairs are moved by
    the symmetries of vector fields. lesson: what comes before the training, if anything, in a
    folder of its own; remembering: what the model knows before it, and after. training: the
    rest."""

    name: str
    model: dict[str, Any]
    training: Training
    operators: int = 0
    examples: int = 0
    family: Any = field(default_factory=AdvectionDiffusionReaction)
    moved: bool = False
    lesson: Training | None = None
    validation: Any = None
    remembering: Remembering | None = None

    def record(self) -> dict[str, Any]:
        """What a card says of the recipe."""
        families = {
            name: described(family)
            for name in ("family", "validation")
            if (family := getattr(self, name)) is not None
        }
        return {**asdict(replace(self, family=None, validation=None)), **families}


IMAGES_TO_CLASSES = {
    "V": {"space": "Euclidean", "size": 784},
    "U": {"space": "Euclidean", "size": 10},
}
IMAGES = Mixture(
    (PermutedImages("mnist", (1, 2, 4, 7, 14)), SyntheticImages(), ComposedImages("mnist")),
    (0.3, 0.3, 0.4),
)
EUROPE = {
    "space": "Region",
    "lat": [55 - 2.5 * i for i in range(11)],
    "lon": [-15 + 2.5 * i for i in range(13)],
}
LEARNED_FROM, CHOSEN_ON, KNOWN = (
    Period("europe", *years) for years in (("2000", "2004"), ("2005", "2006"), ("2000", "2006"))
)
ALL_MODES = {name: {"space": "SineModes", "modes": 99} for name in "VU"}  # of 101 points
RECIPES = {
    recipe.name: recipe
    for recipe in [
        Recipe(
            name="adr",
            model={
                **ALL_MODES,
                "kappa": "representer",
                "depth": 1,
                "heads": 4,
                "width": 96,
                "hidden": 256,
                "feature_layers": 5,
                "ridges": 2,
            },
            training=Training(
                steps=7_000,
                muon_lr=0.01,
                tasks=8,
                n=(2, 200),
                loss="log_l2",
                noise=0.15,
                validate_every=250,
                checkpoint_every=250,
            ),
            operators=5_000,
            examples=250,
        ),
        Recipe(
            name="adr-softmax",
            model={
                **ALL_MODES,
                "kappa": "exp_dot",
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
        Recipe(
            name="burgers",
            model={
                **{
                    name: {"space": "FourierModes", "modes": (24, 24), "channels": 2}
                    for name in "VU"
                },
                "depth": 0,
                "kappa": "representer",
                "prior": {"channels": 32, "layers": 4, "modes": 12, "grid": 48},
            },
            family=Burgers2d(amplitude=(0.05, 0.35), start=(0.0, 5.0), increment=(0.5, 10.5)),
            training=Training(
                steps=1_900,
                lr=5e-3,
                muon_lr=0.02,
                tasks=4,
                n=(2, 24),
                queries=8,
                loss="log_l2",
                left_out=True,
                seed=1,
                validate_every=250,
                validation_tasks=16,
            ),
            operators=1_000,
            examples=64,
        ),
        Recipe(
            name="burgers-softmax",
            model={
                **{
                    name: {"space": "FourierModes", "modes": (6, 6), "channels": 2, "unit": 0.01}
                    for name in "VU"
                },
                "kappa": "exp_dot",
                "depth": 5,
                "heads": 400,
                "width": 2,
                "hidden": 1024,
                "gain": 0.003,
                "init": "descent",
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
            name="images",
            model={
                **IMAGES_TO_CLASSES,
                "kappa": "convolutional",
                "depth": 1,
                "convolutions": (32, 64, 96),
                "width": 256,
                "ridges": 2,
            },
            family=IMAGES,
            training=Training(
                steps=2_500,
                muon_lr=0.0,
                tasks=4,
                n=(10, 200),
                queries=50,
                warmup=50,
                loss="relative_mse",
                left_out=True,
                standardise=False,
                validate_every=250,
            ),
        ),
        Recipe(
            name="images-softmax",
            model={
                **IMAGES_TO_CLASSES,
                "V": {"space": "Euclidean", "size": 784, "power": 0.5},
                "kappa": "rbf",
                "depth": 2,
                "heads": 32,
                "width": 32,
                "hidden": 256,
                "G": False,
                "tau": 0.3,
                "init": "mirrored",
            },
            family=IMAGES,
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
        Recipe(
            name="climate-europe",
            model={
                "V": EUROPE | {"slopes": 1.0, "level": 0.4, "reach": 10.0, "block": 4},
                "U": EUROPE,
                "kappa": "metric",
                "signal": 16.0,
                "depth": 1,
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


def recipe(name: str) -> Recipe:
    """The recipe of this name."""
    if name not in RECIPES:
        raise TransduceError(f"no recipe is called {name!r}; known: {', '.join(RECIPES)}.")
    return RECIPES[name]


def train(
    recipe: Recipe,
    out: Path,
    data: Path | None = None,
    steps: int | None = None,
    seed: int | None = None,
    on_the_fly: bool = False,
    start: str | None = None,
    rate: float = 1.0,
    until: float = 0.0,
) -> tuple[Path, float | None]:
    """Train a recipe into the folder `out`, going on where it stopped; returns the path of the
    weights and their validation error.

    data: a meta-dataset of the user's own, (operator, example, *grid), instead of the recipe's
    family; its last twentieth of operators is held out for validation. on_the_fly: draw every task
    anew from the family, rather than from a dataset drawn once. start: weights to go on from,
    bundled or a file, whose card is then kept in the new one, and without a lesson. steps, rate: of
    the training, not of its lesson; rate is a factor of the learning rates. With `data` or `start`
    nothing more is remembered. until: stop as soon as the validation error is this small."""
    changes: dict[str, Any] = {
        key: value for key, value in {"steps": steps, "seed": seed}.items() if value is not None
    }
    training = replace(
        recipe.training,
        lr=rate * recipe.training.lr,
        muon_lr=rate * recipe.training.muon_lr,
        **changes,
    )
    lesson = (
        None
        if start is not None or recipe.lesson is None
        else replace(recipe.lesson, seed=training.seed)
    )
    fabric, about = make_fabric(), provenance()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise TransduceError(
            f"{out} is not a folder and cannot be made one ({problem.strerror}). Give another."
        ) from None
    family: OperatorFamily = recipe.family
    validation = family if recipe.validation is None else recipe.validation
    if data is not None:
        family, validation = StoredFamily(data).hold_out(0.05)
        training = fitted(training, family.v.shape[1], data)
        lesson = lesson and fitted(lesson, family.v.shape[1], data)
    elif recipe.operators and not on_the_fly:
        path = out / f"tasks-{recipe.operators}x{recipe.examples}-seed{training.seed}.zarr"
        with fabric.rank_zero_first():
            if not path.exists():
                generate(recipe.family, path, recipe.operators, recipe.examples, seed=training.seed)
        family = Moved(StoredFamily(path)) if recipe.moved else StoredFamily(path)
    torch.manual_seed(training.seed)
    T = Transducer.from_config(recipe.model) if start is None else Transducer.from_pretrained(start)
    if start is not None:
        about["start"] = T.card
    if lesson is not None:
        metatrain(T, family, lesson, out=out / "lesson", fabric=fabric)
    if recipe.remembering is not None and data is None and start is None:
        T, error = recipe.remembering.trained(T, family, training, out, fabric, validation, until)
    else:
        error = metatrain(
            T, family, training, validation=validation, out=out, fabric=fabric, until=until
        )
    path = out / f"{recipe.name}.safetensors"
    if fabric.is_global_zero:
        T.save_pretrained(
            path,
            recipe=replace(recipe, training=training, lesson=lesson).record(),
            validation_error=error,
            **about,
        )
    return path, error


def fitted(training: Training, pairs: int, data: Path) -> Training:
    """The training with no more examples to a task than a dataset has, beside the queries (50 of
    them in validation)."""
    most = pairs - max(50, training.queries)
    if most < 1:
        raise TransduceError(
            f"{data} holds {pairs} pairs of each operator; expected more than {pairs - most}, for "
            "queries and examples. Store more."
        )
    low, high = training.n
    return replace(training, n=(min(low, most), min(high, most)))
