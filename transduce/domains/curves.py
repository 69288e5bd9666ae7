"""Functions of one variable on any grids, in any units, and plain numbers.

Files hold v and u of shape (n, points), (n, channels, points) or (n, numbers), and may hold x, the
positions of the points of both, or x_v and x_u (also xv and xu), and parameters and groups of each
pair. In NetCDF, HDF5 and Zarr, coordinates are positions too. Queries are files with v, and x or
x_v. Parameters may be the only inputs: then there is no v."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from ..inputs import Pairs, read_pairs
from ..inputs.categories import owners
from ..inputs.messages import caution
from ..regression import RegressedOperator
from ..regression.named import suited
from ..storage import (
    MissingVariableError,
    OpenFile,
    as_vector,
    opened,
    opened_pairs,
    opened_queries,
)
from ..transducer import Transducer
from ..types import Array, DataArray, Regressor, TransduceError
from .base import DEFAULTS, Domain, Queries, Request, ends_of

if TYPE_CHECKING:
    from ..files import PathLike

POSITIONS = {"v": ("x_v", "xv"), "u": ("x_u", "xu")}
GROUPS = "groups"


class Curves(Domain[Regressor, Pairs, RegressedOperator]):
    """The domain of the general model, and of baselines."""

    name = "curves"

    def check_model(self, T: Regressor) -> None:
        """Every regressor takes curves."""

    def check(self, T: Regressor, examples: Pairs) -> None:
        """Curves may have any finite values, which `read_pairs` checks."""

    def read_examples(self, T: Regressor, source: PathLike, request: Request = DEFAULTS) -> Pairs:
        with hint(), opened_pairs(source, request.choice) as file:
            parameters = file.parameters()
            roles = "vu" if parameters is None or "v" in file.names else "u"
            arrays = {key: file.fetch(key) for key in roles}
            x = _positions(file, arrays, request)
            groups = _optional(file, (GROUPS,))
        given = {"v": None, **arrays, "parameters": parameters, "groups": groups}
        return read_pairs(**given, **x, missing=request.missing or "raise")

    def read_queries(
        self, T: Regressor, source: PathLike, examples: Pairs, request: Request = DEFAULTS
    ) -> Queries:
        functions = examples.v.layout.kind != "numbers" or examples.parameters is not None
        wanted = _column_names(examples)
        with hint(), opened_queries(source, request.choice, wanted, functions) as file:
            if "v" not in file.names:
                return Queries(None, parameters=file.parameters())
            v = file.fetch("v")
            own = request.x is None or request.x in file.names
            named = request if own else replace(request, x=None)  # queries may lack positions
            x = _positions(file, {"v": v}, named).get("x_v")
            if _counts_points(v, x, examples):
                v, x = _without_positions(v), None
            return Queries(v, x, file.parameters())

    def regress(self, T: Regressor, examples: Pairs, name: str = "") -> RegressedOperator:
        return RegressedOperator(examples, name, suited(name, T, examples))

    def answer(
        self, O: RegressedOperator, queries: Queries, request: Request = DEFAULTS
    ) -> dict[str, Array]:
        """The predictions; with positions x_u, unless they are coordinates of the examples' u."""
        asked = {"at": request.at, "x": queries.x, "parameters": queries.parameters}
        if request.band is None:
            parts: Sequence[object] = (O(queries.v, **asked),)
        else:
            parts = O.predict(queries.v, request.band, **asked)
        ends = zip(ends_of(_output_name(O, request)), parts, strict=False)
        answers = {name: _with_labels(cast("Array", part), queries) for name, part in ends}
        grid = O.pairs.u.grid
        if grid is None or not grid.given or _labelled(O.pairs.u.template.empty):
            return answers
        x = grid.x if request.at is None else grid.resampled(request.at).x
        return answers | {POSITIONS["u"][0]: x}

    def summary(self, O: RegressedOperator) -> str:
        if not (isinstance(O.regressor, Transducer) and O.regressor.V.adapts):
            return ""  # baselines would have to be fitted again for each example
        report = O.report()
        best = min(report.baselines, key=report.baselines.__getitem__)
        return (
            f"expected error {report.error:.2g} of the variation of u (best baseline: {best}, "
            f"{report.baselines[best]:.2g})"
        )

    def report(self, O: RegressedOperator, name: str = "") -> str:
        return str(O.report())


DOMAIN = Curves()


@contextmanager
def hint() -> Iterator[None]:
    """Adds to the error of a missing variable that the model may be of the wrong domain."""
    try:
        yield
    except MissingVariableError as error:
        raise TransduceError(
            f"{error} Models of other domains read other files: see transduce regress --help."
        ) from None


def own_positions(source: PathLike) -> list[Array]:
    """The positions of v alone and of u alone that a file holds.

    Args:
        source: the file.
    """
    with opened(source) as file:
        found = [_optional(file, names) for names in POSITIONS.values()]
    return [x for x in found if x is not None]


def _column_names(examples: Pairs) -> list[str]:
    """The names of the columns of parameters, before categories became numbers."""
    names = examples.parameter_names if examples.parameters is not None else examples.v.layout.names
    known = owners(examples.levels)
    return list(dict.fromkeys(known.get(name, name) for name in names))


def _output_name(O: RegressedOperator, request: Request) -> str:
    """What outputs are called: by the user, or by the column of a table if they are one."""
    if request.u is not None and "," not in request.u:
        return request.u
    empty = O.pairs.u.template.empty
    single = isinstance(empty, DataArray) and empty.ndim == 1 and empty.name is not None
    return str(empty.name) if single and isinstance(empty, DataArray) else "u"


def _with_labels(answer: Array, queries: Queries) -> Array:
    """The answer with the labels of the rows of a table of parameters."""
    index = getattr(queries.parameters, "index", None)
    if queries.v is not None or index is None or index.name is None:
        return answer
    if not isinstance(answer, DataArray) or index.name in answer.dims[1:]:
        return answer
    named = answer.rename({answer.dims[0]: index.name}) if index.name != answer.dims[0] else answer
    return named.assign_coords({index.name: index.to_numpy()})


def _optional(file: OpenFile, names: Sequence[str]) -> Array | None:
    """The first of these variables that the file has."""
    return next((file.fetch(name) for name in names if name in file.names), None)


def _positions(file: OpenFile, arrays: dict[str, Array], request: Request) -> dict[str, Array]:
    """The positions in a file: x_v and x_u, or x for both.

    Args:
        file: the file.
        arrays: v and u, or v alone.
        request: names x, if it has another name.
    """
    own = {key: _optional(file, POSITIONS[key]) for key in arrays}
    x = _optional(file, ("x",)) if request.x is None else as_vector(file.fetch(request.x))
    if x is not None:
        along = [key for key, f in arrays.items() if _last_dimension(f) == _last_dimension(x) != ""]
        if not along and len(arrays) > 1 and all(positions is None for positions in own.values()):
            return {"x": x}
        for key in along or arrays:  # x of xarray belongs to the functions that have its dimension
            own[key] = x if own[key] is None else own[key]
    return {f"x_{key}": positions for key, positions in own.items() if positions is not None}


def _counts_points(v: Array, x: Array | None, examples: Pairs) -> bool:
    """Whether positions of queries only count their points, from 0 or 1: those of columns v_0, v_1,
    ... and of lists. The points are then those of the examples, if there are as many."""
    grid, found = examples.v.grid, np.asarray(x)
    if x is None or grid is None or found.shape != (len(grid),) or found.dtype.kind not in "if":
        return False
    if not any(np.array_equal(found, np.arange(len(grid)) + first) for first in (0, 1)):
        return False
    if not grid.given:
        return True
    if not _labelled(v) or np.array_equal(found, grid.x):
        return False
    caution(
        f"v of the queries has points numbered from {found[0]:g} to {found[-1]:g}, and v of the "
        f"examples positions from {grid.x[0]} to {grid.x[-1]}: the queries are taken to be at "
        "these. Name their columns by position if they are elsewhere."
    )
    return True


def _without_positions(v: Array) -> Array:
    """Functions without the coordinate of their points."""
    return v.drop_vars([v.dims[-1]], errors="ignore") if isinstance(v, DataArray) else v


def _last_dimension(f: object) -> str:
    """The name of the last dimension; "" if it has none."""
    dims = getattr(f, "dims", ())
    return str(dims[-1]) if dims else ""


def _labelled(f: object) -> bool:
    """Whether functions have their positions as coordinates."""
    return _last_dimension(f) in getattr(f, "coords", ())
