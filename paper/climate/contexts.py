"""Does it adapt, and to what? The same weights with contexts that they should not like, and with
fewer days and more.

shuffled across seasons   n days drawn from the year before the date
opposite season           the n days that ended half a year before
mean only                 n times the mean of the context
pairs mixed up            the days of the context, each with the pressure of another
memory alone              no context: what climate-europe remembers
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transduce.families import previous_week
from transduce.kernels import Mean
from transduce.random_fields import generator_for
from transduce.transducer import Transducer
from transduce.types import ExampleSet, Operator

from .. import figures
from ..lab import Lab, Part, Row
from .setting import (
    BEST,
    CONTEXTS,
    PAPER,
    asked,
    day_by_day,
    day_errors,
    days,
    fields,
    identity,
    models,
    square_errors,
    summary,
    with_interval,
)

YEAR = 365
Context = Callable[[int], ExampleSet]


def contexts(lab: Lab) -> dict[str, Context]:
    """Examples for each day, by what they are."""
    whole, n = fields(), lab.scale.n

    def week_before(day: int) -> ExampleSet:
        return days(previous_week(whole, whole.time[day], n))

    def shuffled(day: int) -> ExampleSet:
        drawn = torch.randperm(YEAR, generator=generator_for("test", lab.scale.seed, day))[
            :n
        ].numpy()
        return days(np.sort(day - 7 - drawn))

    def opposite(day: int) -> ExampleSet:
        return days(previous_week(whole, whole.time[day - YEAR // 2], n))

    def mean_only(day: int) -> ExampleSet:
        one = week_before(day)
        return ExampleSet(
            *(f.mean(0, keepdim=True).expand_as(f).contiguous() for f in (one.v, one.u))
        )

    def mixed_up(day: int) -> ExampleSet:
        one = week_before(day)
        return ExampleSet(one.v, one.u.roll(n // 2, 0))

    return {
        "week before": week_before,
        "shuffled across seasons": shuffled,
        "opposite season": opposite,
        "mean only": mean_only,
        "pairs mixed up": mixed_up,
    }


@dataclass(frozen=True)
class MemoryAlone:
    """A model that answers with what it remembers, whatever its examples."""

    T: Transducer

    def regress(self, examples: ExampleSet) -> Operator:
        return self.answer

    @torch.no_grad()
    def answer(self, v: Any) -> torch.Tensor:
        T, memory = self.T, self.T.steps[0].kappa
        assert isinstance(memory, Mean)
        encoded = T.V.encode(torch.as_tensor(v).to(T.spread))[None] / T.spread
        return T.U.decode(memory.B(encoded)[0], v.shape[1:])


def remembered(T: Transducer, at: np.ndarray) -> list[float]:
    """The errors of what is remembered, without a context."""
    whole = fields()
    u_hat = MemoryAlone(T).answer(whole.v[at]).numpy()
    return [round(float(e), 4) for e in square_errors(u_hat, whole.u[at], whole.lat)]


def itself(T: Transducer) -> Transducer:
    return T


def measure(lab: Lab) -> list[Row]:
    at, rows = asked(lab), []
    seeing = models(lab)
    for name, (T, of) in seeing.items():
        for context, examples in contexts(lab).items():
            key: Row = {"regressor": name, "identity": of, "context": context}
            key["seed"] = lab.scale.seed
            if context in CONTEXTS:
                found = day_by_day(lab, name, T, of, context)
            else:
                found = day_errors(lab, partial(itself, T), examples, at, **key)
            rows.append({"regressor": name, "context": context, **summary(found, at)})
    found = day_errors(
        lab,
        lambda: MemoryAlone(seeing[BEST][0]),
        contexts(lab)["week before"],
        at,
        regressor=BEST,
        identity=identity(BEST),
        context="memory alone",
    )
    rows.append({"regressor": BEST, "context": "memory alone", **summary(found, at)})
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[str, Row] = {}
    for row in rows:
        lines.setdefault(row["context"], {"context": row["context"], BEST: "", PAPER: ""})[
            row["regressor"]
        ] = with_interval(row)
    return list(lines.values())


def measure_sizes(lab: Lab) -> list[Row]:
    whole, at, rows = fields(), asked(lab, lab.scale.curve_every), []
    for name, (T, of) in models(lab).items():
        for context, before in CONTEXTS.items():
            for n in lab.scale.sizes:

                def examples(day: int, before: Any = before, n: int = n) -> ExampleSet:
                    return days(before(whole, whole.time[day], n))

                key: Row = {"regressor": name, "identity": of, "context": context}
                found = day_errors(lab, partial(itself, T), examples, at, **key)
                rows.append({"regressor": name, "context": context, "n": n, **summary(found, at)})
    return rows


def table_of_sizes(rows: Sequence[Row]) -> list[Row]:
    lines: dict[tuple[str, str], Row] = {}
    for row in rows:
        line = lines.setdefault(
            (row["regressor"], row["context"]),
            {"regressor": row["regressor"], "context": row["context"]},
        )
        line[f"n = {row['n']}"] = f"{row['mean']:.1f}"
    return list(lines.values())


def draw_sizes(rows: Sequence[Row], folder: Path) -> None:
    figures.error_against(rows, "n", folder / "sizes", "days in the context")


PART = Part("contexts", "wrong contexts: error in hPa^2", measure, table, regressors=(BEST, PAPER))
SIZES_PART = Part(
    "sizes",
    "error against the days of the context",
    measure_sizes,
    table_of_sizes,
    draw_sizes,
    regressors=(BEST, PAPER),
)
