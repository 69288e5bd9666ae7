"""Trainings of an experiment's own models. A training is identified by model, options and data, so
that parts that need the same one share it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from transduce import models
from transduce.generation import generate
from transduce.metatraining import Learner, Training, metatrain
from transduce.storage import StoredFamily
from transduce.types import OperatorFamily

from .baselines import META_LEARNERS
from .lab import Lab, Row
from .names import describe, short


def stored(lab: Lab, family: Any) -> StoredFamily:
    """As many operators and examples of a family as the scale says, drawn on first use."""
    operators, examples = lab.scale.stored
    path = lab.work / f"tasks-{operators}x{examples}.zarr"
    if not path.exists():
        lab.work.mkdir(parents=True, exist_ok=True)
        generate(family, path, operators, examples, seed=0)
    return _opened(path)


@cache
def _opened(path: Path) -> StoredFamily:
    return StoredFamily(path)


@dataclass(frozen=True)
class Trained:
    """A trained model, what identifies its training, and its validation error against steps and
    seconds."""

    T: Learner
    identity: str
    curve: list[Row]


def trained(
    lab: Lab, model: Row, how: Training, data: OperatorFamily, validation: OperatorFamily | None
) -> Trained:
    """A model or a meta-trained baseline, trained on `data`. A training that stopped resumes."""
    identity = short([model, describe(how), describe(data), lab.scale.seed])
    folder = lab.work / "trainings" / identity
    torch.manual_seed(lab.scale.seed)
    T = (
        META_LEARNERS[model["learner"]](**model["options"])
        if "learner" in model
        else models.build(model)
    )
    metatrain(T, data, how, validation=validation, out=folder)
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    lab.seconds += lines[-1]["seconds"]
    measured = [line for line in lines if line["validation"] is not None]
    return Trained(
        T,
        identity,
        [{"step": m["step"], "error": m["validation"], "seconds": m["seconds"]} for m in measured],
    )
