"""transduce train | generate: weights from a recipe, and operators to train on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from .options import (
    Amplitude,
    Force,
    Increment,
    KMax,
    LengthScale,
    Resolution,
    Seed,
    Start,
    Time,
    Viscosity,
    built,
)
from .printing import say

Name = Annotated[str, typer.Argument(help="The recipe.")]
Out = Annotated[
    Path | None,
    typer.Option(help="The folder of checkpoint, log and weights; default: runs/NAME."),
]
Data = Annotated[
    Path | None,
    typer.Option(help="Your own operators: v and u of shape (operator, example, *grid)."),
]
Steps = Annotated[
    int | None,
    typer.Option(min=1, help="Instead of the recipe's; a lesson before them keeps its length."),
]
OwnSeed = Annotated[int | None, typer.Option(min=0, help="Instead of the recipe's.")]
OnTheFly = Annotated[
    bool,
    typer.Option(
        "--on-the-fly", help="Draw every task from the family, not from stored ones: slower."
    ),
]
StartFrom = Annotated[
    str | None,
    typer.Option(
        help="Weights to begin with, bundled or a .safetensors file, as when adapting to --data."
    ),
]
Rate = Annotated[
    float, typer.Option(min=1e-6, help="A factor of the learning rates: 0.3, say, with --start.")
]
Until = Annotated[
    float,
    typer.Option(
        min=0, help="Stop as soon as the validation error (mean relative MSE) is this small."
    ),
]
Family = Annotated[str, typer.Argument(help="The family: adr, burgers, random or random_fields.")]
Store = Annotated[Path, typer.Option(help="The Zarr store to write.")]
Operators = Annotated[int, typer.Option(min=1, help="How many operators.")]
Examples = Annotated[int, typer.Option(min=1, help="How many pairs of each.")]
Split = Annotated[str, typer.Option(help="train, validation or test: their draws never meet.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes on this machine; default: one for each core.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="A dask scheduler instead, like tcp://host:8786, whose workers see the same disk."
    ),
]


def train(
    name: Name,
    out: Out = None,
    data: Data = None,
    steps: Steps = None,
    seed: OwnSeed = None,
    on_the_fly: OnTheFly = False,
    start: StartFrom = None,
    rate: Rate = 1.0,
    until: Until = 0.0,
) -> None:
    """Meta-train a recipe's model, resuming where it stopped."""
    from .. import recipes
    from ..types import TransduceError

    begun = time.perf_counter()
    path, error = recipes.train(
        recipes.recipe(name),
        out or Path("runs") / name,
        data=data,
        steps=steps,
        seed=seed,
        on_the_fly=on_the_fly,
        start=start,
        rate=rate,
        until=until,
    )
    if until and error is not None and error > until:
        raise TransduceError(
            f"the validation error ended at {error:.3g}, above the {until:g} asked for; the "
            f"weights are in {path}. Give more --steps."
        )
    say(
        f"{name}: validation error {error:.3g}, {time.perf_counter() - begun:.0f} s with data and "
        f"start-up, weights in {path}"
    )


def generate(
    family: Family,
    out: Store,
    operators: Operators = 500,
    examples: Examples = 100,
    seed: Seed = 0,
    split: Split = "train",
    workers: Workers = None,
    scheduler: Scheduler = None,
    k_max: KMax = None,
    length_scale: LengthScale = None,
    t: Time = None,
    amplitude: Amplitude = None,
    nu: Viscosity = None,
    start: Start = None,
    increment: Increment = None,
    resolution: Resolution = None,
    force: Force = False,
) -> None:
    """Draw operators of a family with examples of each; any number of workers gives the same
    bytes."""
    from .. import generation

    of_adr = {"k_max": k_max, "length_scale": length_scale, "t": t}
    of_burgers = {
        "amplitude": amplitude,
        "nu": nu,
        "start": start,
        "increment": increment,
        "resolution": resolution,
    }
    B = built(family, {"adr": of_adr, "burgers": of_burgers})
    begun = time.perf_counter()
    generation.generate(
        B,
        out,
        operators,
        examples,
        seed=seed,
        split=split,
        workers=workers,
        scheduler=scheduler,
        force=force,
    )
    say(
        f"{family}: {operators} operators of {examples} examples, "
        f"{time.perf_counter() - begun:.0f} s, written to {out}"
    )
