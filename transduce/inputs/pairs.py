"""Examples of an operator, read from what the user passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .categories import Levels, as_table, complete_rows_of, encoded, is_design, levels_of, owned
from .covariates import Groups, names_of, read_groups, read_parameters
from .functions import Functions, arrange, as_numbers, read_layout
from .layouts import FEW, Channels, Layout, check_channels
from .messages import problem
from .notes import notes_of_pairs, notes_of_reading
from .numbers import detached
from .placing import count_of, positions_of, positions_of_outputs
from .rows import ArgumentValues, check_counts, check_row_labels, complete_rows
from .sources import Source, read_source
from .units import Units, units_of


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
        stated: units of v and of columns of parameters, where the user states them.
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
    stated: Units = field(default_factory=dict)

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
    alone: object = True,
) -> Pairs:
    """The examples as float64 arrays with grids.

    Args:
        v: inputs: numpy array, nested lists, tensor, DataFrame, Series or DataArray, with one row
            for each function. `transduce.inputs.layouts` says which shapes are read how. None if
            the parameters are the inputs.
        u: outputs, u[i] being the image of v[i].
        x: positions of the points of v and u: numbers or dates, ascending or descending. If only
            one of them has that many points, and the other has no grid, x belongs to the former.
            None for labels that are positions, or else a uniform grid.
        x_v: positions of the points of v, in place of x.
        x_u: positions of the points of u, in place of x.
        channels: True, False or the number of channels, if shapes alone would be misread.
        parameters: numbers that come with each pair, shape (n,) or (n, p).
        groups: a label for each pair; pairs that are alike, such as one time series, share it.
        missing: "raise", or "drop" to leave out pairs with NaN, infinite or masked values.
        alone: whether these are all pairs, so that there are notes about them together.
    """
    _check_missing(missing)
    stated = units_of(v, parameters)
    v, parameters, table = _inputs(v, as_table(parameters), x_v)
    sources, parameters, levels = _read(v, u, parameters, table, missing)
    check_counts(*sources, [count_of(given) for given in (x, x_v, x_u)])
    check_row_labels(*sources)
    option = check_channels(channels, {source.name: source.shape[1:] for source in sources})
    inputs, outputs = map(arrange, sources, _layouts(sources, table, option, (x, x_v, x_u)))
    n, known = len(inputs), read_groups(groups, len(inputs))
    pairs = Pairs(inputs, outputs, read_parameters(parameters, n), known, np.arange(n))
    names = names_of(parameters)
    pairs = replace(pairs, parameter_names=names, levels=levels, channels=option, stated=stated)
    return _noted(_complete(pairs, missing, sources), sources if alone else None)


def _read(
    v: object, u: object, parameters: object, table: str, missing: str
) -> tuple[tuple[Source, Source], object, Levels]:
    """Inputs and outputs as numbers, the parameters that come with them, and their categories.

    Args:
        v: inputs; None if a table is the only input.
        u: outputs.
        parameters: a table, or None.
        table: the argument that gave it, if it is the only input; else "".
        missing: "raise" or "drop".
    """
    known = [read_source(f, name) for name, f in (("v", v), ("u", u)) if f is not None or not table]
    rows = _whole(known, parameters) if missing == "drop" else None
    levels = levels_of(parameters, table or "parameters", rows)
    parameters = encoded(parameters, levels, table or "parameters", strict=False)
    if table:
        return (read_source(parameters, table), known[-1]), None, levels
    return (known[0], known[1]), parameters, levels


def _layouts(
    sources: tuple[Source, Source],
    table: str,
    channels: Channels,
    x: tuple[object, object, object],
) -> tuple[Layout, Layout]:
    """The layouts of inputs and outputs.

    Args:
        sources: both.
        table: the argument that gave a table, if it is the only input; else "".
        channels: the user's option.
        x: positions of both, of v and of u, as the user gave them.
    """
    v, u = sources
    if table:
        x_of_u = positions_of_outputs(sources, channels, x[0], x[2])
        return as_numbers(v), read_layout(u, channels, *x_of_u)
    x_of_v, x_of_u = positions_of(sources, channels, *x)
    return read_layout(v, channels, *x_of_v), read_layout(u, channels, *x_of_u)


def _check_missing(missing: str) -> None:
    if missing not in ("raise", "drop"):
        raise problem(
            f"missing is {missing!r}",
            "'raise' or 'drop'",
            "Give missing='drop' to leave out pairs with missing values.",
        )


def columns_of(layout: Layout, levels: Levels) -> list[str]:
    """The columns of a table of numbers, for messages; none of curves, fields and one number."""
    if layout.kind != "numbers" or (layout.points == 1 and not layout.names):
        return []
    return owned(layout.names, layout.points, levels)


def _inputs(v: object, parameters: object, x_v: object) -> tuple[object, object, str]:
    """v and parameters, and the argument that gave the table if this is the only input, or "". A
    small table with categories is one of parameters."""
    if v is not None and parameters is None and x_v is None and is_design(v, FEW):
        return None, as_table(v), "v"
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
    return v, parameters, "parameters" if v is None else ""


def _whole(sources: Sequence[Source], table: object) -> np.ndarray | None:
    """Whether each row is complete in all of these; None if their numbers of rows differ."""
    found = [ArgumentValues(source.name, detached(source.values)).whole for source in sources]
    own = complete_rows_of(table)
    found += [] if own is None else [own]
    same = len({len(each) for each in found}) == 1
    return np.logical_and.reduce(found) if same else None


def _complete(pairs: Pairs, missing: str, sources: tuple[Source, Source]) -> Pairs:
    """The pairs without missing values, with notes about how they were read."""
    notes: list[str] = []
    parts = [
        ArgumentValues(source.name, functions.array, columns_of(functions.layout, pairs.levels))
        for source, functions in zip(sources, (pairs.v, pairs.u), strict=True)
    ]
    if pairs.parameters is not None:
        names = owned(pairs.parameter_names, pairs.parameters.shape[1], pairs.levels)
        parts.append(ArgumentValues("parameters", pairs.parameters, names))
    kept = pairs.take(complete_rows(parts, missing, notes))
    notes += notes_of_reading(sources, kept.v, kept.u, pairs.channels is None)
    return replace(kept, notes=tuple(notes))


def _noted(pairs: Pairs, sources: tuple[Source, Source] | None) -> Pairs:
    """The pairs, with notes about all of them together unless others follow."""
    if sources is None:
        return pairs
    own = notes_of_pairs(pairs.v, pairs.u, pairs.parameters, pairs.groups, sources)
    return replace(pairs, notes=(*pairs.notes, *own))
