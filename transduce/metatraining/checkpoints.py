"""Checkpoints of a run, and the identity that a run must share with a checkpoint to resume it.

The identity has three parts: the model's config, the options of `Training` and the data. An option
that a checkpoint lacks, because it was added later, counts as its default. Options that do not
change the weights of a step (the number of steps, how often to validate) are not part of it."""

from __future__ import annotations

import inspect
import json
import zipfile
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import TypedDict, cast

import torch
from torch import Tensor

from ..files import replacing
from ..types import TransduceError
from .learner import Learner
from .options import Training

FORMAT = "transduce checkpoint 2"
REMEDY = "Move it away to start again, or give another folder."
MAY_CHANGE = ("steps", "validate_every", "checkpoint_every", "validation_tasks")

Options = dict[str, object]


class State(TypedDict):
    """Everything that a step changes.

    Keys:
        step: how many steps were taken.
        model: the weights.
        averaged: their exponential average, if the run has one.
        optimisers: the state of each optimiser.
        random: the state of torch's generator.
    """

    step: int
    model: dict[str, Tensor]
    averaged: dict[str, Tensor] | None
    optimisers: list[Options]
    random: Tensor


class Saved(State):
    """The content of a checkpoint: the state of a run, and what identifies it."""

    format: str
    identity: dict[str, Options]


class Checkpoint:
    """The checkpoint of one run, at `path`.

    Args:
        path: the file.
        T: the model of the run.
        training: how it is trained.
        data: describes what it is trained on.
        processes: how many processes train it.
    """

    def __init__(self, path: Path, T: Learner, training: Training, data: str, processes: int):
        self.path, self.T, self.training = path, T, training
        settings = {k: v for k, v in asdict(training).items() if k not in MAY_CHANGE}
        run = {"data": data, "processes": processes}
        self.identity = {
            "model": as_json(T.config),
            "training": as_json(settings),
            "run": as_json(run),
        }

    def exists(self) -> bool:
        """Whether there is a file to resume from."""
        return self.path.exists()

    def write(self, state: State) -> None:
        """Write the whole state of the run, atomically."""
        with replacing(self.path) as temporary:
            torch.save({"format": FORMAT, "identity": self.identity, **state}, temporary)

    def read(self) -> State:
        """The state of the run; raises a TransduceError if the file is of another run."""
        state = read_checkpoint(self.path)
        theirs = self._with_defaults(state["identity"])
        different = [
            difference
            for part, ours in self.identity.items()
            for difference in differences(theirs[part], ours)
        ]
        if different:
            raise TransduceError(
                f"{self.path} belongs to another run ({', '.join(different)}). {REMEDY}"
            )
        if state["step"] > self.training.steps:
            raise TransduceError(
                f"{self.path} has taken {state['step']} steps already; {self.training.steps} were "
                f"asked for. Ask for more. {REMEDY}"
            )
        return state

    def _with_defaults(self, identity: dict[str, Options]) -> dict[str, Options]:
        """An identity that was written before some options existed, with defaults for these."""
        return {
            "model": complete_config(type(self.T), identity["model"]),
            "training": training_defaults(type(self.training)) | identity["training"],
            "run": identity["run"],
        }


def differences(theirs: Options, ours: Options) -> list[str]:
    """The options that differ, in words: "lr 0.001 there and 0.5 here"."""
    there, here = flat(theirs), flat(ours)
    return [
        f"{name} {there.get(name)} there and {here.get(name)} here"
        for name in here | there
        if there.get(name) != here.get(name)
    ]


def flat(options: object, name: str = "") -> Options:
    """Nested options by their full names: {"layers": [{"heads": 4}]} is {"layers.0.heads": 4}."""
    if isinstance(options, list) and any(isinstance(item, dict) for item in options):
        options = {str(i): item for i, item in enumerate(options)}
    if not isinstance(options, dict):
        return {name: options}
    prefix = f"{name}." if name else ""
    named: Options = {}
    for key, value in options.items():
        named |= flat(value, f"{prefix}{key}")
    return named


def training_defaults(kind: type[Training]) -> Options:
    """The default of each option of Training that is part of a run's identity."""
    defaults = {field.name: field.default for field in fields(kind)}
    return as_json({k: v for k, v in defaults.items() if v is not MISSING and k not in MAY_CHANGE})


def complete_config(kind: type, config: Options) -> Options:
    """A model's config with defaults for the options that it lacks.

    A model with `from_config` is built from the config, and then describes itself in full. Else the
    defaults are those of its constructor. A config that builds no model stays as it is.
    """
    build = getattr(kind, "from_config", None)
    if build is None:
        options = inspect.signature(kind).parameters.values()
        defaults = {o.name: o.default for o in options if o.default is not o.empty}
        return as_json(defaults) | config
    try:
        return as_json(build(config).config)
    except (KeyError, TypeError, TransduceError):
        return config


def read_checkpoint(path: Path) -> Saved:
    """The content of a checkpoint of which no byte is damaged; nothing in it is executed."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        state = None if damaged else torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:
        raise TransduceError(
            f"{path} is not a checkpoint, or is damaged ({type(error).__name__}). {REMEDY}"
        ) from None
    form = state.get("format") if isinstance(state, dict) else None
    if form == "transduce checkpoint":
        raise TransduceError(
            f"{path} was written by an older version of transduce, which this one cannot resume. "
            f"{REMEDY}"
        )
    if not isinstance(state, dict) or form != FORMAT:
        raise TransduceError(
            f"{path} is not a checkpoint that transduce wrote, or is damaged. {REMEDY}"
        )
    return cast(Saved, state)


def as_json(options: Mapping[str, object]) -> Options:
    """The same values in the types that JSON gives back: lists for tuples."""
    return cast(Options, json.loads(json.dumps(dict(options))))
