"""Pressure from temperature, season by season (section 5.3).

    O_w: v(t) -> u(t),      t in a window w of consecutive steps

The relation between two fields drifts with the seasons and with what is not observed, so each
window has an operator of its own. Trained on random windows, a model is asked about a date t from
an earlier window: lag steps ago, or a year ago,

    P.W.  w = {t - lag - n + 1, ..., t - lag},        P.Y.  w = the n steps centred on t - 1 year

and its error counts by area: with w(lat) = cos(lat) / mean of cos,

    LWMSE = mean of w(lat) (u_hat - u)^2 over functions and points
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64, Int

from ..types import Array, DataArray, ExampleSet, Task, TransduceError
from .climate_data import Period
from .climate_fields import ClimateFields, Date, Degrees


def previous_week(
    fields: ClimateFields, date: Date, n: int = 15, lag: int = 7
) -> Int[np.ndarray, " n"]:
    """Where in `fields` the n steps are that ended `lag` steps before a date: P.W.

    Both count steps of the fields, be they days, months or years. A step that is missing is
    replaced by one further back, down to 2 n steps before the end of the window; never by one
    nearer to the date.

    >>> fields[previous_week(fields, "2009-03-08")].time[[0, -1]]      # 2009-02-15, 2009-03-01
    """
    if lag < 1:
        raise TransduceError(
            f"lag={lag}; expected 1 or more, for the window ends before the date. Give a week of "
            "days as 7."
        )
    end = int(fields.ticks(_date(date))) - lag * fields.step[0]
    return _nearest(fields, date, n, centre=end, last=end)


def previous_year(fields: ClimateFields, date: Date, n: int = 15) -> Int[np.ndarray, " n"]:
    """Where in `fields` the n steps are that are nearest to a date's own a year before, all of them
    before the date: P.Y.

    Of days, the n around the same date, 28 February standing in for the 29th; of months, the n
    around the same month; of years, the last n. A step that is missing is replaced by one further
    out, up to 2 n steps away from the same date.

    >>> fields[previous_year(fields, "2009-03-08")].time[[0, -1]]      # 2008-03-01, 2008-03-15
    """
    centre, own = (int(fields.ticks(day)) for day in (_year_before(_date(date)), _date(date)))
    return _nearest(fields, date, n, centre, last=own - 1)


def _nearest(
    fields: ClimateFields, date: Date, n: int, centre: int, last: int
) -> Int[np.ndarray, " n"]:
    """The n steps nearest to the centre of those up to the last, the earlier of two as near."""
    if n < 1:
        raise TransduceError(
            f"n={n}; expected at least 1. Give the number of steps that the window is to hold, "
            "like 15."
        )
    ticks, reach = fields.ticks(fields.time), 2 * n * fields.step[0]
    within = np.flatnonzero((ticks <= last) & (np.abs(ticks - centre) <= reach))
    if len(within) < n:
        span = f"{fields.said(centre - reach)} to {fields.said(min(last, centre + reach))}"
        raise TransduceError(
            f"{len(within)} steps from {span} are there to tell {date} from; expected n = {n}. "
            "The fields are from "
            f"{fields.said(fields.time[0])} to {fields.said(fields.time[-1])}: choose another "
            "date, or a smaller n."
        )
    order = np.argsort(np.abs(ticks[within] - centre), kind="stable")
    return np.sort(within[order[:n]])


def _date(date: Date) -> np.datetime64:
    try:
        return np.datetime64(date, "s")  # type: ignore[call-overload]
    except ValueError:
        raise TransduceError(
            f"{date!r} is not a date; expected one like '2009-03-08' or '2009-03-08T12'."
        ) from None


def _year_before(date: np.datetime64) -> np.datetime64:
    """The same month, day and hour a year before; 28 February for the 29th."""
    day, month = date.astype("datetime64[D]"), date.astype("datetime64[M]")
    first, next_first = ((month - back).astype("datetime64[D]") for back in (12, 11))
    return min(first + (day - month.astype("datetime64[D]")), next_first - 1) + (date - day)


@dataclass(frozen=True, eq=False)
class ClimateWindows:
    """Tasks from random windows of consecutive steps.

    v and u have shape (n, lat, lon), in the units of the fields.

    Args:
        fields: or the period that they are loaded from.
        window: number of steps; the paper has 20 days, of 15 examples and 5 queries.
        lag: steps from the last example to the first query, where n examples and m queries are
            consecutive, as in use; 0 to draw both anywhere in the window.

    >>> task = ClimateWindows(fields.select(slice("2010", "2014"))).sample_task(15, 5, generator)
    """

    fields: ClimateFields | Period
    window: int = 20
    lag: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.fields, ClimateFields):
            self._check()

    def _check(self) -> None:
        if self.window < 2 or self.lag < 0 or not self.starts.size:
            raise TransduceError(
                f"window={self.window}, lag={self.lag}, of {len(self._steps)} steps with "
                f"{len(self._steps.gaps())} gaps; expected 2 or "
                "more, a lag from 0, and so many consecutive steps somewhere. Make the window "
                "shorter."
            )

    @property
    def _steps(self) -> ClimateFields:
        return self.fields.fields if isinstance(self.fields, Period) else self.fields

    @cached_property
    def starts(self) -> Int[np.ndarray, " k"]:
        """The first steps of all windows without a gap."""
        run = np.cumsum(np.append(0, self._steps.missing > 0))
        last = len(run) - self.window
        return (
            np.flatnonzero(run[: last + 1] == run[self.window - 1 :]) if last >= 0 else np.arange(0)
        )

    @property
    def pairs(self) -> int:
        """How many a window has, less those of the lag."""
        return self.window - max(self.lag - 1, 0)

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        self._check()
        if n + m > self.pairs:
            raise TransduceError(
                f"{n} examples and {m} queries{f', {self.lag} steps apart,' if self.lag else ''} "
                f"were asked of a window of {self.window} "
                "steps; expected no more than those."
            )
        start = self.starts[int(torch.randint(len(self.starts), (), generator=generator))]
        if self.lag:
            last = np.arange(self.window - m, self.window)
            order = np.concatenate([last, last[0] - self.lag - np.arange(n)])
        else:
            order = torch.randperm(self.window, generator=generator)[: n + m].numpy()
        v, u = (torch.from_numpy(field[start + order]) for field in (self._steps.v, self._steps.u))
        return Task(ExampleSet(v[m:], u[m:]), ExampleSet(v[:m], u[:m]))


@dataclass(frozen=True, eq=False)
class ClimateHistory:
    """Tasks of all steps as if they had one operator: n of them are examples, and the m queries
    come in blocks of their own, for what happened the day before tells too much. asked: where
    queries are from, if not from the fields themselves.

    >>> ClimateHistory(Period("europe", "2000", "2004")).sample_task(900, 250, generator)
    """

    fields: Period
    asked: Period | None = None
    block: int = 25

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        known = self.fields.fields
        asked = known if self.asked is None else self.asked.fields
        blocks, free = -(-m // max(self.block, 1)), np.ones(len(known), dtype=bool)
        if (
            self.block < 1
            or len(asked) < self.block
            or len(known) < n + (self.asked is None) * blocks * self.block
        ):
            raise TransduceError(
                f"{n} examples and {m} queries in blocks of {self.block} were asked of "
                f"{len(known)} steps and {len(asked)} to ask of; "
                "expected no more than there are. Ask for fewer."
            )
        starts = torch.randint(len(asked) - self.block + 1, (blocks,), generator=generator)
        queries = (starts[:, None] + torch.arange(self.block)).flatten()[:m].numpy()
        if self.asked is None:
            free[queries] = False
        others = np.flatnonzero(free)
        examples = others[torch.randperm(len(others), generator=generator)[:n].numpy()]
        return Task(
            *(
                ExampleSet(*(torch.from_numpy(f[i]) for f in (of.v, of.u)))
                for of, i in ((known, examples), (asked, queries))
            )
        )


def latitude_weights(lat: Degrees) -> Float64[np.ndarray, " y"]:
    """cos(lat) over its mean: the area that a row of a grid stands for."""
    cosine = np.cos(np.deg2rad(np.asarray(lat, dtype=np.float64)))
    return cosine / cosine.mean()


def latitude_weighted_mse(u_hat: Array, u: Array, lat: Degrees) -> np.floating | torch.Tensor:
    """The mean of w(lat) (u_hat - u)^2 over functions of shape (n, lat, lon), or (n, channels, lat,
    lon).

    In the square of the units of u: 1 hPa^2 is 1e4 Pa^2.

    >>> latitude_weighted_mse(np.ones((1, 3, 4)), np.zeros((1, 3, 4)), [90, 0, -90])
    np.float64(1.0)
    """
    weights = latitude_weights(lat)
    if u_hat.shape != u.shape or u.shape[-2:-1] != weights.shape:
        raise TransduceError(
            f"u_hat has shape {tuple(u_hat.shape)}, u {tuple(u.shape)}, and there are "
            f"{len(weights)} latitudes; "
            "expected (n, lat, lon) of both."
        )
    u_hat, u = (f.values if isinstance(f, DataArray) else f for f in (u_hat, u))
    error = (u_hat - u) ** 2
    return (
        error
        * (torch.from_numpy(weights).to(error) if isinstance(error, torch.Tensor) else weights)[
            :, None
        ]
    ).mean()
