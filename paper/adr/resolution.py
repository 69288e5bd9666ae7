"""Examples on a coarse grid, queries on a fine one: the error on the finer grid.

Functions are read off the internal solution through its sine interpolant, which is exact at any
point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from transduce.families import AdvectionDiffusionReaction
from transduce.spaces import SineModes
from transduce.transducer import Transducer
from transduce.types import ExampleSet, Operator, Regressor, Task, to_tensor

from ..lab import Lab, Part, Row
from ..measuring import errors, on_same_few
from .setting import identity, regressor

GRIDS = ((64, 257), (101, 101), (101, 257))  # of examples, of queries


@dataclass(frozen=True)
class TwoGrids:
    """ADR tasks whose examples have some number of points and whose queries another."""

    examples: int
    queries: int

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        family = AdvectionDiffusionReaction()
        operator = family.sample_operator(generator)
        v, u = family.sample_states(operator, n + m, generator)
        fine = SineModes(family.points - 2)

        def on(points: int, f: torch.Tensor) -> torch.Tensor:
            return fine.decode(fine.encode(f), points).float()

        examples = ExampleSet(on(self.examples, v[:n]), on(self.examples, u[:n]))
        return Task(examples, ExampleSet(on(self.queries, v[n:]), on(self.queries, u[n:])))


@dataclass(frozen=True)
class OnGridOf:
    """A Transducer that is asked on the query's grid."""

    T: Transducer

    def regress(self, examples: ExampleSet) -> Operator:
        O = self.T.regress(examples)
        return lambda v: O(v, at=v.shape[-1])


@dataclass(frozen=True)
class FittedOnce:
    """A regressor that is slow to fit, and that is fitted once to the same examples, whatever it is
    then asked."""

    regressor: Regressor
    _fitted: dict[bytes, Operator] = field(default_factory=dict, repr=False)

    def regress(self, examples: ExampleSet) -> Operator:
        key = examples.v.numpy().tobytes() + examples.u.numpy().tobytes()
        if key not in self._fitted:
            self._fitted[key] = self.regressor.regress(examples)
        return self._fitted[key]


@dataclass(frozen=True)
class Interpolated:
    """A regressor that is given the sine interpolant of a query on its examples' grid, and whose
    answer is interpolated back."""

    regressor: Regressor

    def regress(self, examples: ExampleSet) -> Operator:
        O, points = self.regressor.regress(examples), examples.v.shape[-1]
        modes = SineModes(points - 2)

        def answer(v: Any) -> Any:
            coarse = SineModes(v.shape[-1] - 2)
            return modes.decode(
                modes.encode(to_tensor(O(coarse.decode(coarse.encode(v), points)), "u")),
                v.shape[-1],
            )

        return answer


def measure(lab: Lab) -> list[Row]:
    rows, n, scale = [], lab.scale.table_n, lab.scale
    fno = FittedOnce(regressor(lab, "fno"))
    regressors: dict[str, tuple[str, Regressor, int]] = {
        "adr": ("adr", OnGridOf(Transducer.from_pretrained("adr")), scale.ablated),
        "adr-softmax": (
            "adr-softmax",
            OnGridOf(Transducer.from_pretrained("adr-softmax")),
            scale.ablated,
        ),
        "kernel-ridge, interpolated": (
            "kernel-ridge",
            Interpolated(regressor(lab, "kernel-ridge")),
            scale.ablated,
        ),
        "fno": ("fno", fno, scale.fitted_elsewhere),
        "fno, interpolated": ("fno", Interpolated(fno), scale.fitted_elsewhere),
    }
    for examples, queries in GRIDS:
        family = TwoGrids(examples, queries)
        for name, (base, R, operators) in regressors.items():
            measured = partial(
                errors, lab, name, R, identity(base), family, (n,), grids=[examples, queries]
            )
            found = measured(operators)
            if name == "adr":
                found += on_same_few(measured(scale.fitted_elsewhere))
            rows += [
                {"example_points": examples, "query_points": queries, **_untimed(row)}
                for row in found
            ]
    return rows


def _untimed(row: Row) -> Row:
    """A row without its seconds, which mean nothing where a fit is shared."""
    return {name: value for name, value in row.items() if name != "seconds"}


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[tuple[int, int], Row] = {}
    for row in rows:
        key = (row["example_points"], row["query_points"])
        lines.setdefault(key, {"example points": key[0], "query points": key[1]})[
            row["regressor"]
        ] = row["mean"]
    return list(lines.values())


PART = Part("resolution", "examples on a coarse grid, queries on a fine one", measure, table)
