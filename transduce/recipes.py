"""One frozen value for each trained model: what it is, what it learned from, and how. `train` makes the weights anew."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from .families import AdvectionDiffusionReaction
from .generation import generate
from .metatraining import Training, make_fabric, metatrain
from .storage import StoredFamily
from .transducer import Transducer
from .types import OperatorFamily, TransduceError
from .weights import ALIASES


@dataclass(frozen=True)
class Recipe:
    """model: the config of the Transducer. family: the parameters of the ADR family. operators, examples: the size of the meta-dataset
    that is generated once and drawn from. training: the rest."""

    name: str
    model: dict[str, Any]
    training: Training
    operators: int
    examples: int
    family: dict[str, Any] = field(default_factory=dict)


RECIPES = {
    recipe.name: recipe
    for recipe in [
        Recipe(
            name="adr-softmax",
            model={
                "V": {"space": "SineModes", "modes": 99},
                "U": {"space": "SineModes", "modes": 99},
                "kappa": "exp_dot",
                "depth": 8,
                "heads": 4,
                "width": 64,
                "hidden": 256,
                "gain": 0.1,
            },
            training=Training(steps=10_000, muon_lr=0.005, tasks=16, n=(10, 128), validate_every=250, checkpoint_every=250),
            operators=6_000,
            examples=144,
        ),
    ]
}


def recipe(name: str) -> Recipe:
    """The recipe of this name."""
    name = ALIASES.get(name, name)
    if name not in RECIPES:
        raise TransduceError(f"no recipe is called {name!r}; known: {', '.join([*RECIPES, *ALIASES])}.")
    return RECIPES[name]


def train(recipe: Recipe, out: Path, data: Path | None = None, steps: int | None = None, seed: int | None = None) -> Path:
    """Train a recipe into the folder `out`, going on where it stopped; returns the path of the weights.

    data: a meta-dataset of the user's own, (operator, example, *grid), instead of the recipe's family; its last twentieth of
    operators is held out for validation.
    """
    changes: dict[str, Any] = {key: value for key, value in {"steps": steps, "seed": seed}.items() if value is not None}
    recipe = replace(recipe, training=replace(recipe.training, **changes))
    fabric = make_fabric()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise TransduceError(f"{out} is not a folder and cannot be made one ({problem.strerror}). Give another.") from None
    torch.manual_seed(recipe.training.seed)
    T = Transducer.from_config(recipe.model)
    stored: OperatorFamily
    validation: OperatorFamily
    if data is None:
        family = AdvectionDiffusionReaction(**recipe.family)
        data = out / "tasks.zarr"
        with fabric.rank_zero_first():
            if not data.exists():
                generate(family, data, recipe.operators, recipe.examples, seed=recipe.training.seed)
        stored, validation = StoredFamily(data), family
    else:
        stored, validation = StoredFamily(data).hold_out(0.05)
    error = metatrain(T, stored, recipe.training, validation=validation, out=out, fabric=fabric)
    path = out / f"{recipe.name}.safetensors"
    if fabric.is_global_zero:
        T.save_pretrained(path, recipe=asdict(recipe), validation_error=error, **provenance())
    return path


def provenance() -> dict[str, Any]:
    """Versions, commit and machine: what a result says of where it comes from."""
    git = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent, check=False)
    return {
        "versions": {name: version(name) for name in ("transduce", "torch", "numpy")} | {"python": platform.python_version()},
        "commit": git.stdout.strip() or None,
        "machine": {"processor": platform.processor() or platform.machine(), "threads": torch.get_num_threads()},
    }
