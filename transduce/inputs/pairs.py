"""Examples of an operator, read from what the user passes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .categories import Levels, encoded, is_design, levels_of
from .covariates import Groups, names_of, read_groups, read_parameters
from .functions import Functions, arrange, as_numbers, check_x_fits, read_layout
from .layouts import FEW, Channels, check_channels, has_channels
from .messages import problem
from .notes import notes_of
from .positions import read_positions
from .rows import check_counts, check_row_labels, complete_rows
from .sources import Source, read_source


@dataclass(frozen=True, eq=False)
class Pairs:
    """n pairs of functions (v_i, u_i).

    Args:
        v: inputs.
        u: outputs.
        parameters: float64, shape (n, p), or None.
        groups: pairs of one group belong together; or None.
        rows: for each pair, its row in the arrays that the user gave.
        notes: sentences about the examples, for the report.
        channels: the option with which they were read.
        units: what v and u are divided by before a model of a family sees them.
        parameter_names: names of the columns of parameters, if they came in a DataFrame.
        levels: categories of the columns of the parameters, or of v if it is a table of these.
    """

    v: Functions
    u: Functions
    parameters: np.ndarray | None
    groups: Groups | None
    rows: np.ndarray
    notes: tuple[str, ...] = ()
    channels: Channels = None
    units: tuple[float, float] = (1.0, 1.0)
    parameter_names: tuple[str, ...] = ()
    levels: Levels = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.v)

    def take(self, rows: np.ndarray) -> Pairs:
        """The pairs of these rows."""
        return replace(
            self,
            v=self.v.take(rows),
            u=self.u.take(rows),
            parameters=None if self.parameters is None else self.parameters[rows],
            groups=None if self.groups is None else self.groups.take(rows),
            rows=self.rows[rows],
        )

    def in_own_units(self) -> Pairs:
        """The same, with the root mean squares of v and u as their units."""
        largest = [float(np.abs(f.array).max()) or 1.0 for f in (self.v, self.u)]
        functions = zip((self.v, self.u), largest, strict=True)
        v, u = (m * float(np.sqrt(np.square(f.array / m).mean())) or 1.0 for f, m in functions)
        return replace(self, units=(v, u))


def read_pairs(
    v: object,
    u: object,
    *,
    x: object = None,
    x_v: object = None,
    x_u: object = None,
    channels: object = None,
    parameters: object = None,
    groups: object = None,
    missing: str = "raise",
) -> Pairs:
    """The examples as float64 arrays with grids.

    Args:
        v: inputs: numpy array, nested lists, tensor, DataFrame, Series or DataArray, with one row
            for each function. `transduce.inputs.layouts` says which shapes are read how. None if
            the parameters are the inputs.
        u: outputs, u[i] being the image of v[i].
        x: positions of the points of v and u: numbers or dates, ascending or descending. If only
            one of them has that many points, and the other is made of numbers or fields, x belongs
            to the former. None for column labels or coordinates that are positions, or else a
            uniform grid.
        x_v: positions of the points of v, in place of x.
        x_u: positions of the points of u, in place of x.
        channels: True, False or the number of channels, if shapes alone would be misread.
        parameters: numbers that come with each pair, shape (n,) or (n, p).
        groups: a label for each pair; pairs that are alike, such as one time series, share it.
        missing: "raise", or "drop" to leave out pairs with NaN, infinite or masked values.
    """
    _check_missing(missing)
    v, parameters = _inputs(v, parameters, x_v)
    levels = levels_of(parameters, "parameters")
    parameters = encoded(parameters, levels, "parameters")
    table = v is None
    if table:
        v, parameters = parameters, None
    sources = read_source(v, "v"), read_source(u, "u")
    check_counts(*sources)
    check_row_labels(*sources)
    n = len(sources[0].values)
    option = check_channels(channels, {source.name: source.shape[1:] for source in sources})
    positions = _positions(sources, option, x, {"v": x_v, "u": x_u})
    layouts = [read_layout(source, option, *positions[source.name]) for source in sources]
    if table:
        layouts[0] = as_numbers(sources[0])
    one, other = (arrange(*both) for both in zip(sources, layouts, strict=True))
    pairs = Pairs(one, other, read_parameters(parameters, n), read_groups(groups, n), np.arange(n))
    pairs = replace(pairs, parameter_names=names_of(parameters), levels=levels, channels=option)
    return _complete(pairs, missing, sources)


def _check_missing(missing: str) -> None:
    if missing not in ("raise", "drop"):
        raise problem(
            f"missing is {missing!r}",
            "'raise' or 'drop'",
            "Give missing='drop' to leave out pairs with missing values.",
        )


def _inputs(v: object, parameters: object, x_v: object) -> tuple[object, object]:
    """v and parameters. A table of numbers and categories is one of parameters."""
    if v is not None and parameters is None and x_v is None and is_design(v, FEW):
        return None, v
    if v is None and parameters is None:
        raise problem(
            "v is None, and so are the parameters",
            "inputs for each output",
            "Give v, or parameters= if the inputs are a few numbers.",
        )
    if v is None and x_v is not None:
        raise problem(
            "x_v is given, and v is None",
            "positions for functions v alone",
            "Leave out x_v: parameters have no positions.",
        )
    return v, parameters


def _complete(pairs: Pairs, missing: str, sources: tuple[Source, Source]) -> Pairs:
    """The pairs without missing values, with notes."""
    notes: list[str] = []
    arrays = {"v": pairs.v.array, "u": pairs.u.array}
    if pairs.parameters is not None:
        arrays["parameters"] = pairs.parameters
    kept = pairs.take(complete_rows(arrays, missing, notes))
    notes += notes_of(kept.v, kept.u, kept.parameters, kept.groups, sources)
    return replace(kept, notes=tuple(notes))


def _positions(
    sources: tuple[Source, Source], channels: Channels, x: object, own: dict[str, object]
) -> dict[str, tuple[np.ndarray | None, str]]:
    """For v and u, the positions that the user gave or None, and the argument that gave them."""
    if x is not None:
        given = [f"x_{name}" for name, positions in own.items() if positions is not None]
        if given:
            raise problem(
                f"x and {' and '.join(given)} are both given",
                "x for common positions of v and u, or x_v and x_u",
                f"Leave out x, or {' and '.join(given)}.",
            )
        return _shared(sources, channels, read_positions(x, "x"))
    found: dict[str, tuple[np.ndarray | None, str]] = {}
    for source, other in (sources, sources[::-1]):
        name = f"x_{source.name}"
        if own[source.name] is None:
            found[source.name] = None, name
            continue
        positions = read_positions(own[source.name], name)
        _check_length(positions, name, source, other)
        check_x_fits(source, channels, positions, name)
        found[source.name] = positions, name
    return found


def _shared(
    sources: tuple[Source, Source], channels: Channels, x: np.ndarray
) -> dict[str, tuple[np.ndarray | None, str]]:
    """x for each of v and u that it fits; at least one."""
    fits = {source.name: _fits(source, channels, x) for source in sources}
    if not any(fits.values()):
        for source in sources:
            if source.shape[-1] == len(x):
                check_x_fits(source, channels, x, "x")
        _check_length(x, "x", *sorted(sources, key=_points, reverse=True))
    for source, other in (sources, sources[::-1]):
        if not fits[source.name] and _needs_grid(source, channels):
            points = source.shape[-1]
            raise problem(
                f"x holds {len(x)} positions, and {source.name} {points} points",
                "as many positions as points",
                f"Give x_{other.name} for {other.name}, and x_{source.name} with {points} "
                f"positions for {source.name}.",
            )
    return {name: (x if fit else None, "x") for name, fit in fits.items()}


def _fits(source: Source, channels: Channels, x: np.ndarray) -> bool:
    return _one_variable(source, channels) and source.shape[-1] == len(x) and len(x) > 1


def _needs_grid(source: Source, channels: Channels) -> bool:
    """Whether functions have so many points that x should have been theirs too."""
    return _one_variable(source, channels) and source.shape[-1] >= FEW


def _one_variable(source: Source, channels: Channels) -> bool:
    shape = source.shape[1:]
    return len(shape) == 1 or (len(shape) == 2 and has_channels(shape, channels))


def _points(source: Source) -> int:
    return source.shape[-1] if len(source.shape) > 1 else 1


def _check_length(x: np.ndarray, name: str, source: Source, other: Source) -> None:
    """Raise unless x has a position for each point of the source, and at least two."""
    points = _points(source)
    if len(x) == points and points > 1:
        return
    remedy = f"Give one position for each of the {points} points."
    if points == 1:
        remedy = f"Leave out {name}: one value a row is read as a plain number."
        if len(source.shape) == 1 and len(x) == len(source.values) > 1:
            remedy = f"For a single function, give {source.one} and {other.one}."
    elif len(x) == _points(other) and name != "x":
        remedy = f"These seem to be positions of {other.name}: give them as x_{other.name}."
    elif len(source.shape) == 2 and len(x) == len(source.values):
        remedy = f"Rows must be functions: give {source.transposed} and {other.transposed}."
    raise problem(
        f"{name} holds {len(x)} position{'s' * (len(x) > 1)}, and {source.name} has shape "
        f"{source.shape}",
        f"as many positions as points, {points}" if points > 1 else "no positions",
        remedy,
    )
