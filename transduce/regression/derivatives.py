"""Derivatives of sampled functions in x, of order 0 to 4.

    periodic:       d^k u / dx^k = sum_m (2 pi i m)^k u_m exp(2 pi i m x),   m up to `modes`
    on an interval: the same of a least-squares spline of degree 7

Both leave out what is finer than `modes`, which is chosen where the spectrum of the data falls to
that of noise. x runs from 0 to 1, and derivatives are given at evenly spaced points.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from ..types import TransduceError
from .library import HIGHEST

DEGREE = 7  # of splines
KNOTS_PER_MODE = 3.0
MOST_KNOTS = 0.7  # of the number of points
RAMP, OMITTED = 0.18, 0.02  # of the interval at each end: weights ascend; weights are zero
DIFFERENCES = 8  # along x, which leave little but noise
SHARES = (0.5, 1.0, 1.5, 2.5)  # of the wavenumbers above noise, that are tried
TOP = 0.1  # of the wavenumbers, the highest
ABOVE_NOISE = 2.0  # power of a mode that is kept, in units of that of noise
STRIDES = (1, 2, 4, 8)  # of points, by which the ends are compared
EMPTY, SHARP = 1e-26, 1e6  # power of empty wavenumbers, of the largest; step down to these
FEWEST_HELD, FULL = 8, 0.9  # wavenumbers below the cut, and their share of all
ROUNDING = 1e-12  # least noise, in units of the states
JUMP = 3.0  # error of interpolation across the ends, in units of that inside
SAME_ENDS = 1e-6  # of the standard deviation


@runtime_checkable
class Derivatives(Protocol):
    """Derivatives of functions on one grid."""

    def __call__(self, f: Float[np.ndarray, "n c p"]) -> Float[np.ndarray, "orders n c q"]:
        """Of order 0 to 4, at evenly spaced points."""

    def again(self, f: Float[np.ndarray, "n c q"]) -> Float[np.ndarray, "orders n c q"]:
        """The same of functions at these points."""

    def evenly(self, f: Float[np.ndarray, "n c p"]) -> Float[np.ndarray, "n c q"]:
        """The functions at these points, with all their noise."""

    @property
    def window(self) -> Float[np.ndarray, " q"]:
        """Weights of the points: 1 inside, 0 at ends."""


@dataclass(frozen=True)
class Periodic:
    """By Fourier series.

    Attributes:
        points: of one period.
        modes: wavenumbers that are kept.
        length: the period.
    """

    points: int
    modes: int
    length: float

    def __call__(self, f: Float[np.ndarray, "n c p"]) -> Float[np.ndarray, "orders n c q"]:
        wave = np.arange(self.points // 2 + 1)
        kept = (wave <= self.modes) & (2 * wave < self.points)
        transformed = np.fft.rfft(f[..., : self.points]) * kept
        factor = 2j * np.pi * wave / self.length
        return np.stack(
            [np.fft.irfft(transformed * factor**k, self.points) for k in range(HIGHEST + 1)]
        )

    again = __call__

    def evenly(self, f: Float[np.ndarray, "n c p"]) -> Float[np.ndarray, "n c q"]:
        return f[..., : self.points]

    @property
    def window(self) -> Float[np.ndarray, " q"]:
        return np.ones(self.points)


@dataclass(frozen=True)
class Interval:
    """By splines.

    Attributes:
        x: positions, ascending from 0 to 1.
        modes: half waves that are kept.
    """

    x: Float[np.ndarray, " p"]
    modes: int

    def __call__(self, f: Float[np.ndarray, "n c p"]) -> Float[np.ndarray, "orders n c q"]:
        return self._fitted(self.x, f)

    def again(self, f: Float[np.ndarray, "n c q"]) -> Float[np.ndarray, "orders n c q"]:
        return self._fitted(np.linspace(0, 1, len(self.x)), f)

    def evenly(self, f: Float[np.ndarray, "n c p"]) -> Float[np.ndarray, "n c q"]:
        from scipy.interpolate import make_interp_spline

        at = np.linspace(0, 1, len(self.x))
        if np.allclose(at, self.x):
            return f
        return np.moveaxis(make_interp_spline(self.x, np.moveaxis(f, 2, 0))(at), 0, 2)

    def _fitted(
        self, x: Float[np.ndarray, " p"], f: Float[np.ndarray, "n c p"]
    ) -> Float[np.ndarray, "orders n c q"]:
        """Derivatives at evenly spaced points of the spline through values at x."""
        from scipy.interpolate import make_lsq_spline

        flat = f.reshape(-1, len(x)).T
        spline, at = make_lsq_spline(x, flat, self._knots(x), DEGREE), np.linspace(0, 1, len(x))
        return np.stack([spline(at, nu=k).T.reshape(f.shape) for k in range(HIGHEST + 1)])

    def _knots(self, x: Float[np.ndarray, " p"]) -> Float[np.ndarray, " knots"]:
        """Knots as dense as the points x."""
        points = len(x)
        most = max(DEGREE + 1, int(MOST_KNOTS * points))
        count = min(max(round(KNOTS_PER_MODE * self.modes), DEGREE + 3), most)
        share = np.linspace(0, 1, count - DEGREE + 1)[1:-1]
        inner = np.interp(share, np.linspace(0, 1, points), x)
        return np.concatenate([np.zeros(DEGREE + 1), inner, np.ones(DEGREE + 1)])

    @property
    def window(self) -> Float[np.ndarray, " q"]:
        return tapered(len(self.x))


def tapered(points: int) -> Float[np.ndarray, " q"]:
    """A smooth window, 1 inside and 0 near both ends."""
    at = np.linspace(0, 1, points)
    s = np.clip((np.minimum(at, 1 - at) - OMITTED) / (RAMP - OMITTED), 0, 1)
    rise, fall = (np.exp(-1 / np.maximum(part, 1e-3)) for part in (s, 1 - s))
    return rise / (rise + fall) * (s > 0)


def candidates_for(
    f: Float[np.ndarray, "n c p"], unit: Float[np.ndarray, " p"], periodic: bool | None
) -> tuple[list[Derivatives], Float[np.ndarray, " c"]]:
    """Ways to differentiate these functions, which keep more and more of what is near the noise,
    and the standard deviation of this noise.

    Args:
        f: the functions.
        unit: their positions, from 0 to 1.
        periodic: whether they are; None to find out.
    """
    period = period_of(f, unit, periodic)
    window = tapered(len(unit)) if period is None else np.ones(period)
    noise = noise_of(f[..., :period], window)
    most = len(window) // 2
    modes = resolved(f[..., :period], window, noise)
    kept = sorted({min(round(share * modes), most) for share in SHARES})
    if period is None:
        return [Interval(unit, count) for count in kept], noise
    length = period * float(unit[1])
    return [Periodic(period, count, length) for count in kept], noise


def noise_of(
    f: Float[np.ndarray, "n c p"], window: Float[np.ndarray, " p"]
) -> Float[np.ndarray, " c"]:
    """Standard deviation of white noise in each channel: that of high differences along x at half
    of all points, or that of the highest wavenumbers, whichever is smaller."""
    differences = np.square(np.diff(f, DIFFERENCES)).mean(0)
    local = np.median(differences, -1) / comb(2 * DIFFERENCES, DIFFERENCES)
    power = _power(f, window)
    top = max(1, round(TOP * power.shape[1]))
    return np.sqrt(np.maximum(np.minimum(local, power[:, -top - 1 : -1].mean(1)), ROUNDING**2))


def resolved(
    f: Float[np.ndarray, "n c p"],
    window: Float[np.ndarray, " p"],
    noise: Float[np.ndarray, " c"],
) -> int:
    """The number of wavenumbers that rise above the noise."""
    seen = (_power(f, window) > ABOVE_NOISE * np.square(noise)[:, None]).any(0)
    seen = seen | np.roll(seen, -1) | np.roll(seen, -2)  # alone or with a gap of one
    return len(seen) - 1 if seen.all() else max(2, int(np.argmin(seen)) - 1)


def cut_off(f: Float[np.ndarray, "n c p"], window: Float[np.ndarray, " p"]) -> int | None:
    """The number of wavenumbers that periodic functions hold, if a solver has set all higher ones
    to zero; None if they fade.

    Args:
        f: the functions.
        window: weights of their points.
    """
    power = _power(f, window).max(0)
    held = np.flatnonzero(power > EMPTY * power.max())
    count = int(held[-1]) + 1 if len(held) else 0
    if not FEWEST_HELD <= count < FULL * len(power):
        return None
    return count if power[count - 1] > SHARP * power[count:].max() else None


def _power(
    f: Float[np.ndarray, "n c p"], window: Float[np.ndarray, " p"]
) -> Float[np.ndarray, "c modes"]:
    """Mean power of each wavenumber, in units in which that of white noise is its variance."""
    power = np.square(np.abs(np.fft.rfft(f * window))).mean(0)
    return np.maximum(power / np.square(window).sum(), 1e-300)


def period_of(
    f: Float[np.ndarray, "n c p"], unit: Float[np.ndarray, " p"], periodic: bool | None
) -> int | None:
    """The number of points of one period: all, or all but a last one that repeats the first; None
    for functions on an interval."""
    points = len(unit)
    even = np.allclose(np.diff(unit), unit[1])
    if periodic and not even:
        raise TransduceError(
            "periodic=True with uneven steps of x; expected even ones, as derivatives of periodic "
            "states are Fourier series. Interpolate the states, or give periodic=False."
        )
    if periodic is not None:
        same = np.abs(f[..., 0] - f[..., -1]).max() <= SAME_ENDS * f.std()
        return points - bool(same) if periodic else None
    if not even:
        return None
    return next((p for p in (points, points - 1) if _joins(f[..., :p])), None)


def _joins(f: Float[np.ndarray, "n c p"]) -> bool:
    """Whether interpolation across the ends is as good as inside, by points at several strides."""
    return all(
        error[0] <= JUMP * np.quantile(error, 0.9) + 1e-12 * np.abs(f).max()
        for stride in STRIDES
        if 8 * stride < f.shape[-1]
        for error in _interpolation_errors(f, stride)
    )


def _interpolation_errors(f: Float[np.ndarray, "n c p"], stride: int) -> Float[np.ndarray, "c p"]:
    """Root mean square error at each point of the polynomial through six neighbours."""
    weights = {1: 0.75, 2: -0.3, 3: 0.05}
    answer = sum(
        w * (np.roll(f, k * stride, -1) + np.roll(f, -k * stride, -1)) for k, w in weights.items()
    )
    return np.sqrt(np.square(answer - f).mean(0))
