"""How long a context stays of use: what is remembered, and a difference that is learned for windows
of each lag.

    u_hat(t) = B(v(t)) + delta(v(t)),      delta from the n days that ended `lag` days before t

The memory is that of the bundled model; how far operators of windows differ from it is trained for
each lag alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from transduce.families import previous_week
from transduce.metatraining import make_fabric
from transduce.transducer import Transducer
from transduce.types import ExampleSet

from .. import figures
from ..lab import Lab, Part, Row
from ..names import short
from ..recipes import recipe
from .setting import BEST, asked, day_errors, days, fields, identity, kernel_alone, summary


def of_lag(lab: Lab, lag: int) -> Transducer:
    """The bundled model with a difference that was learned for this lag."""
    how = recipe(BEST)
    assert how.remembering is not None
    windows = replace(how.family, window=lab.scale.n + lag + how.training.queries - 1, lag=lag)
    training = replace(
        how.training,
        n=(lab.scale.n, lab.scale.n),
        **({"steps": lab.scale.steps} if lab.scale.steps else {}),
    )
    folder = lab.work / "trainings" / f"lag-{lag}-{short(identity(BEST))}-{training.steps}"
    return how.remembering.trained(kernel_alone(), windows, training, folder, make_fabric())[0]


def measure(lab: Lab) -> list[Row]:
    whole, at, rows = fields(), asked(lab, lab.scale.curve_every), []
    for lag in lab.scale.lags:

        def examples(day: int, lag: int = lag) -> ExampleSet:
            return days(previous_week(whole, whole.time[day], lab.scale.n, lag))

        found = day_errors(
            lab,
            partial(of_lag, lab, lag),
            examples,
            at,
            identity=identity(BEST),
            lag=lag,
            steps=lab.scale.steps,
        )
        rows.append({"regressor": BEST, "context": "days before", "lag": lag, **summary(found, at)})
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    return [{"regressor": BEST, **{f"lag {row['lag']}": f"{row['mean']:.1f}" for row in rows}}]


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.error_against(
        rows,
        "lag",
        folder / "lags",
        "days from the last of the context to the day that is asked about",
    )


PART = Part(
    "lags",
    "error against the lag of the context, in hPa^2",
    measure,
    table,
    draw,
    regressors=(BEST,),
)
