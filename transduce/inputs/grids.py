"""A grid of one variable: x -> (x - origin) / span, which lies in [0, 1] and ascends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .messages import caution, problem
from .positions import NOUNS, after, elapsed, read_positions

FAR = 0.1  # of the interval: positions further outside give a warning
SAME = 1e-3  # of a step: positions nearer than that are the same
MANY, COARSE = 16, 8  # points whose rounding is recognised, if a step has so many of its units
DIGITS = 7  # of a step, that rounded positions have at most


@dataclass(frozen=True, eq=False)
class Grid:
    """Positions of n >= 2 points, and the affine map that takes the examples' interval to [0, 1].

    Args:
        x: positions in the user's units and order; strictly ascending or descending.
        unit: the same positions after the map, ascending. A grid of queries may leave [0, 1].
        flipped: whether x descends, so that values have to be reversed along the last axis.
        origin: the position that is mapped to 0.
        span: the length of the interval that is mapped to [0, 1]; in seconds for dates.
        given: whether the user gave x; False for the default, `points` steps from 0 to 1.

    >>> Grid.of([30.0, 20.0, 0.0]).unit
    array([0.        , 0.66666667, 1.        ])
    """

    x: np.ndarray
    unit: np.ndarray
    flipped: bool
    origin: object
    span: float
    given: bool = True

    @classmethod
    def of(cls, x: object, name: str = "x", remedy: str = "") -> Grid:
        """The grid with these positions, whose ends are mapped to 0 and 1.

        Args:
            x: positions: numbers, dates or durations.
            name: the argument's name, for messages.
            remedy: what to do if x does not ascend or descend; "" for the usual.
        """
        positions = read_positions(x, name)
        if len(positions) < 2:
            raise problem(
                f"{name} holds a single position",
                "at least 2",
                f"Leave out {name}: one value a row is read as a plain number.",
            )
        flipped = check_monotone(positions, name, remedy)
        origin = positions[-1 if flipped else 0]
        gaps = elapsed(positions[::-1] if flipped else positions, origin)
        if not np.isfinite(gaps).all():
            raise problem(
                f"{name} runs from {positions[0]} to {positions[-1]}",
                "an interval whose length float64 can hold",
                f"Give {name} in larger units.",
            )
        unit = snapped(gaps / gaps[-1], rounding_of(gaps) / float(gaps[-1]))
        return cls(positions, unit, flipped, origin, float(gaps[-1]))

    @classmethod
    def default(cls, points: int) -> Grid:
        """The uniform grid from 0 to 1, both ends included."""
        unit = np.linspace(0.0, 1.0, points)
        return cls(unit, unit, False, 0.0, 1.0, given=False)

    def __len__(self) -> int:
        return len(self.unit)

    @property
    def rounding(self) -> float:
        """The unit of the last decimal of x, after the map; 0 if x is not rounded."""
        gaps = elapsed(self.x[::-1] if self.flipped else self.x, self.origin)
        return rounding_of(gaps - gaps[0]) / self.span

    @property
    def uniform(self) -> bool:
        """Whether all steps are equal, up to a thousandth of one."""
        even = np.linspace(self.unit[0], self.unit[-1], len(self))
        return bool(np.abs(self.unit - even).max() <= SAME * (even[1] - even[0]))

    def to_unit(self, x: object, name: str = "x") -> np.ndarray:
        """Other positions after the map, in their order. Warns about those far outside [0, 1].

        Args:
            x: positions in the user's units.
            name: the argument's name, for messages.
        """
        positions = read_positions(x, name)
        unit = self._mapped(positions, name)
        if unit.min() < -FAR or unit.max() > 1 + FAR:
            low, high = self.x[:: -1 if self.flipped else 1][[0, -1]]
            caution(
                f"{name} runs from {positions[unit.argmin()]} to {positions[unit.argmax()]}, far "
                f"outside the interval of the examples, {low} to {high}"
                + ("" if self.given else " (the default, since they came without x)")
                + ". Answers there are extrapolated; check the units of x."
            )
        return unit

    def _mapped(self, positions: np.ndarray, name: str) -> np.ndarray:
        """Positions after the map. Raises if they are of another kind."""
        kind, own = NOUNS[positions.dtype.kind], NOUNS[self.x.dtype.kind]
        if kind != own:
            raise problem(
                f"{name} holds {kind}",
                f"{own}, as in the examples",
                "Give all positions in the units of the examples.",
            )
        return elapsed(positions, self.origin) / self.span

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        """The inverse of `to_unit`."""
        return after(self.origin, self.span * unit)

    def at(self, x: object, name: str = "x", remedy: str = "") -> Grid:
        """The grid of other positions, with this grid's map to [0, 1].

        Args:
            x: positions in the user's units; two or more.
            name: the argument's name, for messages.
            remedy: what to do if x does not ascend or descend; "" for the usual.
        """
        positions = read_positions(x, name)
        flipped = check_monotone(positions, name, remedy)
        unit = self._mapped(positions, name)
        if unit.min() > 1 or unit.max() < 0:
            raise problem(
                f"{name} of the queries runs from {positions[0]} to {positions[-1]}, and that of "
                f"the examples from {self.x[0]} to {self.x[-1]}",
                "positions in the interval of the examples",
                "Give them in the units of the examples.",
            )
        unit = self.to_unit(x, name)
        unit = unit[::-1].copy() if flipped else unit
        rounding = rounding_of((unit - unit[0]) * self.span) / self.span
        if same(unit, self.unit, max(rounding, self.rounding)):
            unit = self.unit
        return Grid(positions, snapped(unit, rounding), flipped, self.origin, self.span)

    def resampled(self, points: int) -> Grid:
        """The uniform grid over the same interval, in the same direction."""
        unit = np.linspace(0.0, 1.0, points)
        x = self.from_unit(unit[::-1] if self.flipped else unit)
        return Grid(x, unit, self.flipped, self.origin, self.span, self.given)

    def same_as(self, other: Grid) -> bool:
        """Whether both grids have the same positions in [0, 1]."""
        return same(self.unit, other.unit)


def same(a: np.ndarray, b: np.ndarray, rounding: float = 0.0) -> bool:
    """Whether two sets of ascending positions are equal, up to a thousandth of the least step or
    their rounding."""
    if len(a) != len(b):
        return False
    step = np.diff(b).min() if len(b) > 1 else 1.0
    return bool(np.abs(a - b).max() <= max(SAME * step, 1.01 * rounding))


def snapped(unit: np.ndarray, rounding: float = 0.0) -> np.ndarray:
    """Equal steps without rounding errors, if the steps are equal up to a thousandth of one, or up
    to the rounding of decimals. So the same grid in other units, or in float32, gives the same
    bits."""
    even = np.linspace(unit[0], unit[-1], len(unit))
    return even if same(unit, even, rounding) else unit


def rounding_of(gaps: np.ndarray) -> float:
    """The unit of the last decimal of positions, as in a file that holds 0.016, 0.031, 0.047. 0 for
    few points, and where that unit is a large part of a step.

    Args:
        gaps: positions, less the first one.
    """
    step = float(np.abs(gaps[-1] - gaps[0])) / max(1, len(gaps) - 1)
    if len(gaps) < MANY or not step > 0:
        return 0.0
    first = math.floor(math.log10(step)) + 1
    for power in range(first, first - DIGITS, -1):
        counts = gaps / 10.0**power
        if np.abs(counts - counts.round()).max() < 1e-2:
            return 10.0**power if COARSE * 10.0**power <= step else 0.0
    return 0.0


def check_monotone(x: np.ndarray, name: str, remedy: str = "") -> bool:
    """Whether x descends. Raises unless it strictly ascends or strictly descends.

    Args:
        x: positions.
        name: their name, for messages.
        remedy: what to do otherwise; "" for the usual.
    """
    if len(x) < 2:
        return False
    with np.errstate(invalid="ignore"):  # infinite lengths are reported by Grid.of
        steps = np.diff(elapsed(x, x[0]))
    flipped = bool(np.sum(steps < 0) > np.sum(steps > 0))
    wrong = steps >= 0 if flipped else steps <= 0
    if not wrong.any():
        return flipped
    i = int(np.flatnonzero(wrong)[0])
    remedy = remedy or (
        f"Sort: order = np.unique({name}, return_index=True)[1]; give {name}[order] and "
        "[..., order] of the functions."
    )
    if steps[i] == 0:
        raise problem(f"{name} repeats {x[i]}, at {i} and {i + 1}", "distinct positions", remedy)
    raise problem(
        f"{name}[{i + 1}] = {x[i + 1]} follows {name}[{i}] = {x[i]}",
        f"positions that {'descend' if flipped else 'ascend'} throughout",
        remedy,
    )
