"""The recipes by name."""

from __future__ import annotations

from .. import repository
from ..families import (
    Burgers2d,
    ComposedImages,
    Mixture,
    PermutedImages,
    SyntheticImages,
)
from ..metatraining import Training
from ..types import TransduceError
from .base import Recipe
from .fields import GENERAL_FIELDS
from .general import GENERAL

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
        GENERAL,
        GENERAL_FIELDS,
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
