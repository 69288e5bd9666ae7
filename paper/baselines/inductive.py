"""Climate baselines without a context: fitted once to all training days, then queried for any
day.

    climatology       u_hat(t) = mean of u over training days within `window` days of the year of t
    nearest days      u_hat(v) = mean of u over the k days whose v is nearest
    ridge             u_hat(v) = mean + A a,  a = (v - mean) / deviation,
                      A minimises |u - u_hat|^2 + alpha |A|^2
    kernel ridge      u_hat(v) = mean + sum_i K(a_i, a) c_i,  c = (K + alpha I)^-1 (u - mean),
                      K(a, a') = matern or rbf (|a - a'| / width) + linear <a, a'>

<a, a'> is the mean over the points of a grid. The mean of an anomaly over the domain predicts u
less well than its pattern. So the kernel compares

    a <- a - mean of a + level mean of a,

together with the differences between neighbouring points, times `slopes`, in a unit of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from jaxtyping import Float, Float32, Int
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from transduce.baselines.classical import expect_grid
from transduce.families import ClimateFields
from transduce.types import TransduceError

Answering = Callable[[ClimateFields], Any]
R = TypeVar("R", bound="Inductive")
VIT = {
    "patch": 3,
    "width": 64,
    "depth": 3,
    "dropout": 0.1,
    "weight_decay": 0.05,
    "lr": 3e-3,
    "steps": 4000,
}
# The best settings in Europe on held-out years: validation/climate_rivals.py.
CHOSEN: dict[str, dict[str, Any]] = {
    "climatology": {"window": 45},
    "nearest-day": {"neighbours": 30},
    "ridge": {"alpha": 3e-4},
    "kernel-ridge": {
        "kernel": "matern",
        "level": 0.4,
        "width": 2.3,
        "alpha": 0.08,
        "linear": 0.1,
        "slopes": 1.4,
    },
    "vit": VIT,
    "vit-without-positions": {
        "patch": 11,
        "width": 128,
        "depth": 3,
        "dropout": 0.1,
        "weight_decay": 0.05,
        "lr": 1e-3,
        "steps": 4000,
    },
    "vit-positions-removed": VIT,  # not chosen: what positions are worth to the one that has them
    "fno": {
        "modes": 6,
        "width": 24,
        "layers": 4,
        "padding": 0.0,
        "dropout": 0.0,
        "weight_decay": 1.0,
        "lr": 3e-3,
        "steps": 2000,
    },
}
PERIODS = {"Y": 1, "M": 12}  # steps of a year; days have 365


class Inductive(ABC):
    """Fitted once, it predicts u of any days from their v, or from their dates.

    >>> fitted = RidgeDays(alpha=1e-3).fit(fields.select(slice("2000", "2004")))
    >>> fitted.answers(fields.select("2005")).shape
    (365, 11, 13)
    """

    _answering: Answering | None = None
    _grid: tuple[int, ...] = ()

    def fit(self: R, fields: ClimateFields) -> R:
        self._answering, self._grid = self._fitted(fields), fields.v.shape[1:]
        return self

    def answers(self, fields: ClimateFields) -> Float32[np.ndarray, "n y x"]:
        """u_hat at the times of the fields, in the units of u; of their own u nothing is read."""
        if self._answering is None:
            raise TransduceError(
                f"{self} was asked before it was fitted; expected .fit(fields) first, the fields "
                "those of training."
            )
        expect_grid(fields.v, self._grid)
        return np.asarray(self._answering(fields), np.float32).reshape(fields.v.shape)

    @abstractmethod
    def _fitted(self, fields: ClimateFields) -> Answering:
        """What answers, fitted to these fields."""


@dataclass
class Climatology(Inductive):
    """The mean of the season: of days, over those up to `window` days of the year away; of months
    likewise; of years, over all.

    What a step is, the fields of training say. 29 February counts as the 28th.
    """

    window: int = 10

    def _fitted(self, fields: ClimateFields) -> Answering:
        unit = fields.step[1]
        place, period = _places(fields, unit), PERIODS.get(unit, 365)
        apart = np.abs(np.arange(period)[:, None] - place)
        near = np.minimum(apart, period - apart) <= self.window  # (places, days)
        counts = near.sum(1)
        means = (
            np.einsum("pn,nyx->pyx", near, fields.u, dtype=np.float64)
            / np.maximum(counts, 1)[:, None, None]
        )

        def answering(asked: ClimateFields) -> Any:
            places = _places(asked, unit)
            if not counts[places].all():
                when = asked.said(asked.time[counts[places].argmin()])
                raise TransduceError(
                    f"no time of training is within window={self.window} of {when} in its year; "
                    "expected one or more. Widen the window."
                )
            return means[places]

        return answering


def _places(fields: ClimateFields, unit: str) -> Int[np.ndarray, " n"]:
    """Which step of a year of 365 days each time is."""
    month = fields.time.astype("datetime64[M]")
    if unit in PERIODS:
        return month.astype(np.int64) % PERIODS[unit]
    first = (
        np.arange("2001-01", "2002-02", dtype="datetime64[M]")
        .astype("datetime64[D]")
        .astype(np.int64)
    )
    of_year, of_month = (
        month.astype(np.int64) % 12,
        (fields.time.astype("datetime64[D]") - month.astype("datetime64[D]")).astype(np.int64),
    )
    return np.minimum(first[of_year] + of_month, first[of_year + 1] - 1) - first[0]


@dataclass
class NearestDay(Inductive):
    """The mean of u over the days of training whose v is nearest, point by point."""

    neighbours: int = 1

    def _fitted(self, fields: ClimateFields) -> Answering:
        found = KNeighborsRegressor(self.neighbours).fit(_rows(fields.v), _rows(fields.u))
        return lambda asked: found.predict(_rows(asked.v))


@dataclass
class RidgeDays(Inductive):
    """Ridge regression from the points of v to those of u."""

    alpha: float = 1e-3

    def _fitted(self, fields: ClimateFields) -> Answering:
        anomaly = Anomaly.of(fields.v, per_point=False)
        found = Ridge(self.alpha).fit(anomaly(fields.v), _rows(fields.u))
        return lambda asked: found.predict(anomaly(asked.v))


@dataclass
class KernelRidgeDays(Inductive):
    """Kernel ridge regression.

    Args:
        width: of the kernel; 1 is the distance of two days that differ by one deviation at every
            point.
        linear: weight of <a, a'>, which is added to the kernel.
        level: weight of the domain's mean; 1 leaves v unchanged.
        per_point: whether deviations of v are measured at each point; if not, over all points.
        slopes: weight of the differences between neighbouring points.
    """

    kernel: Literal["matern", "rbf"] = "matern"
    width: float = 1.8
    alpha: float = 0.01
    linear: float = 1.0
    level: float = 0.2
    per_point: bool = False
    slopes: float = 0.0

    def _fitted(self, fields: ClimateFields) -> Answering:
        anomaly = Anomaly.of(fields.v, self.per_point, self.level, self.slopes)
        a, mean = anomaly(fields.v), _rows(fields.u).mean(0)
        found = KernelRidge(alpha=self.alpha, kernel="precomputed").fit(
            self._kernel(a, a), _rows(fields.u) - mean
        )
        return lambda asked: mean + found.predict(self._kernel(anomaly(asked.v), a))

    def _kernel(
        self, a: Float[np.ndarray, "m d"], other: Float[np.ndarray, "n d"]
    ) -> Float[np.ndarray, "m n"]:
        smooth = Matern(self.width, nu=2.5) if self.kernel == "matern" else RBF(self.width)
        return smooth(a, other) + self.linear * a @ other.T


@dataclass(frozen=True)
class Anomaly:
    """v less its mean over deviation, divided by the root of the number of points, so that a sum of
    squares is their mean; and slopes."""

    mean: Float[np.ndarray, "y x"]
    deviation: Float[np.ndarray, "y x"]
    level: float = 1.0
    slopes: float = 0.0
    steepness: float = 1.0  # the root of the mean square of slopes

    @classmethod
    def of(
        cls,
        v: Float32[np.ndarray, "n y x"],
        per_point: bool,
        level: float = 1.0,
        slopes: float = 0.0,
    ) -> Anomaly:
        mean, variance = v.mean(0, dtype=np.float64), v.var(0, dtype=np.float64)
        deviation = np.sqrt(
            variance if per_point else np.full_like(variance, variance.mean())
        ).clip(min=1e-12)
        steepness = (
            np.sqrt(np.square(_differences((v - mean) / deviation)).mean()) if slopes else 1.0
        )
        return cls(mean, deviation, level, slopes, max(float(steepness), 1e-12))

    def __call__(self, v: Float32[np.ndarray, "n y x"]) -> Float[np.ndarray, "n d"]:
        a = (v - self.mean) / self.deviation
        pattern = (a + (self.level - 1) * a.mean((1, 2), keepdims=True)).reshape(
            len(a), -1
        ) / np.sqrt(self.mean.size)
        if not self.slopes:
            return pattern
        differences = _differences(a)
        return np.concatenate(
            [pattern, self.slopes / self.steepness / np.sqrt(differences.shape[1]) * differences], 1
        )


def _differences(a: Float[np.ndarray, "n y x"]) -> Float[np.ndarray, "n s"]:
    """Between neighbours, eastward and southward."""
    return np.concatenate([np.diff(a, axis=axis).reshape(len(a), -1) for axis in (2, 1)], 1)


def _rows(f: Float32[np.ndarray, "n y x"]) -> Float[np.ndarray, "n d"]:
    return f.reshape(len(f), -1).astype(np.float64)
