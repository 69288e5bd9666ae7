"""What each part of the model does: trained alike, for the same steps, on the same operators,
without it; and what a wrong context does.

    nothing            the mean operator B alone, which sees no example
    summary            B with its layers scaled by a pooled summary of the examples
    kernel             the representer kernel alone
    read-out           W regressed from the examples: the bundled model, but shorter and smaller
    read-out, summary  both
    all                the read-out, and the representer kernel on what it leaves

"wrong context": the examples come from another operator than the queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from transduce.families import Burgers2d
from transduce.metatraining import Training
from transduce.report import by_regressor
from transduce.settings import register
from transduce.types import OperatorFamily, Task

from ..lab import Lab, Part, Row
from ..measuring import errors
from ..names import describe
from ..recipes import recipe
from ..trainings import stored, trained
from .setting import AMPLITUDES, TIMES, family_of

SPACE = {"space": "FourierModes", "modes": (16, 16), "channels": 2}
NETWORK = {"channels": 32, "layers": 4, "modes": 12, "grid": 32}
KERNEL = {
    "heads": 2,
    "width": 64,
    "hidden": 256,
    "feature_layers": 2,
}
MODELS: dict[str, Row] = {
    "nothing": {"model": "spectral", **NETWORK, "readout": False},
    "summary": {"model": "spectral", **NETWORK, "readout": False, "summary": 32},
    "kernel": {"model": "representer", **KERNEL},
    "read-out": {"model": "spectral", **NETWORK},
    "read-out, summary": {"model": "spectral", **NETWORK, "summary": 32},
    "all": {"model": "spectral-representer", "spectral": NETWORK, "representer": KERNEL},
}
SIZES = (5, 20, 100)


@dataclass(frozen=True)
class WrongContext:
    """Tasks whose examples are those of another operator of the family."""

    family: OperatorFamily

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        return Task(
            self.family.sample_task(n, 1, generator).examples,
            self.family.sample_task(1, m, generator).queries,
        )


register("wrong context", WrongContext)


def training(lab: Lab) -> Training:
    """As `burgers` is trained, but shorter."""
    steps = lab.scale.steps
    every = max(1, steps // 5)
    often = {
        "validate_every": every,
        "checkpoint_every": every,
        "validation_tasks": min(16, lab.scale.few),
    }
    how = replace(recipe("burgers").training, steps=steps, warmup=min(50, steps), **often)
    return replace(how, n=(2, 4), queries=2) if lab.scale.quick else how


def measure(lab: Lab) -> list[Row]:
    family: Burgers2d = recipe("burgers").family
    data, rows = stored(lab, family), []
    sizes = [n for n in SIZES if n <= lab.scale.table_n]
    for name, options in MODELS.items():
        found = trained(
            lab,
            {"V": SPACE, "U": SPACE, **options},
            training(lab),
            data,
            family,
        )
        for amplitude in AMPLITUDES:
            right = family_of(amplitude, TIMES[-1])
            for context, tasks in (("", right), (", wrong context", WrongContext(right))):
                measured = errors(
                    lab,
                    name + context,
                    found.T,
                    found.identity,
                    tasks,
                    sizes,
                    lab.scale.few,
                    where=describe(tasks),
                )
                rows += [{"amplitude": amplitude, **row} for row in measured]
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    return by_regressor([{**row, "condition": f"amplitude {row['amplitude']:g}"} for row in rows])


PART = Part("parts", "what each part does", measure, table, regressors=())
