"""`train`: from a recipe to weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from .. import models
from ..files import provenance
from ..generation import generate
from ..metatraining import Training, make_fabric
from ..storage import StoredFamily
from ..transducer import Transducer
from ..types import TransduceError
from .base import Recipe, Run


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
