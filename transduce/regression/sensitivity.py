"""How much of the variation of u each parameter, or each part of v, explains.

    S_j = mean_ik |O(v_i + w_j (v_k - v_i)) - O(v_i)|^2 / (2 mean_i |O(v_i) - mean O(v)|^2)

v_i and v_k are examples, and w_j is 1 in column j and 0 in others: column j of one example takes
its value in another. For independent columns S_j is Sobol's total index of the regressed operator
(Jansen's estimator): the share of the variation in which column j takes part. Shares of columns
that interact overlap, so their sum can exceed 1. Curves have parts instead of columns: there w_j
are overlapping triangles that sum to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float

from ..inputs import Functions, Pairs, Query
from ..inputs.categories import Levels, owners

if TYPE_CHECKING:
    from .operator import RegressedOperator

PARTS = 8  # of a curve
PAIRS = 400  # of examples that are compared, about


@dataclass(frozen=True)
class Sensitivity:
    """How much each input explains.

    Attributes:
        names: of the parameters or parts of v.
        shares: of the variation of u that each takes part in.
        effects: root mean square change of u at each point, in units of u: (inputs, channels,
            points).
        x: positions of the points of u; None for numbers.
    """

    names: tuple[str, ...]
    shares: Float[np.ndarray, " inputs"]
    effects: Float[np.ndarray, "inputs channels points"]
    x: np.ndarray | None

    def __str__(self) -> str:
        width = max(map(len, self.names))
        order = np.argsort(-self.shares)
        lines = [f"{self.names[j]:{width}}  {self.shares[j]:6.1%}" for j in order]
        return "\n".join(["share of the variation of u that each input takes part in:", *lines])


@dataclass(frozen=True)
class Input:
    """One column of the parameters, or a part of v.

    Attributes:
        name: what it is called.
        of_v: the weight of each value of v, shape (channels, points).
        of_parameters: the weight of each parameter.
    """

    name: str
    of_v: Float[np.ndarray, "channels points"]
    of_parameters: Float[np.ndarray, " p"]


def sensitivity_of(O: RegressedOperator, seed: int = 0) -> Sensitivity:
    """The sensitivity of a regressed operator, over its examples."""
    pairs, n = O.pairs, len(O.pairs)
    generator = np.random.default_rng(seed)
    shifts = generator.permutation(np.arange(1, n))[: max(1, round(PAIRS / n))]
    own = np.tile(np.arange(n), len(shifts))
    partners = np.concatenate([(np.arange(n) + shift) % n for shift in shifts])
    with torch.no_grad():
        base = O.engine.answer(Query(pairs.v, pairs.parameters), None)
        changes = [
            (O.engine.answer(_mixed(pairs, own, partners, each), None) - base[own]).square().mean(0)
            for each in inputs_of(pairs)
        ]
    variation = (base - base.mean(0)).square().mean(0).sum().clamp(min=1e-300)
    effects = torch.stack(changes)
    grid = pairs.u.grid
    return Sensitivity(
        names=tuple(each.name for each in inputs_of(pairs)),
        shares=(effects.sum((1, 2)) / variation / 2).numpy(),
        effects=effects.sqrt().numpy(),
        x=None if grid is None else grid.x[:: -1 if grid.flipped else 1],
    )


def _mixed(pairs: Pairs, own: np.ndarray, partners: np.ndarray, each: Input) -> Query:
    """Examples in which one input takes its value in their partners."""
    v, parameters = pairs.v.array, pairs.parameters
    values = v[own] + each.of_v * (v[partners] - v[own])
    if parameters is not None:
        change = parameters[partners] - parameters[own]
        parameters = parameters[own] + each.of_parameters * change
    template = pairs.v.template.numbered(len(values))
    return Query(replace(pairs.v, values=values, template=template), parameters)


def inputs_of(pairs: Pairs) -> list[Input]:
    """The columns or parts of v, then the parameters."""
    count = 0 if pairs.parameters is None else pairs.parameters.shape[1]
    shape = pairs.v.array.shape[1:]
    found = [Input(name, weights, np.zeros(count)) for name, weights in _of_v(pairs)]
    named = _columns(pairs.parameter_names, count, "parameter", pairs.levels)
    return found + [Input(name, np.zeros(shape), weights) for name, weights in named]


Weighted = list[tuple[str, np.ndarray]]
"""Names of inputs, with the weight of each value."""


def _of_v(pairs: Pairs) -> Weighted:
    """The columns of numbers, or the parts of curves and fields."""
    v = pairs.v
    channels, points = v.array.shape[1:]
    if v.layout.kind == "numbers":
        named = _columns(v.layout.names, points, "column", pairs.levels)
        return [(name, weights[None]) for name, weights in named]
    unit = np.linspace(0, 1, points) if v.grid is None else v.grid.unit
    at = np.linspace(0, 1, PARTS)
    windows = np.clip(1 - np.abs(unit - at[:, None]) * (PARTS - 1), 0, None)
    each = list(zip(_places(v, at), windows, strict=True))
    if channels == 1:
        return [(name, window[None]) for name, window in each]
    rows = np.eye(channels)[..., None]
    return [
        (f"channel {c}, {name}", rows[c] * window) for c in range(channels) for name, window in each
    ]


def _columns(names: Sequence[str], count: int, noun: str, levels: Levels) -> Weighted:
    """Columns by name; those that encode one category together."""
    names = names or [f"{noun} {j}" for j in range(count)]
    known = owners(levels)
    found: dict[str, np.ndarray] = {}
    for name, row in zip(names, np.eye(count), strict=True):
        owner = known.get(name, name)
        found[owner] = found.get(owner, np.zeros(count)) + row
    return list(found.items())


def _places(v: Functions, at: np.ndarray) -> list[str]:
    """Names of positions in the user's units."""
    if v.grid is None:
        return [f"around {share:.0%}" for share in at]
    ascending = v.grid.x[:: -1 if v.grid.flipped else 1]
    if ascending.dtype.kind not in "fi":  # dates
        return [f"around {ascending[np.abs(v.grid.unit - a).argmin()]!s}" for a in at]
    return [f"around x = {place:.4g}" for place in np.interp(at, v.grid.unit, ascending)]
