"""The operator that `regress` returns, in the units and on the grids of the user."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..exporting import Exported
from ..files import PathLike
from ..inputs import Grid, Pairs, Query, read_query
from ..inputs.messages import caution
from ..types import Index, Regressor, TransduceError
from . import onnx, saving
from .engines import Engine, engine_for
from .equations import Terms, terms_of
from .groups import ONE_GROUP, is_one_group
from .joining import joined, read_more
from .named import regressor_for, weights_for
from .novelty import Surroundings
from .placing import answer_grid
from .report import Report, report_of
from .sensitivity import Sensitivity, sensitivity_of
from .shapes import as_tensor
from .stepper import Stepper
from .stepping import Rollout, Until, rollout
from .suggesting import count_of, suggested


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
        self.regressor = regressor or regressor_for(weights_for(model, pairs))
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
        query, grid = self._query(v, x, parameters), answer_grid(self.pairs.u, at)
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
        query, grid = self._query(v, x, parameters), answer_grid(self.pairs.u, at)
        parts = self.engine.band(query, _unit(grid), band)
        mean, low, high = (self._restored(part, query, grid) for part in parts)
        return mean, low, high

    def rollout(
        self,
        v: object,
        steps: int,
        band: float | None = None,
        every: int = 1,
        until: Until = None,
        parameters: object = None,
    ) -> Rollout:
        """The states after each of several steps, each answer being the next input.

        Needs u like v: `transduce.pairs` makes such pairs. A trajectory that leaves the examples
        stops with a warning, and its later states are NaN.

        Args:
            v: initial states on the examples' grid, shape (m, *shape of v), or a single one.
            steps: how many.
            band: the share of the values that a band is meant to hold; None for no band.
            every: keep the states of every so many steps.
            until: a function of a state, in the examples' shape and units, that returns True to
                stop its trajectory there.
            parameters: one row for each initial state, if the examples have parameters. They stay
                the same at all steps.

        >>> O.rollout(v, steps=20, band=0.9).states.shape  # v of shape (5, 64)
        (5, 20, 64)
        """
        return rollout(self, v, steps, band, every, until, parameters)

    @cached_property
    def _stepper(self) -> Stepper:
        return Stepper(self)

    def add(
        self,
        v: object,
        u: object,
        parameters: object = None,
        groups: object = None,
        x: object = None,
        missing: str = "raise",
    ) -> RegressedOperator:
        """The operator of the examples and these pairs.

        Args:
            v: inputs of the new pairs, on the examples' grid or on another, as in a call.
            u: their outputs, on the grid of the examples' u.
            parameters: one row for each new pair, if the examples have parameters.
            groups: a label for each new pair, if the examples have groups; one that the examples
                have stands for the same group.
            x: positions of the points of v, if they differ from the examples'.
            missing: "raise", or "drop" to leave out new pairs with missing values.
        """
        more = read_more(self.pairs, v, u, x, parameters, groups, missing)
        return RegressedOperator(joined(self.pairs, more), self.model, self.regressor)

    def drop(self, which: Index) -> RegressedOperator:
        """The operator without some examples.

        Args:
            which: their numbers, or a mask.
        """
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
        self,
        candidates: object,
        k: object = 1,
        x: object = None,
        parameters: object = None,
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
        count = count_of(k, len(query))
        with torch.no_grad():
            return suggested(*self.engine.unknown(query), count)

    def sensitivity(self) -> Sensitivity:
        """How much of the variation of u each input explains. Print it, or draw it with
        `transduce.figures.sensitivity`."""
        if len(self) < 3:
            raise TransduceError(
                f"{len(self)} examples; expected at least 3, whose inputs are exchanged. Give more."
            )
        return sensitivity_of(self)

    def terms(
        self, dt: float = 1.0, most: int = 6, periodic: bool | None = None, level: float = 0.9
    ) -> Terms:
        """The differential equation behind pairs of states that are a step of time apart, with
        intervals of its coefficients, or that no short equation explains them. Print it.

        Args:
            dt: the time from v to u. Coefficients are per unit of time.
            most: terms of an equation.
            periodic: whether states are periodic in x; None to find out.
            level: of the intervals.
        """
        return terms_of(self.pairs, dt, most, periodic, level)

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

    def _restored(self, values: Tensor, query: Query | None, grid: Grid | None) -> object:
        given = (self.pairs.u.values, None if query is None else query.v.values)
        keeps = any(isinstance(f, Tensor) for f in given)
        answer = values if keeps else values.detach().cpu().numpy()
        return self.pairs.u.restore(answer, None if query is None else query.v, grid)


def _unit(grid: Grid | None) -> Tensor | None:
    return None if grid is None else torch.from_numpy(grid.unit)
