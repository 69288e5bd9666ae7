"""The short trainings of the ablations: all as `adr-softmax` is trained, but shorter, smaller, and
on half as many tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from transduce.families import AdvectionDiffusionReaction
from transduce.metatraining import Training
from transduce.storage import StoredFamily

from .. import trainings
from ..lab import Lab, Row
from ..recipes import recipe
from ..trainings import Trained

SOFTMAX: Row = {
    "model": "softmax",
    **{name: {"space": "SineModes", "modes": 64} for name in "VU"},
    "kappa": "exp_dot",
    "depth": 8,
    "heads": 4,
    "width": 32,
    "hidden": 128,
    "gain": 0.1,
    "tied": False,
}
REPRESENTER: Row = recipe("adr").model | {name: SOFTMAX[name] for name in "VU"}


def training_data(lab: Lab) -> StoredFamily:
    """The training operators, drawn on first use."""
    return trainings.stored(lab, AdvectionDiffusionReaction())


def training(lab: Lab, **changes: Any) -> Training:
    """How the ablations are trained."""
    steps = lab.scale.steps
    every = max(1, steps // 20)
    short = {
        "steps": steps,
        "tasks": 8,
        "validate_every": every,
        "checkpoint_every": every,
        "warmup": min(200, steps // 2),
    }
    short["validation_tasks"] = min(32, lab.scale.operators)
    return replace(recipe("adr-softmax").training, **(short | changes))


def trained(lab: Lab, model: Row, how: Training, data: StoredFamily) -> Trained:
    """A model trained on `data`, going on where it stopped."""
    return trainings.trained(lab, model, how, data, AdvectionDiffusionReaction())
