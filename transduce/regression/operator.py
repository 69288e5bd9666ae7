"""The operator that `regress` returns, in the units and on the grids of the user."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..exporting import Exported
from ..files import PathLike
from ..inputs import Grid, Pairs, Query, check_groups_present, read_pairs, read_query
from ..inputs.categories import encoded
from ..inputs.columns import in_order
from ..inputs.messages import caution
from ..types import Index, Regressor, TransduceError
from . import onnx, saving
from .engines import Engine, as_tensor, engine_for
from .groups import ONE_GROUP, is_one_group
from .joining import joined
from .named import regressor_for
from .novelty import Surroundings
from .report import Report, report_of
from .sensitivity import Sensitivity, sensitivity_of
from .suggesting import suggested

OUTSIDE = 1e-9  # of the interval, by rounding


class RegressedOperator:
    """An operator regressed from examples. `transduce.regress` makes it.

    Answers come in the kind of array, shape, units and grid of the examples' u. Gradients flow
    through calls on torch tensors.

    Args:
        pairs: the examples.
        model: the name of the model.
        regressor: the model, if it is loaded already.
    """

    def __init__(self, pairs: Pairs, model: str, regressor: Regressor | None = None):
        self.pairs, self.model = pairs, model
        self.regressor = regressor or regressor_for(model)
        self.engine: Engine = engine_for(self.regressor, pairs, model)
        if is_one_group(pairs.groups):
            caution(ONE_GROUP)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        v, u = (f.layout for f in (self.pairs.v, self.pairs.u))
        return f"RegressedOperator({self.model!r}, n = {len(self)} examples, {v} -> {u})"

    def __call__(
        self, v: object, at: object = None, x: object = None, parameters: object = None
    ) -> object:
        """The images of v. Warns of queries far outside the examples.

        Args:
            v: inputs like those of the examples, on their grid or on another.
            at: where to answer: a number of points over the same interval, or positions in the
                units of the examples' x_u; default: the grid of the examples' u.
            x: positions of the points of v, if they differ from the examples'.
            parameters: one row for each query, if the examples have parameters.
        """
        query, grid = self._query(v, x, parameters), self._grid(at)
        return self._restored(self.engine.answer(query, _unit(grid)), query, grid)

    def predict(
        self,
        v: object,
        band: float = 0.9,
        at: object = None,
        x: object = None,
        parameters: object = None,
    ) -> tuple[object, object, object]:
        """The images of v with a prediction band: mean, low, high.

        Args:
            v: inputs, as in a call.
            band: the share of the values that the band is meant to hold.
            at: where to answer, as in a call.
            x: positions of the points of v, as in a call.
            parameters: one row for each query, as in a call.
        """
        if not 0 < band < 1:
            raise TransduceError(
                f"band={band}; expected a share of the values between 0 and 1. Give band=0.9."
            )
        query, grid = self._query(v, x, parameters), self._grid(at)
        parts = self.engine.band(query, _unit(grid), band)
        mean, low, high = (self._restored(part, query, grid) for part in parts)
        return mean, low, high

    def add(
        self, v: object, u: object, parameters: object = None, groups: object = None
    ) -> RegressedOperator:
        """The operator of the examples and these pairs, which have the grids of the examples.

        Args:
            v: inputs of the new pairs.
            u: their outputs.
            parameters: one row for each new pair, if the examples have parameters.
            groups: a label for each new pair, if the examples have groups; one that the examples
                have stands for the same group.
        """
        check_groups_present(groups, self.pairs.groups)
        query = read_query(self.pairs, v, None, parameters)
        pairs, names = self.pairs, self.pairs.parameter_names
        parameters = in_order(encoded(parameters, pairs.levels, "parameters"), names, "parameters")
        table = pairs.parameters is None and pairs.v.layout.kind == "numbers"
        given = parameters if table and v is None else v
        inputs: object = in_order(encoded(given, pairs.levels, "v"), pairs.v.layout.names, "v")
        if table:
            inputs, parameters = None, inputs
        more = read_pairs(
            inputs,
            in_order(u, pairs.u.layout.names, "u"),
            x_v=self._x("v"),
            x_u=self._x("u"),
            channels=pairs.channels,
            parameters=parameters,
            groups=groups,
        )
        if more.u.layout.shape != self.pairs.u.layout.shape or not query.same_grid:
            raise TransduceError(
                f"new pairs have v of shape {more.v.layout.shape} and u of shape "
                f"{more.u.layout.shape}; expected {self.pairs.v.layout.shape} and "
                f"{self.pairs.u.layout.shape}, as the examples have. Interpolate them."
            )
        return RegressedOperator(joined(self.pairs, more), self.model, self.regressor)

    def drop(self, which: Index) -> RegressedOperator:
        """The operator without some examples.
        which: their numbers, or a mask."""
        n = len(self)
        try:
            rows = np.delete(np.arange(n), which)
        except (IndexError, ValueError):
            raise TransduceError(
                f"there is no example {which} among {n}; expected numbers from 0 to {n - 1}."
            ) from None
        if not len(rows):
            raise TransduceError(
                f"dropping {which} leaves none of {n} examples; expected at least one to stay."
            )
        return RegressedOperator(self.pairs.take(rows), self.model, self.regressor)

    def report(self) -> Report:
        """What leave-one-out says: the error of the answer and of each baseline, the weights, an
        estimate of the noise, and warnings. Print it."""
        return self._report

    @cached_property
    def _report(self) -> Report:
        return report_of(self)

    def novelty(self, v: object, x: object = None, parameters: object = None) -> np.ndarray:
        """How far each query is from the examples: about 1 for queries like these, more beyond.
        Warns of queries far beyond them.

        Args:
            v: inputs, as in a call.
            x: positions of the points of v, as in a call.
            parameters: one row for each query, as in a call.
        """
        return self._surroundings.novelty(read_query(self.pairs, v, x, parameters))

    @cached_property
    def _surroundings(self) -> Surroundings:
        return Surroundings(self.pairs)

    def _query(self, v: object, x: object, parameters: object) -> Query:
        """Queries, with a warning of those that are far outside the examples."""
        query = read_query(self.pairs, v, x, parameters)
        self._surroundings.check(query)
        return query

    def suggest(
        self, candidates: object, k: int = 1, x: object = None, parameters: object = None
    ) -> np.ndarray:
        """The numbers of the k candidates whose images would reduce the expected error most, in
        the order in which to run them.

        Args:
            candidates: inputs like the examples' v, from which to choose; errors are expected
                over all of them.
            k: how many to choose.
            x: positions of the points of the candidates, as in a call.
            parameters: one row for each candidate, if the examples have parameters.
        """
        query = read_query(self.pairs, candidates, x, parameters)
        m = len(query)
        if not 1 <= k <= m:
            raise TransduceError(f"k={k} of {m} candidates; expected a number from 1 to {m}.")
        posteriors, vectors = self.engine.unknown(query)
        return suggested(posteriors, vectors, k)

    def sensitivity(self) -> Sensitivity:
        """How much of the variation of u each input explains. Print it, or draw it with
        `transduce.figures.sensitivity`."""
        if len(self) < 3:
            raise TransduceError(
                f"{len(self)} examples; expected at least 3, whose inputs are exchanged. Give more."
            )
        return sensitivity_of(self)

    def save(self, path: PathLike, force: bool = False) -> None:
        """Write examples and model's name to a .safetensors file, which `transduce.load` reads.

        Args:
            path: of the file.
            force: whether to replace a file.
        """
        saving.save(self, Path(path), force)

    @property
    def leave_one_out(self) -> object:
        """The answer at each example of the regression without it, like the examples' u."""
        answers = as_tensor(self.pairs.u.values).detach() - self.engine.residuals.detach()
        return self._restored(answers, None, None)

    def export(self, path: PathLike, at: object = None, force: bool = False) -> Exported:
        """Write the operator as an ONNX graph in double precision, in the shapes, units and order
        of points of the examples: see docs/export.md.

        Args:
            path: of the .onnx file.
            at: other points of the answers are not supported: give u on these points.
            force: whether to replace a file.
        """
        if at is not None:
            raise TransduceError(
                f"at={at!r} of an exported operator; expected the points of the examples' u. Leave "
                "out at, and give the examples' u on those points."
            )
        return onnx.export(self, path, force)

    def _x(self, name: str) -> np.ndarray | None:
        grid = getattr(self.pairs, name).grid
        return None if grid is None else grid.x

    def _grid(self, at: object) -> Grid | None:
        """The grid of the answers; None for the examples' own."""
        if at is None:
            return None
        own = self.pairs.u.grid
        if own is None:
            raise TransduceError(
                f"at={at!r}, but u are {self.pairs.u.layout}, without positions. Leave out at."
            )
        if isinstance(at, int | np.integer):
            if at < 2:
                raise TransduceError(
                    f"at={at}; expected at least 2 points, or positions. Give a larger number."
                )
            return own.resampled(int(at))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # positions outside are refused below
            grid = own.at(at, "at")
        if grid.unit[0] < -OUTSIDE or grid.unit[-1] > 1 + OUTSIDE:
            low, high = sorted(own.x[[0, -1]])
            asked_low, asked_high = sorted(grid.x[[0, -1]])
            raise TransduceError(
                f"at runs from {asked_low} to {asked_high}; expected positions between {low} and "
                f"{high}, where the examples' u are known. Leave out those beyond."
            )
        return grid

    def _restored(self, values: Tensor, query: Query | None, grid: Grid | None) -> object:
        given = (self.pairs.u.values, None if query is None else query.v.values)
        keeps = any(isinstance(f, Tensor) for f in given)
        answer = values if keeps else values.detach().cpu().numpy()
        return self.pairs.u.restore(answer, None if query is None else query.v, grid)


def _unit(grid: Grid | None) -> Tensor | None:
    return None if grid is None else torch.from_numpy(grid.unit)
