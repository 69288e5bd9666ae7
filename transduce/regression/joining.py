"""Further pairs after those of the examples."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..inputs import Functions, Pairs, Query, check_groups_present, read_pairs, read_query
from ..inputs.categories import encoded
from ..inputs.columns import in_order
from ..inputs.layouts import Layout
from ..inputs.notes import notes_of_pairs
from ..inputs.sources import Source, read_source
from ..types import TransduceError
from .shapes import as_tensor, space_of


def read_more(
    pairs: Pairs,
    v: object,
    u: object,
    x: object = None,
    parameters: object = None,
    groups: object = None,
    missing: str = "raise",
) -> Pairs:
    """New pairs, on the grids of the examples.

    Args:
        pairs: the examples.
        v: inputs of the new pairs.
        u: their outputs, on the grid of the examples' u.
        x: positions of the points of v, if they differ from the examples'.
        parameters: one row for each new pair, if the examples have parameters.
        groups: a label for each new pair, if the examples have groups.
        missing: "raise", or "drop" to leave out new pairs with missing values.
    """
    check_groups_present(groups, pairs.groups)
    v, parameters, table = _inputs(pairs, v, parameters)
    query = read_query(pairs, v, x, parameters, gaps=True)
    _check_outputs(read_source(u, "u"), pairs.u.layout)
    if table:
        v, parameters = None, v
    elif query.v.grid is not None:
        v = _on_grid(query, pairs.v)
    u = in_order(u, pairs.u.layout.names, "u")
    return read_pairs(
        v,
        u,
        x_v=None if pairs.v.grid is None else pairs.v.grid.x,
        x_u=_positions(u, pairs.u),
        channels=pairs.channels,
        parameters=parameters,
        groups=groups,
        missing=missing,
        alone=False,
    )


def _inputs(pairs: Pairs, v: object, parameters: object) -> tuple[object, object, bool]:
    """v and parameters as numbers, in the order of the examples' columns, and whether v is a table
    of parameters."""
    layout, name = pairs.v.layout, "v"
    if pairs.parameters is not None:
        parameters = _table(pairs, parameters, pairs.parameter_names, "parameters")
        return in_order(v, layout.names, name), parameters, False
    if v is None and layout.kind == "numbers":
        v, parameters, name = parameters, None, "parameters"
    table = layout.kind == "numbers" and len(layout.shape) < 2
    return _table(pairs, v, layout.names, name), parameters, table


def _table(pairs: Pairs, values: object, names: tuple[str, ...], argument: str) -> object:
    """A table as numbers, in the order of the examples' columns."""
    return in_order(encoded(values, pairs.levels, argument), names, argument, pairs.levels)


def _check_outputs(u: Source, layout: Layout) -> None:
    """Raise unless new outputs have the shape of the examples'."""
    shape = u.shape[1:]
    if shape == layout.shape or {shape, layout.shape} == {(), (1,)}:
        return
    remedy = "Give the outputs that the examples have."
    if u.shape == layout.shape:
        remedy = f"For a single pair, give {u.one}."
    elif u.transposes and u.shape[:1] == layout.shape:
        remedy = f"Rows must be functions: give {u.transposed}."
    elif layout.kind == "grid" and len(shape) == len(layout.shape):
        remedy = "Interpolate them to the points of the examples' u."
    raise TransduceError(
        f"new pairs have u of shape {shape}; expected {layout.shape}, as the examples have. "
        f"{remedy}"
    )


def _on_grid(query: Query, examples: Functions) -> object:
    """New functions at the positions of the examples, in their order of points."""
    grid, own = query.v.grid, examples.grid
    assert grid is not None and own is not None
    values = as_tensor(query.v.values)
    if not query.same_grid:
        space = space_of(examples)
        shaped = values if space.channels > 1 else values[:, 0]
        values = space.encode(shaped, torch.from_numpy(grid.unit)).unflatten(-1, (-1, len(own)))
    values = values.flip(-1) if own.flipped else values
    template = replace(query.v.template, dtype="float64")
    return template.answer(values.reshape(len(values), *examples.layout.shape), template, own.x)


def _positions(u: object, examples: Functions) -> np.ndarray | None:
    """Positions of new u: those of the examples, or its labels if these are the same positions in
    the other direction."""
    own, labels = examples.grid, read_source(u, "u").labels
    if own is None or labels is None or not own.given or len(labels) != len(own):
        return None if own is None else own.x
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other positions, which are not used
            return labels if own.at(labels).same_as(own) else own.x
    except TransduceError:
        return own.x


def _appended(f: Functions, g: Functions) -> Functions:
    """The functions of both, in the kind of the first."""
    values = torch.cat([as_tensor(f.values), as_tensor(g.values)])
    kept = values if isinstance(f.values, Tensor) else values.detach().numpy()
    return replace(f, values=kept, template=f.template.numbered(len(values)))


def joined(pairs: Pairs, more: Pairs) -> Pairs:
    """The pairs and further ones, with notes about all of them."""
    v, u = _appended(pairs.v, more.v), _appended(pairs.u, more.u)
    groups = pairs.groups
    if groups is not None and more.groups is not None:
        groups = groups.joined(more.groups)
    parameters = pairs.parameters
    if parameters is not None and more.parameters is not None:
        parameters = np.concatenate([parameters, more.parameters])
    rows = np.arange(len(pairs) + len(more))
    whole = replace(pairs, v=v, u=u, parameters=parameters, groups=groups, rows=rows)
    former = _notes(pairs, None)
    notes = [note for note in pairs.notes if note not in former]
    notes += [note for note in more.notes if note not in notes]
    return replace(whole, notes=(*notes, *_notes(whole, pairs.notes)))


def _notes(pairs: Pairs, known: Collection[str] | None) -> list[str]:
    """Notes about all of these pairs; `known` as `notes_of_pairs` takes it."""
    return notes_of_pairs(pairs.v, pairs.u, pairs.parameters, pairs.groups, known=known)
