"""Figures 1 and 2, right: one model conditioned on three operators; their fields s(x, t); and what
each layer knows of the answer.

The stream of a query is the answer only after the last layer: nothing in training asks the earlier
ones to be. So each layer's stream is also read through a linear map of its own, u ~ [c, 1] A_l,
fitted by ridge regression on training operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from transduce.families import AdvectionDiffusionReaction
from transduce.families.adr import BLOW_UP, STRIDE
from transduce.metrics import relative_squared_errors
from transduce.random_fields import generator_for
from transduce.storage import StoredFamily
from transduce.transducer import Transducer
from transduce.types import ExampleSet

from .. import figures
from ..lab import Lab, Part, Row
from ..measuring import rounded
from ..names import describe
from .setting import identity
from .trainings import training_data

OPERATORS = 3
EXAMPLES = 100
SHOWN = 6
FRAMES = 41


def evolution(operator: Any, v: torch.Tensor, until: float, frames: int) -> np.ndarray:
    """s(x, t) at the reported points and equal times from 0 on, from the initial state v on the
    internal grid."""
    onward = replace(operator, t=until / (frames - 1), steps=4)
    states = [v[None]]
    for _ in range(frames - 1):
        states.append(onward.solve(states[-1])[0])
    return torch.cat(states)[:, ::STRIDE].numpy()


def readouts(T: Transducer, data: StoredFamily, operators: int) -> Float[Tensor, "l d e"]:
    """A_l of each layer, from queries of the first training operators."""
    streams, targets = [], []
    for v, u in zip(data.v[:operators], data.u[:operators], strict=True):
        held = slice(EXAMPLES, EXAMPLES + 32)
        streams.append(
            _with_one(
                T.U.encode(
                    T.regress(ExampleSet(v[:EXAMPLES], u[:EXAMPLES])).layer_estimates(v[held])
                )
            )
        )
        targets.append(T.U.encode(u[held]))
    c, u = torch.cat(streams, 1).double(), torch.cat(targets).double()
    square = c.mT @ c
    ridge = (
        1e-8
        * square.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
        * torch.eye(c.shape[-1], dtype=torch.float64)
    )
    return torch.linalg.solve(square + ridge, c.mT @ u)


def _with_one(c: Float[Tensor, "l m d"]) -> Float[Tensor, "l m d+1"]:
    return torch.cat([c, torch.ones_like(c[..., :1])], -1)


def measured(lab: Lab) -> list[Row]:
    family, seed = AdvectionDiffusionReaction(), lab.scale.seed
    softmax, best = (Transducer.from_pretrained(name) for name in ("adr-softmax", "adr"))
    generators = [generator_for("test", seed, 1001 + number) for number in range(OPERATORS)]
    operators = [family.sample_operator(generator) for generator in generators]
    drawn = family.sample_inputs(2 * lab.scale.queries, generator_for("test", seed, 1000))
    tame = torch.stack([operator.solve(drawn)[1] <= BLOW_UP for operator in operators]).all(0)
    inputs = drawn[tame][: lab.scale.queries]  # the same for all three operators
    A, rows = readouts(softmax, training_data(lab), lab.scale.readout), []
    for number, (operator, generator) in enumerate(zip(operators, generators, strict=True)):
        examples = family.sample_pairs(operator, EXAMPLES, generator)
        v, u = inputs[:, ::STRIDE].float(), operator.solve(inputs)[0][:, ::STRIDE].float()
        estimates = softmax.regress(examples).layer_estimates(v)
        read = softmax.U.decode(
            (_with_one(softmax.U.encode(estimates)).double() @ A).float(), u.shape[-1]
        )
        errors = {
            name: [float(relative_squared_errors(f, u).mean()) for f in layers]
            for name, layers in (("stream", estimates), ("read", read))
        }
        rows.append(
            {
                "operator": number,
                "k": operator.k,
                **{name: rounded(values) for name, values in errors.items()},
                "s": rounded(evolution(operator, inputs[0], 1.0, FRAMES)),
                "squared_errors": rounded((read - u).square().mean(1).numpy()),
                "v": rounded(v[:SHOWN].numpy()),
                "u": rounded(u[:SHOWN].numpy()),
                "u_hat": rounded(best.regress(examples)(v[:SHOWN]).numpy()),
            }
        )
    return rows


def measure(lab: Lab) -> list[Row]:
    key = {
        "seed": lab.scale.seed,
        "queries": lab.scale.queries,
        "readout": lab.scale.readout,
        "data": describe(training_data(lab)),
    }
    return lab.once(
        lambda: measured(lab),
        fields=OPERATORS,
        identity=[identity("adr"), identity("adr-softmax")],
        **key,
    )


def table(rows: Sequence[Row]) -> list[Row]:
    """The error of each layer's stream as it stands, and read through the layer's linear map."""
    return [
        {
            "operator": row["operator"] + 1,
            "of": what,
            **{f"layer {i + 1}": error for i, error in enumerate(row[key])},
        }
        for row in rows
        for what, key in (("the stream", "stream"), ("its reading", "read"))
    ]


def draw(rows: Sequence[Row], folder: Path) -> None:
    def array(name: str) -> np.ndarray:
        return np.array([row[name] for row in rows])

    fields = [
        {
            "s": np.array(row["s"]),
            "t": np.linspace(0, 1, FRAMES),
            "layers": np.array(row["squared_errors"]),
            "title": f"operator {row['operator'] + 1}",
        }
        for row in rows
    ]
    figures.state_evolution(fields, folder / "fields")
    figures.rows_of_predictions(array("v")[0], array("u"), array("u_hat"), folder / "predictions")


PART = Part(
    "fields",
    "fields, layers and rows of predictions (figures 1 and 2, right)",
    measure,
    table,
    draw,
)
