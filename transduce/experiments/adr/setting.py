"""What the parts of the ADR experiment share: how much is measured, by which regressors, on which operators.

Errors are over operators drawn with seeds ("test", 0, i), the same for every regressor, with the largest number of examples drawn once
and its first n given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ... import weights
from ...baselines import RIVALS, DeepOnet, Fno, rival
from ...evaluation import evaluate, summarise
from ...random_fields import generator_for
from ...transducer import Transducer
from ...types import OperatorFamily, Regressor, Task
from ..lab import Lab, Row

MODELS = ("adr", "adr-softmax")
IN_TABLE_1 = ("fno-paper", "fno-stopped", "deeponet-paper")  # measured at its n alone
FITTED = (*IN_TABLE_1, "fno", "deeponet", "gaussian-process", "decision-tree")  # seconds to minutes for each operator
REGRESSORS = (*MODELS, *RIVALS)


@dataclass(frozen=True)
class Scale:
    """How much is measured. operators: unseen ones, for regressors that answer at once; fitted: for those that are fitted to each.
    fitted_elsewhere: for those out of distribution. sizes: numbers of examples; the fitted ones go to `fitted_most`; table_n: of table 1;
    repeats: of its timings. readout: training operators that layers are read with.
    ablated: unseen operators for the ablations, each trained for `steps`; depths, training_operators: what they vary. stored: operators
    and examples of the training data. paper_steps: of the paper's own configuration."""

    quick: bool = False
    seed: int = 0
    operators: int = 100
    fitted: int = 20
    fitted_elsewhere: int = 4
    sizes: tuple[int, ...] = (5, 10, 20, 50, 100, 200, 500, 1000)
    fitted_most: int = 200
    table_n: int = 50
    queries: int = 50
    repeats: int = 15
    readout: int = 200
    steps: int = 1_500
    ablated: int = 50
    depths: tuple[int, ...] = (1, 2, 4, 8, 16)
    stored: tuple[int, int] = (5_000, 250)
    paper_steps: int = 10_000
    training_operators: tuple[int, ...] = (50, 200, 1_000, 5_000)


FULL = Scale()
QUICK = Scale(
    quick=True,
    operators=4,
    fitted=1,
    fitted_elsewhere=1,
    sizes=(5, 20, 50),
    fitted_most=20,
    table_n=20,
    queries=10,
    repeats=2,
    readout=24,
    steps=20,
    ablated=4,
    depths=(1, 2),
    stored=(24, 180),
    paper_steps=50,
    training_operators=(6, 24),
)


@dataclass
class Remembered:
    """A family whose tasks are drawn once, with `most` examples, of which the first n are given."""

    family: OperatorFamily
    most: int
    _tasks: dict[Any, Task] = field(default_factory=dict)

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        key = (m, generator.initial_seed())
        if key not in self._tasks:
            self._tasks[key] = self.family.sample_task(self.most, m, generator)
        task = self._tasks[key]
        return Task(task.examples[:n], task.queries)


def regressor(lab: Lab, name: str) -> Regressor:
    """A bundled model or a rival, by name; a network is hardly fitted where things go quickly."""
    if name not in RIVALS:
        return Transducer.from_pretrained(name)
    R = rival(name)
    if lab.scale.quick and isinstance(R, Fno | DeepOnet):
        return replace(R, fitting=replace(R.fitting, epochs=10, steps=0))
    return R


def identity(name: str) -> str:
    """What a measurement of this regressor holds for: the weights of a bundled model, the configuration of a rival."""
    return repr(rival(name)) if name in RIVALS else weights.checksums()[f"{name}.safetensors"][:12]


def identities() -> dict[str, str]:
    """Of all regressors that the experiment measures."""
    return {name: identity(name) for name in REGRESSORS}


SAME_FEW = ", same few"  # of a model's rows over only those operators that the rivals beside it are fitted to


def on_same_few(rows: Sequence[Row]) -> list[Row]:
    """Rows over fewer operators, named so."""
    return [row | {"regressor": row["regressor"] + SAME_FEW} for row in rows]


def on_all(rows: Sequence[Row]) -> list[Row]:
    """The rows that are not `on_same_few`."""
    return [row for row in rows if not row["regressor"].endswith(SAME_FEW)]


def errors(
    lab: Lab, name: str, R: Regressor, of: str, family: OperatorFamily, sizes: Sequence[int], operators: int, **key: Any
) -> list[Row]:
    """The `summarise`d errors of a regressor at each n. of: its identity; what else identifies the measurement is `key`."""
    rows = []
    for operator in range(operators):
        generator = generator_for("test", lab.scale.seed, operator)

        def measure(generator: torch.Generator = generator) -> list[list[Any]]:
            return _packed(evaluate(R, family, sizes, 1, generator, lab.scale.queries))

        drawn = {"seed": lab.scale.seed, "queries": lab.scale.queries, "n": list(sizes), "operator": operator}
        rows += [{**row, "operator": operator} for row in _unpacked(lab.once(measure, regressor=name, identity=of, **key, **drawn))]
    return [{"regressor": name, **row} for row in summarise(rows)]


KEPT = ("n", "query", "relative_mse", "squared_error", "squared_norm", "seconds")


def _packed(rows: Sequence[Row]) -> list[list[Any]]:
    """Rows as columns, numbers with six digits."""
    return [[float(f"{row[name]:.6g}") if isinstance(row[name], float) else row[name] for row in rows] for name in KEPT]


def _unpacked(columns: Sequence[Sequence[Any]]) -> list[Row]:
    return [dict(zip(KEPT, values, strict=True)) for values in zip(*columns, strict=True)]
