"""Figure 3: operators, times and initial states unlike those of meta-training.

Every regressor is given the same examples of each new operator. Beside them stands what the paper
argues against: an FNO trained in distribution, on all training operators or on one of them, applied
to the new ones without refitting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from transduce.baselines import Fno
from transduce.families import AdvectionDiffusionReaction
from transduce.families.adr import boundary_mask
from transduce.settings import Json, register
from transduce.types import ExampleSet, OperatorFamily, Regressor, Task

from .. import figures
from ..baselines import FamilyWide
from ..lab import Lab, Part, Row
from ..measuring import Remembered, errors, on_all, on_same_few
from ..names import describe
from .setting import identity, regressor
from .trainings import training_data

N = 100
INSTANT = ("adr", "adr-softmax", "kernel-ridge", "linear-ridge", "nearest-neighbours")
LENGTH, TIME, STATES, REACTION = (
    "length scale of delta, nu",
    "target time t",
    "initial states",
    "largest k",
)
TRAINED: dict[str, Any] = {LENGTH: 0.2, TIME: 1.0, STATES: "as trained", REACTION: 0.3}


class Bumps(AdvectionDiffusionReaction):
    """v = a exp(-(x - c)^2 / (2 w^2)) m(x): one bump, of either sign."""

    def sample_inputs(self, n: int, generator: torch.Generator) -> Float[Tensor, "n x"]:
        a, c, w = torch.rand(3, n, 1, dtype=torch.float64, generator=generator)
        x = torch.linspace(0, 1, self.points, dtype=torch.float64)
        sign = torch.where(a < 0.5, -1.0, 1.0)
        return (
            sign
            * (0.5 + 2 * (a % 0.5))
            * torch.exp(-((x - 0.2 - 0.6 * c) ** 2) / (2 * (0.03 + 0.07 * w) ** 2))
            * boundary_mask(x)
        )


class Steps(AdvectionDiffusionReaction):
    """v = one level left of a place, another right of it, times m(x)."""

    def sample_inputs(self, n: int, generator: torch.Generator) -> Float[Tensor, "n x"]:
        levels = torch.randn(2, n, 1, dtype=torch.float64, generator=generator)
        place = 0.2 + 0.6 * torch.rand(n, 1, dtype=torch.float64, generator=generator)
        x = torch.linspace(0, 1, self.points, dtype=torch.float64)
        return torch.where(x < place, levels[0], levels[1]) * boundary_mask(x)


@dataclass(frozen=True)
class NewQueries:
    """Examples as in training; queries that start from the states of another family, under the same
    operator."""

    states: AdvectionDiffusionReaction

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        family = AdvectionDiffusionReaction()
        operator = family.sample_operator(generator)
        return Task(
            family.sample_pairs(operator, n, generator),
            self.states.sample_pairs(operator, m, generator),
        )


register("adr from bumps", Bumps)
register("adr from steps", Steps)
register("adr of new queries", NewQueries)


def sweeps() -> list[tuple[str, Any, OperatorFamily]]:
    """(sweep, value, family)."""
    adr = AdvectionDiffusionReaction
    states = {"rougher": adr(v_length_scale=0.1), "a bump": Bumps(), "a step": Steps()}
    return [
        *((LENGTH, scale, adr(length_scale=scale)) for scale in (0.05, 0.1, 0.2, 0.3, 0.5)),
        *((TIME, t, adr(t=t)) for t in (0.1, 0.3, 1.0, 2.0, 3.0)),
        (STATES, "as trained", adr()),
        *((STATES, name, NewQueries(family)) for name, family in states.items()),
        *((REACTION, k_max, adr(k_max=k_max)) for k_max in (0.1, 0.3, 0.6, 1.0)),
    ]


def in_distribution(lab: Lab) -> dict[str, tuple[FamilyWide, Json]]:
    """An FNO of the tuned kind, fitted once, and its identity: to all pairs of one training
    operator as it would be there; and to pairs of all training operators, with two layers, in five
    passes (3,000 steps) of batches of 32."""
    data, tuned = training_data(lab), regressor(lab, "fno")
    assert isinstance(tuned, Fno)
    larger = replace(tuned, layers=2, fitting=replace(tuned.fitting, epochs=5, steps=0, batch=32))

    def all_operators() -> Iterable[ExampleSet]:
        return (ExampleSet(v[:4], u[:4]) for v, u in zip(data.v, data.u, strict=True))

    def one_operator() -> Iterable[ExampleSet]:
        return [ExampleSet(data.v[0], data.u[0])]

    return {
        "fno-all-operators": (
            FamilyWide(larger, all_operators),
            {"regressor": describe(larger), "operators": "all", "data": describe(data)},
        ),
        "fno-one-operator": (
            FamilyWide(tuned, one_operator),
            {"regressor": describe(tuned), "operators": "first", "data": describe(data)},
        ),
    }


def measure(lab: Lab) -> list[Row]:
    scale, rows, n = lab.scale, [], min(N, lab.scale.fitted_most)
    regressors: dict[str, tuple[Regressor, Json]] = {
        name: (regressor(lab, name), identity(name)) for name in (*INSTANT, "fno")
    }
    regressors |= in_distribution(lab)
    for sweep, value, family in sweeps():
        tasks = Remembered(family, n)
        for name, (R, of) in regressors.items():
            measured = partial(errors, lab, name, R, of, tasks, (n,), where=describe(family))
            found = measured(scale.fitted_elsewhere if name == "fno" else scale.ablated)
            if name == "adr":
                found += on_same_few(measured(scale.fitted_elsewhere))
            rows += [{"sweep": sweep, "value": value, **row} for row in found]
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = (row["sweep"], str(row["value"]))
        lines.setdefault(key, {"sweep": key[0], "value": key[1]})[row["regressor"]] = row["mean"]
    return list(lines.values())


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.sweep(on_all(rows), folder / "extrapolation", TRAINED)


PART = Part("extrapolation", "out of distribution (figure 3)", measure, table, draw)
