"""Ablations of `images`: trained in the same way, for the same few steps, without one of its parts;
and the effect of examples with wrong classes.

    all                     tasks of permuted MNIST, synthetic images and composed characters;
                            examples, each left out, count as queries
    not trained             the network with random weights
    permuted MNIST alone    the tasks of the paper
    without ...             the mixture without one of its families, or without examples as queries
    perceptron              the representer kernel on features of a perceptron, not of convolutions
    softmax                 the paper's form: two layers, four, raw pixels, the paper's tasks
    wrong classes           the bundled model, with the classes of its examples renamed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from transduce.families import ComposedImages, Mixture, PermutedImages, SyntheticImages
from transduce.metatraining import Training
from transduce.settings import Json, register
from transduce.transducer import Transducer
from transduce.types import ExampleSet, OperatorFamily, Regressor, Task

from ..lab import Lab, Part, Row
from ..recipes import IMAGES, IMAGES_TO_CLASSES, recipe
from ..trainings import trained
from .setting import BEST, SETS, accuracies, by_set, identity, summary


@dataclass(frozen=True)
class Projected:
    """The tasks of a family of images with every image under one random linear map, brought to [0,
    1]."""

    family: OperatorFamily

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        task = self.family.sample_task(n, m, generator)
        both = torch.cat([task.examples.v, task.queries.v])
        v = both @ torch.randn(both.shape[1], both.shape[1], generator=generator)
        v = (v - v.amin()) / (v.amax() - v.amin())
        return Task(ExampleSet(v[:n], task.examples.u), ExampleSet(v[n:], task.queries.u))


register("projected", Projected)
PERMUTED, SYNTHETIC, COMPOSED = (
    PermutedImages("mnist", (1, 2, 4, 7, 14)),
    SyntheticImages(),
    ComposedImages("mnist"),
)
SOFTMAX = recipe("images-softmax")
MODEL = recipe(BEST).model
PERCEPTRON = {
    "model": "representer",
    **IMAGES_TO_CLASSES,
    "heads": 4,
    "width": 64,
    "hidden": 256,
    "feature_layers": 2,
}
ABLATIONS: dict[str, tuple[Row, OperatorFamily, Row]] = {
    "all": (MODEL, IMAGES, {}),
    "permuted MNIST alone": (MODEL, PermutedImages("mnist"), {}),
    "without composed characters": (MODEL, Mixture((PERMUTED, SYNTHETIC), (0.5, 0.5)), {}),
    "without synthetic images": (MODEL, Mixture((PERMUTED, COMPOSED), (0.5, 0.5)), {}),
    "without permuted MNIST": (MODEL, Mixture((SYNTHETIC, COMPOSED), (0.5, 0.5)), {}),
    "with projections": (
        MODEL,
        Mixture((*IMAGES.families, Projected(PermutedImages("mnist"))), (*IMAGES.shares, 0.25)),
        {},
    ),
    "without examples as queries": (MODEL, IMAGES, {"left_out": False}),
    "perceptron": (PERCEPTRON, IMAGES, {}),
    "softmax, 2 layers": (SOFTMAX.model, SOFTMAX.family, {}),
    "softmax, 4 layers": (SOFTMAX.model | {"depth": 4}, SOFTMAX.family, {}),
    "softmax, no square roots": (SOFTMAX.model | IMAGES_TO_CLASSES, SOFTMAX.family, {}),
    "softmax, permuted MNIST alone": (SOFTMAX.model, PermutedImages("mnist"), {}),
}


class Misled:
    """A regressor whose examples have wrong classes: each has the class after its own."""

    def __init__(self, R: Regressor):
        self.R = R

    def regress(self, examples: ExampleSet) -> Any:
        return self.R.regress(ExampleSet(examples.v, examples.u.roll(1, 1)))


def training_of(name: str, steps: int) -> Training:
    """The recipe's, of so many steps."""
    how = SOFTMAX.training if name.startswith("softmax") else recipe(BEST).training
    return replace(
        how, steps=steps, validate_every=steps, checkpoint_every=steps, **ABLATIONS[name][2]
    )


def measure(lab: Lab) -> list[Row]:
    rows = []

    def measured(name: str, R: Any, of: Json) -> None:
        for data in SETS:
            found = accuracies(lab, name, R, of, data, lab.scale.n, lab.scale.ablated)
            rows.append({"trained": name, "set": data, "n": lab.scale.n, **summary(found)})

    for name, (model, family, _) in ABLATIONS.items():
        end = trained(lab, model, training_of(name, lab.scale.steps), family, family)
        measured(name, end.T, end.identity)
        if name == "all":
            start = trained(lab, model, replace(training_of(name, 1), lr=0.0), family, family)
            measured("not trained", start.T, start.identity)
    measured("wrong classes", Misled(Transducer.from_pretrained(BEST)), identity(BEST))
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    return by_set(rows, "trained")


PART = Part("parts", "what each part buys", measure, table, regressors=(BEST,))
