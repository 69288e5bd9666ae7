"""A differential equation behind pairs of states a step of time apart.

    u - v = int_t^{t + dt} sum_k c_k L_k(u) dt,      L_k in 1, u, u^2, u^3, u_x, u u_x, ..., u_xxxx

`library` lists the terms L_k, `derivatives` differentiates, `integral` averages over the step,
`moments` subtracts what noise adds, and `selection` chooses a few terms by leaving out blocks of
neighbouring pairs. Here: the user's units, intervals, and what is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from ..inputs import Grid, Pairs
from .derivatives import candidates_for, cut_off
from .equation_inputs import FEWEST_PAIRS, change_of, check_change, checked, readable
from .groups import parts_of
from .integral import Choice, Increments, best_choices
from .library import Product, library
from .selection import Subset, coefficients_of

BLOCKS = 10  # of neighbouring pairs, which are left out together
MOST_VALUES = 3_000_000  # of all terms at all points of all pairs
MOST_CHANGE = 0.5  # variation of u - v, in units of that of the states
MOST_LEFT = 0.1  # of the variation: an equation that leaves more explains too little


@dataclass(frozen=True)
class Equation:
    """The equation of one channel.

    Attributes:
        name: of the channel, "u" if there is one.
        terms: names of its terms, as in "u u_x".
        coefficients: of each, per unit of time, in the units of u and x.
        low, high: ends of their intervals.
        explained: the share of the variation of the increments about their mean, at pairs that
            are left out, noise aside.
        short: whether the equation explains enough to be believed.
        far: whether the states change too much over a step for any equation to be found.
    """

    name: str
    terms: tuple[str, ...]
    coefficients: Float[np.ndarray, " k"]
    low: Float[np.ndarray, " k"]
    high: Float[np.ndarray, " k"]
    explained: float
    short: bool
    far: bool = False

    def __str__(self) -> str:
        if self.far:
            return f"no equation: {self.name} changes too much over a step"
        if not self.short:
            return (
                f"no short equation explains the increments of {self.name}: the best of "
                f"{len(self.terms)} terms leaves {1 - self.explained:.2g} of their variation"
            )
        first, *rest = zip(self.terms, self.coefficients, strict=True)
        shown = [_product(first[1], first[0])]
        shown += [f"{'-' if c < 0 else '+'} {_product(abs(c), name)}" for name, c in rest]
        return f"{self.name}_t = {' '.join(shown)}"

    def table(self) -> list[str]:
        """A line for each term."""
        width = max(map(len, self.terms))
        each = zip(self.terms, self.coefficients, self.low, self.high, strict=True)
        return [
            f"  {name:{width}}  {c:.4g}  [{low:.4g}, {high:.4g}]" for name, c, low, high in each
        ]


@dataclass(frozen=True)
class Terms:
    """The equations behind pairs of states a step of time apart.

    Attributes:
        equations: one for each channel.
        level: of the intervals.
        notes: how x was read, and how noisy the data are.
    """

    equations: tuple[Equation, ...]
    level: float
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines: list[str] = []
        for each in self.equations:
            lines.append(str(each))
            if each.short:
                lines += [
                    *each.table(),
                    f"  explained {each.explained:.4g} of the variation of the increments",
                ]
        if any(each.short for each in self.equations):
            lines.append(f"intervals of {self.level:.0%}, by leaving out blocks of pairs")
        return "\n".join([*lines, *self.notes])


def _product(coefficient: float, name: str) -> str:
    number = f"{coefficient:#.3g}".removesuffix(".")
    return number if name == "1" else f"{number} {name}"


def terms_of(
    pairs: Pairs,
    dt: object = 1.0,
    most: object = 6,
    periodic: bool | None = None,
    level: object = 0.9,
) -> Terms:
    """The equations behind pairs.

    Args:
        pairs: states v, and states u a time dt later.
        dt: the step of time.
        most: terms of an equation.
        periodic: whether states are periodic in x; None to find out.
        level: of the intervals.
    """
    step, most, level = checked(dt, most, level)
    grid = readable(pairs)
    v, u = _thinned(pairs, len(library(pairs.v.array.shape[1])))
    check_change(v, u)
    size = np.sqrt(np.square(v).mean((0, 2), keepdims=True))
    change = change_of(v, u)
    several = _increments(v / size, u / size, grid, most, periodic, _blocks(pairs, len(v)))
    choices = _choices(several)
    units = Units(size.ravel(), grid.span, step)
    found = [
        _equation(
            choice, channel, several[0].terms, units, level, bool(change[channel] > MOST_CHANGE)
        )
        for channel, choice in enumerate(choices)
    ]
    return Terms(tuple(found), level, _notes(grid, several[0].noise, change))


def _increments(
    v: Float[np.ndarray, "n c p"],
    u: Float[np.ndarray, "n c p"],
    grid: Grid,
    most: int,
    periodic: bool | None,
    blocks: Sequence[np.ndarray],
) -> list[Increments]:
    """The pairs with each way to differentiate them."""
    ways, noise = candidates_for(np.concatenate([v, u]), grid.unit, periodic)
    terms = library(v.shape[1])
    return [Increments(v, u, way, noise, terms, blocks, most) for way in ways]


def _choices(several: Sequence[Increments]) -> list[Choice]:
    """The equation of each channel. Solvers that set high wavenumbers to zero do so with products
    too: if no equation explains the states, only the others are compared."""
    found = best_choices(several)
    first = several[0]
    window = first.derivatives.window
    states = first.derivatives.evenly(np.concatenate([first.v, first.u]))
    count = cut_off(states, window) if (window == 1).all() else None
    if count is None or all(map(_explains, found)):
        return found
    below = best_choices([replace(pairs, wavenumbers=count) for pairs in several])
    return below if all(map(_explains, below)) else found


def _explains(choice: Choice) -> bool:
    """Whether the chosen terms leave little of the increments."""
    return choice.left(choice.chosen) <= MOST_LEFT and bool(choice.chosen.terms)


@dataclass(frozen=True)
class Units:
    """What coefficients are multiplied by, to be in the user's units.

    Attributes:
        size: of each channel.
        span: of x.
        dt: the step of time.
    """

    size: Float[np.ndarray, " c"]
    span: float
    dt: float

    def of(self, term: Product, channel: int) -> float:
        """The unit of the coefficient of a term in the equation of a channel."""
        product = float(np.prod([self.size[each] for each, _ in term.factors]))
        return float(self.size[channel]) * self.span**term.order / product / self.dt


def _equation(
    choice: Choice, channel: int, terms: Sequence[Product], units: Units, level: float, far: bool
) -> Equation:
    """The chosen equation in the user's units, the term that explains most first."""
    explains = _explains(choice)
    short = explains and not far
    subset = choice.chosen if explains else min(choice.subsets[1:], key=lambda each: each.error)
    value, half = _interval(choice, subset, level)
    names = ["u"] if len(units.size) == 1 else [f"u{k}" for k in range(len(units.size))]
    chosen = [terms[j] for j in subset.terms]
    unit = np.array([units.of(term, channel) for term in chosen])
    return Equation(
        name=names[channel],
        terms=tuple(term.name(names) for term in chosen),
        coefficients=value * unit,
        low=(value - half) * unit,
        high=(value + half) * unit,
        explained=1 - min(max(choice.left(subset), 0.0), 1.0),
        short=short,
        far=far,
    )


def _interval(
    choice: Choice, subset: Subset, level: float
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Coefficients and half their intervals: the jackknife's, and what steps of time may add."""
    value, error = coefficients_of(choice.moments, subset.terms)
    wide = stdtrit(len(choice.moments) - 1, (1 + level) / 2)
    bound = choice.bound if subset is choice.chosen else 0.0
    return value, np.hypot(wide * error, bound)


def _blocks(pairs: Pairs, n: int) -> list[np.ndarray]:
    """Rows that are left out together: groups, or neighbours."""
    if pairs.groups is not None and pairs.groups.several:
        rows = _rows(len(pairs), n)
        parts = [np.flatnonzero(held[rows]) for held in parts_of(pairs.groups)]
        found = [part for part in parts if len(part)]
        if len(found) > 1:
            return found
    return np.array_split(np.arange(n), min(BLOCKS, n))


def _thinned(
    pairs: Pairs, terms: int
) -> tuple[Float[np.ndarray, "n c p"], Float[np.ndarray, "n c p"]]:
    """The states of at most so many pairs, evenly chosen, that all terms fit into memory."""
    v, u = pairs.v.array, pairs.u.array
    n = max(FEWEST_PAIRS, MOST_VALUES // (terms * v.shape[2]))
    rows = _rows(len(v), n)
    return v[rows], u[rows]


def _rows(n: int, most: int) -> np.ndarray:
    return np.linspace(0, n - 1, min(n, most)).round().astype(int)


def _notes(
    grid: Grid, noise: Float[np.ndarray, " c"], change: Float[np.ndarray, " c"]
) -> tuple[str, ...]:
    notes = []
    if change.max() > MOST_CHANGE:
        notes.append(
            f"u - v varies by {change.max():.2g} of the variation of the states; expected at most "
            f"{MOST_CHANGE}: give pairs a shorter step apart, if u are later states of v"
        )
    if not grid.given:
        notes.append("x was not given, and runs from 0 to 1")
    elif grid.x.dtype.kind not in "fi":
        notes.append("x counts in seconds")
    if noise.max() >= 1e-3:
        notes.append(f"noise in the states: about {noise.max():.1%} of their root mean square")
    return tuple(notes)
