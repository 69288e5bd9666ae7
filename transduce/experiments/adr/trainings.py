"""The short trainings of the ablations: all as `adr-softmax` is trained, but shorter, smaller, and on half as many tasks.

A training is found again by what it is: equal models trained alike on equal data are trained once, whichever parts ask for them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ...families import AdvectionDiffusionReaction
from ...generation import generate
from ...metatraining import Training, metatrain
from ...recipes import recipe
from ...storage import StoredFamily
from ...transducer import Transducer
from ..lab import Lab, Row

SOFTMAX: Row = {
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


@cache
def _stored(path: Path, operators: int, examples: int) -> StoredFamily:
    if not path.exists():
        generate(AdvectionDiffusionReaction(), path, operators, examples, seed=0)
    return StoredFamily(path)


def training_data(lab: Lab) -> StoredFamily:
    """The training operators, drawn on first use."""
    operators, examples = lab.scale.stored
    return _stored(lab.work / f"tasks-{operators}x{examples}.zarr", operators, examples)


def training(lab: Lab, **changes: Any) -> Training:
    """How the ablations are trained."""
    steps = lab.scale.steps
    every = max(1, steps // 20)
    short = {"steps": steps, "tasks": 8, "validate_every": every, "checkpoint_every": every, "warmup": min(200, steps // 2)}
    short["validation_tasks"] = min(32, lab.scale.operators)
    return replace(recipe("adr-softmax").training, **(short | changes))


@dataclass(frozen=True)
class Trained:
    """A trained model, what identifies its training, and its validation error against steps and seconds."""

    T: Transducer
    identity: str
    curve: list[Row]


def trained(lab: Lab, model: Row, how: Training, data: StoredFamily) -> Trained:
    """A model trained on `data`, going on where it stopped."""
    described = json.dumps([model, asdict(how), repr(data), lab.scale.seed], sort_keys=True)
    identity = hashlib.sha256(described.encode()).hexdigest()[:12]
    folder = lab.work / "trainings" / identity
    torch.manual_seed(lab.scale.seed)
    T = Transducer.from_config(model)
    metatrain(T, data, how, validation=AdvectionDiffusionReaction(), out=folder)
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    lab.seconds += lines[-1]["seconds"]
    measured = [line for line in lines if line["validation"] is not None]
    return Trained(T, identity, [{"step": m["step"], "error": m["validation"], "seconds": m["seconds"]} for m in measured])
