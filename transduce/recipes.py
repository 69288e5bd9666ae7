"""Recipes: one frozen value for each trained model, saying what it is, what it learns from, and
how. `train` makes the weights.

Those of models that only readers of the paper need are in the package `paper`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from . import models, repository
from .families import (
    AdvectionDiffusionReaction,
    Burgers2d,
    ComposedImages,
    Mixture,
    PermutedImages,
    SyntheticImages,
)
from .files import provenance
from .generation import generate
from .metatraining import Training, described, make_fabric, metatrain
from .storage import StoredFamily
from .transducer import Transducer
from .types import OperatorFamily, TransduceError


@dataclass(frozen=True)
class Run:
    """One training of a recipe.

    Attributes:
        training: the recipe's, with what this run changes.
        family: the tasks to train on.
        validation: the tasks to validate on.
        out: the folder of checkpoints and log.
        fabric: the processes that train together.
        until: stop as soon as the validation error is this small; 0 for never.
        pairs: how many pairs of each operator the user's own data holds; None without such data.
        started: whether T comes from earlier weights.
    """

    training: Training
    family: OperatorFamily
    validation: OperatorFamily
    out: Path
    fabric: Any
    until: float = 0.0
    pairs: int | None = None
    started: bool = False


@dataclass(frozen=True)
class Recipe:
    """A trained model: what it is, what it learns from, and how.

    Attributes:
        name: of the model and its weights.
        model: its builder in `transduce.models`, spaces and options, for `models.build`.
        training: the options of `metatrain`.
        operators: of the dataset that is generated once and drawn from; 0 to draw each task from
            the family.
        examples: pairs of each of these operators.
        family: the operators to learn.
        validation: the operators to validate on; None for those of `family`.
        domain: of the data, which the model's card names.
    """

    name: str
    model: dict[str, Any]
    training: Training
    operators: int = 0
    examples: int = 0
    family: Any = field(default_factory=AdvectionDiffusionReaction)
    validation: Any = None
    domain: str = "functions"

    def tasks(self, path: Path) -> OperatorFamily:
        """The family of a generated dataset. Subclasses may change what is drawn from it."""
        return StoredFamily(path)

    def learn(self, T: Transducer, run: Run) -> tuple[Transducer, float | None]:
        """Train T; the trained model and its validation error. Subclasses may do more."""
        how: dict[str, Any] = {"out": run.out, "fabric": run.fabric, "until": run.until}
        return T, metatrain(T, run.family, run.training, validation=run.validation, **how)

    def record(self, run: Run) -> dict[str, Any]:
        """What a card says of the recipe, as this run used it."""
        families = {
            name: described(family)
            for name in ("family", "validation")
            if (family := getattr(self, name)) is not None
        }
        used = replace(self, training=run.training, family=None, validation=None)
        return {**asdict(used), **families}


IMAGES_TO_CLASSES = {
    "V": {"space": "Euclidean", "size": 784},
    "U": {"space": "Euclidean", "size": 10},
}
IMAGES = Mixture(
    (PermutedImages("mnist", (1, 2, 4, 7, 14)), SyntheticImages(), ComposedImages("mnist")),
    (0.3, 0.3, 0.4),
)
ALL_MODES = {name: {"space": "SineModes", "modes": 99} for name in "VU"}  # of 101 points
VECTOR_FIELDS = {name: {"space": "FourierModes", "modes": (24, 24), "channels": 2} for name in "VU"}
RECIPES = {
    recipe.name: recipe
    for recipe in [
        Recipe(
            name="adr",
            model={
                "model": "representer",
                **ALL_MODES,
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
            name="burgers",
            model={
                "model": "spectral",
                **VECTOR_FIELDS,
                **{"channels": 32, "layers": 4, "modes": 12, "grid": 48},
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
            name="images",
            model={
                "model": "images",
                **IMAGES_TO_CLASSES,
                "convolutions": (32, 64, 96),
                "width": 256,
                "ridges": 2,
            },
            family=IMAGES,
            domain="images",
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
    ]
}


def recipe(name: str) -> Recipe:
    """The recipe of this name."""
    if name in RECIPES:
        return RECIPES[name]
    if name in repository.RECIPES:
        return repository.module("recipes", f"the recipe {name!r}").RECIPES[name]
    known = [*RECIPES, *(repository.RECIPES if repository.folder() else ())]
    raise TransduceError(f"no recipe is called {name!r}; known: {', '.join(known)}.")


def train(
    recipe: Recipe,
    out: Path,
    *,
    data: Path | None = None,
    steps: int | None = None,
    seed: int | None = None,
    on_the_fly: bool = False,
    start: str | None = None,
    rate: float = 1.0,
    until: float = 0.0,
) -> tuple[Path, float | None]:
    """Train a recipe into a folder, resuming where it stopped.

    Args:
        recipe: what to train.
        out: the folder of checkpoints, log and weights.
        data: a dataset of the user's own, (operator, example, *grid), instead of the recipe's
            family; the last twentieth of its operators is held out for validation.
        steps: of the training, instead of the recipe's.
        seed: instead of the recipe's.
        on_the_fly: draw each task from the family, not from a dataset that is generated once.
        start: weights to begin with, bundled or a file; the new card keeps theirs.
        rate: a factor of the learning rates.
        until: stop as soon as the validation error is this small.

    Returns:
        the path of the weights, and their validation error.
    """
    about = provenance()
    _make_folder(out)
    run = Run(
        training=_changed(recipe.training, steps, seed, rate),
        family=recipe.family,
        validation=recipe.family if recipe.validation is None else recipe.validation,
        out=out,
        fabric=make_fabric(),
        until=until,
        started=start is not None,
    )
    run = _with_tasks(run, recipe, data, on_the_fly)
    torch.manual_seed(run.training.seed)
    T = models.build(recipe.model) if start is None else Transducer.from_pretrained(start)
    about |= {} if start is None else {"start": T.card}
    T, error = recipe.learn(T, run)
    path = out / f"{recipe.name}.safetensors"
    if run.fabric.is_global_zero:
        card = {"recipe": recipe.record(run), "validation_error": error, "domain": recipe.domain}
        T.save_pretrained(path, **card, **about)
    return path, error


def _changed(training: Training, steps: int | None, seed: int | None, rate: float) -> Training:
    """The training with other steps, another seed and scaled learning rates."""
    scaled = replace(training, lr=rate * training.lr, muon_lr=rate * training.muon_lr)
    scaled = scaled if steps is None else replace(scaled, steps=steps)
    return scaled if seed is None else replace(scaled, seed=seed)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise TransduceError(
            f"{out} is not a folder and cannot be made one ({problem.strerror}). Give another."
        ) from None


def _with_tasks(run: Run, recipe: Recipe, data: Path | None, on_the_fly: bool) -> Run:
    """The run on the user's own operators, on those of the recipe's dataset, which is generated on
    first use, or on the family."""
    if data is not None:
        return _on_own_data(run, data)
    if not recipe.operators or on_the_fly:
        return run
    seed = run.training.seed
    path = run.out / f"tasks-{recipe.operators}x{recipe.examples}-seed{seed}.zarr"
    with run.fabric.rank_zero_first():
        if not path.exists():
            generate(recipe.family, path, recipe.operators, recipe.examples, seed=seed)
    return replace(run, family=recipe.tasks(path))


def _on_own_data(run: Run, data: Path) -> Run:
    """The run on the user's own operators."""
    family, validation = StoredFamily(data).hold_out(0.05)
    pairs = family.v.shape[1]
    training = fitted(run.training, pairs, str(data))
    return replace(run, family=family, validation=validation, pairs=pairs, training=training)


def fitted(training: Training, pairs: int, data: str = "the data") -> Training:
    """The training with no more examples to a task than a dataset has besides its queries."""
    most = pairs - max(50, training.queries)  # validation has 50 of them
    if most < 1:
        raise TransduceError(
            f"{data} holds {pairs} pairs of each operator; expected more than {pairs - most}, for "
            "queries and examples. Store more."
        )
    low, high = training.n
    return replace(training, n=(min(low, most), min(high, most)))
