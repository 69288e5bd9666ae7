"""Examples at 64 x 64, queries and answers at 128 x 128: t = 10, n = 100. The truth is solved on
the fine grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from transduce.settings import register
from transduce.transducer import Transducer
from transduce.types import ExampleSet, Operator, Task

from ..lab import Lab, Part, Row
from ..measuring import errors
from ..names import describe
from .setting import AMPLITUDES, BEST, TIMES, family_of, identity

COARSE, FINE = 64, 128


@dataclass(frozen=True)
class TwoGrids:
    """Tasks solved on FINE x FINE points, their examples shown on some, and their queries on
    some."""

    amplitude: float
    examples: int
    queries: int

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        family = replace(family_of(self.amplitude, TIMES[-1]), points=FINE, resolution=FINE)
        task = family.sample_task(n, m, generator)
        return Task(on(task.examples, self.examples), on(task.queries, self.queries))


register("burgers on two grids", TwoGrids)


def on(pairs: ExampleSet, points: int) -> ExampleSet:
    """The same functions on fewer points."""
    stride = FINE // points
    return ExampleSet(*(f[..., ::stride, ::stride].contiguous() for f in (pairs.v, pairs.u)))


@dataclass(frozen=True)
class OnGridOf:
    """A Transducer that is asked on the query's grid."""

    T: Transducer

    def regress(self, examples: ExampleSet) -> Operator:
        O = self.T.regress(examples)
        return lambda v: O(v, at=tuple(v.shape[-2:]))


def measure(lab: Lab) -> list[Row]:
    rows, n = [], lab.scale.table_n
    for amplitude in AMPLITUDES:
        for examples, queries in ((COARSE, COARSE), (COARSE, FINE), (FINE, FINE)):
            R, family = (
                OnGridOf(Transducer.from_pretrained(BEST)),
                TwoGrids(amplitude, examples, queries),
            )
            found = errors(
                lab, BEST, R, identity(BEST), family, (n,), lab.scale.fitted, where=describe(family)
            )
            rows += [
                {"amplitude": amplitude, "example_points": examples, "query_points": queries, **row}
                for row in found
            ]
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[tuple[float, int, int], Row] = {}
    for row in rows:
        key = row["amplitude"], row["example_points"], row["query_points"]
        named = dict(zip(("amplitude", "example points", "query points"), key, strict=True))
        lines.setdefault(key, named)[row["regressor"]] = row["mean"]
    return list(lines.values())


PART = Part(
    "resolution", "examples at 64 x 64, queries at 128 x 128", measure, table, regressors=(BEST,)
)
