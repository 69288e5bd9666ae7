"""How long a prediction of one day takes, conditioning on its context included, compared with
networks and nearest neighbours. One thread; all are timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from transduce.baselines import nearest_example
from transduce.families import previous_week
from transduce.random_fields import one_thread
from transduce.transducer import Transducer
from transduce.types import ExampleSet

from ..lab import Lab, Part, Row
from ..timing import medians
from .setting import BEST, PAPER, asked, days, fields, fitted_baseline, identities, patches

COMPARED = ("vit", "fno", "kernel-ridge", "ridge", "nearest-day")


def work(R: Any, examples: ExampleSet, v: torch.Tensor) -> Any:
    return R.regress(examples)(v)


def measured(lab: Lab) -> list[Row]:
    whole, day = fields(), int(asked(lab)[0])
    examples, today = days(previous_week(whole, whole.time[day], lab.scale.n)), whole[[day]]
    asked_of = torch.from_numpy(today.v)
    in_context: dict[str, Any] = {
        BEST: Transducer.from_pretrained(BEST),
        PAPER: patches(lab),
        "nearest of the context": nearest_example(),
    }
    works: dict[str, Callable[[], Any]] = {
        name: partial(work, R, examples, asked_of) for name, R in in_context.items()
    }
    works |= {
        name: partial(fitted_baseline(name, lab.scale.steps).answers, today) for name in COMPARED
    }
    with one_thread(), torch.no_grad():
        seconds = dict(zip(works, medians(*works.values(), repeats=lab.scale.repeats), strict=True))
    return [
        {"regressor": name, "seconds": s, "of_vit": s / seconds["vit"]}
        for name, s in seconds.items()
    ]


def measure(lab: Lab) -> list[Row]:
    return lab.once(
        lambda: measured(lab),
        identity=identities(),
        n=lab.scale.n,
        repeats=lab.scale.repeats,
        steps=lab.scale.steps,
    )


def table(rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "regressor": row["regressor"],
            "milliseconds": 1000 * row["seconds"],
            "beside the ViT": row["of_vit"],
        }
        for row in rows
    ]


PART = Part(
    "costs",
    "time of one prediction, context and all, one thread",
    measure,
    table,
    regressors=(BEST, PAPER, *COMPARED),
)
