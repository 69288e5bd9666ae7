"""What answers behind the front door: the general model, a model of a family, or a baseline.

An engine takes examples and queries as tensors (m, channels, points) on ascending grids of the unit
interval, and knows its leave-one-out residuals at the examples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ..bands import quantile
from ..conditioned import ConditionedOperator
from ..inputs import Pairs, Query
from ..kernels import Answer
from ..kernels.posterior import Posterior
from ..spaces import Space, WithParameters
from ..transducer import Transducer
from ..types import Array, ExampleSet, Operator, Regressor, TransduceError
from .bounds import check_squares
from .groups import Residuals, parts_of, residuals_by_groups
from .shapes import as_tensor, by_channel, in_space, plain, space_of, with_channels

Where = Tensor | None
"""Positions of answers in the unit interval; None for those of the examples' u."""


class Engine(ABC):
    """A conditioned regressor.

    Attributes:
        pairs: the examples.
        O: the operator in the units of the regressor.
    """

    pairs: Pairs
    O: Operator

    @abstractmethod
    def answer(self, query: Query, at: Where) -> Tensor:
        """The images of the queries, shape (m, channels, points)."""

    @abstractmethod
    def band(self, query: Query, at: Where, level: float) -> tuple[Tensor, Tensor, Tensor]:
        """Images with a band that holds a share `level` of the values: mean, low, high."""

    def unknown(self, query: Query) -> tuple[list[tuple[float, Posterior]], Tensor]:
        """Covariances of what the examples leave unknown, with weights, and the queries as
        vectors that these take."""
        raise TransduceError(
            "suggestions by a model of a family or a baseline; expected model='general', which "
            "has the covariance of what is unknown. Regress with it."
        )

    @property
    def shared(self) -> Collection[str]:
        """The answers that are one law for all points."""
        return ()

    @property
    def fits_once(self) -> bool:
        """Whether residuals come from one fit, without a regression for each example."""
        return True

    def deviations(self, query: Query | None) -> Tensor | None:
        """Standard deviations of the answers to queries, or of those to the examples, left out:
        (m, values of u). None of models that have none in the units of u."""
        return None

    @property
    @abstractmethod
    def residuals(self) -> Tensor:
        """u minus the answer without each example, shape (n, channels, points)."""

    @cached_property
    def calibration(self) -> Residuals | None:
        """What bands are calibrated by if there are groups: residuals without each group."""
        groups, O = self.pairs.groups, self.O
        if groups is None or not groups.several or not isinstance(O, ConditionedOperator):
            return None
        return residuals_by_groups(O, groups)


class GeneralEngine(Engine):
    """A model that adapts to grids and units: the general model."""

    O: ConditionedOperator

    def __init__(self, T: Transducer, pairs: Pairs):
        check_squares(pairs)
        self.pairs, self.V, self.U = pairs, space_of(pairs.v), space_of(pairs.u)
        V: Space = self.V
        if pairs.parameters is not None:
            V = WithParameters(self.V, pairs.parameters.shape[1])
        v = self._vectors(as_tensor(pairs.v.values), None, pairs.parameters)
        examples = ExampleSet(v, as_tensor(pairs.u.values).flatten(1))
        T = T.between(V, self.U)
        if v.requires_grad or examples.u.requires_grad:
            T = T.differentiable()
        self.O = ConditionedOperator(T, in_space(examples, V, self.U))

    def exportable(self) -> GeneralEngine:
        """Without answers that ONNX cannot compute, conditioned again if there are any."""
        if all(layer.kappa.exportable() is layer.kappa for layer in self.O.T.steps):
            return self
        return GeneralEngine(self.O.T.exportable(), self.pairs)

    def _vectors(self, v: Tensor, x: Tensor | None, parameters: np.ndarray | None) -> Tensor:
        """Functions at the positions of V, flattened, followed by parameters."""
        if self.pairs.v.grid is not None:
            v = self.V.encode(v if self.V.channels > 1 else v[:, 0], x)
        v = v.flatten(1)
        if parameters is None:
            return v
        return torch.cat([v, as_tensor(parameters).to(v)], 1)

    def _query(self, query: Query) -> Tensor:
        grid = query.v.grid
        x = None if query.same_grid or grid is None else torch.from_numpy(grid.unit)
        vectors = self._vectors(as_tensor(query.v.values), x, query.parameters)
        return self.O.T.V.unflattened(vectors)

    def answer(self, query: Query, at: Where) -> Tensor:
        return by_channel(self.O(self._query(query), at=at), self.U)

    def band(self, query: Query, at: Where, level: float) -> tuple[Tensor, Tensor, Tensor]:
        parts = self.O.predict(self._query(query), level, at, calibration=self.calibration)
        mean, low, high = (by_channel(part, self.U) for part in parts)
        return mean, low, high

    def deviations(self, query: Query | None) -> Tensor | None:
        T, fits = self.O.T, self.O.fits
        if query is None:
            own = fits[-1].deviation
            return None if own is None else own[0]
        v = self._encoded(query)[None]
        found, least = T.deviations(fits, v), T.least_deviations(fits, v)
        return (found if least is None else torch.hypot(found, least))[0]

    @property
    def residuals(self) -> Tensor:
        residual = self.O.fits[-1].residual
        assert residual is not None
        return residual[0].unflatten(1, (self.U.channels, -1))

    @property
    def answers(self) -> dict[str, Answer]:
        """The weighed answers by name."""
        return self.O.T.steps[-1].kappa.named_answers(self.O.fits[-1])

    @property
    def shared(self) -> Collection[str]:
        return self.O.T.steps[-1].kappa.shared

    def _encoded(self, query: Query) -> Tensor:
        """Queries as the vectors that kernels take."""
        T = self.O.T
        return T.encode(T.V, self._query(query), None, "v")[0].double()

    def answers_at(self, query: Query, names: Collection[str] | None = None) -> dict[str, Tensor]:
        """The weighed answers at queries. names: of some of them; None for all."""
        T, fit = self.O.T, self.O.fits[-1]
        kappa = T.steps[-1].kappa
        parts = [
            kappa.answers_by_name(fit, part[None], names)
            for part in self._encoded(query).split(max(1, T.chunk))
        ]
        return {
            name: torch.cat([part[name][0] for part in parts]).unflatten(1, (self.U.channels, -1))
            for name in parts[0]
        }

    def unknown(self, query: Query) -> tuple[list[tuple[float, Posterior]], Tensor]:
        found = self.O.T.steps[-1].kappa.posteriors(self.O.fits[-1])
        if not found:
            raise TransduceError(
                f"suggestions from {len(self.pairs)} example(s) whose u do not vary; expected at "
                "least two different u. Run a few candidates at random first."
            )
        return found, self._encoded(query)

    @property
    def error(self) -> float:
        """The expected squared error in units of the mean's."""
        error = self.O.fits[-1].error
        assert error is not None
        return float(error[0])


class FamilyEngine(Engine):
    """Any other regressor: a model of one family, or a baseline. Functions share one grid. The
    regressor sees them divided by `pairs.units`."""

    def __init__(self, regressor: Regressor, pairs: Pairs, name: str):
        if pairs.parameters is not None:
            raise TransduceError(
                f"parameters with the model {name!r}; expected model='general', which takes them. "
                "Leave one of them out."
            )
        self.pairs, self.name = pairs, name
        self.regressor = regressor
        self.O = self._regress(np.arange(len(pairs)))

    def _regress(self, rows: np.ndarray) -> Operator:
        functions = zip((self.pairs.v, self.pairs.u), self.pairs.units, strict=True)
        v, u = (as_tensor(f.values)[rows] / unit for f, unit in functions)
        x = self._positions()
        examples = ExampleSet(plain(v), plain(u), x)
        return self.regressor.regress(examples)

    def _positions(self) -> Tensor | None:
        """Positions for models of families, if the grid is not uniform."""
        grids = [f.grid for f in (self.pairs.v, self.pairs.u) if f.grid is not None]
        if not isinstance(self.regressor, Transducer) or all(grid.uniform for grid in grids):
            return None
        if len(grids) < 2 or not grids[0].same_as(grids[1]):
            raise TransduceError(
                f"v and u on different grids that are not uniform, with the model {self.name!r}; "
                "expected one grid for both. Interpolate one of them, or use model='general'."
            )
        return torch.from_numpy(grids[0].unit)

    def answer(self, query: Query, at: Where) -> Tensor:
        return self._in_units(self._answered(self.O, query, at))

    def _in_units(self, u: Array) -> Tensor:
        """What the regressor returns, in the units of the examples' u."""
        return self.pairs.units[1] * with_channels(u, self.pairs.u)

    def _answered(self, O: Operator, query: Query, at: Where) -> Array:
        v, x = self._asked(query)
        if isinstance(O, ConditionedOperator):
            return O(v, at=at, x=x)
        if at is not None:
            raise TransduceError(
                f"at= with the baseline {self.name!r}; expected answers on the examples' grid. Use "
                "model='general', or interpolate the answers."
            )
        return O(v if x is None else space_of(self.pairs.v).encode(v, x))

    def _asked(self, query: Query) -> tuple[Tensor, Tensor | None]:
        """Queries, with their positions if these are not the examples'."""
        v, grid = plain(as_tensor(query.v.values)) / self.pairs.units[0], query.v.grid
        return v, None if query.same_grid or grid is None else torch.from_numpy(grid.unit)

    def band(self, query: Query, at: Where, level: float) -> tuple[Tensor, Tensor, Tensor]:
        if isinstance(self.O, ConditionedOperator) and self.O.T.leaves_out:
            v, x = self._asked(query)
            parts = self.O.predict(v, level, at, x, self.calibration)
            mean, low, high = (self._in_units(part) for part in parts)
            return mean, low, high
        mean = self.answer(query, at)
        half = quantile(self._residuals_by_groups().abs(), level)
        return mean, mean - half, mean + half

    def _residuals_by_groups(self) -> Tensor:
        """Those without the group of each example, if there are groups, of any regressor."""
        groups, u = self.pairs.groups, as_tensor(self.pairs.u.values)
        if groups is None or not groups.several:
            return self.residuals
        return torch.cat([self._without(np.flatnonzero(held), u) for held in parts_of(groups)])

    @property
    def fits_once(self) -> bool:
        if getattr(self.O, "residuals", None) is not None:
            return True
        return isinstance(self.O, ConditionedOperator) and self.O.T.leaves_out

    @property
    def residuals(self) -> Tensor:
        own = getattr(self.O, "residuals", None)
        if own is not None:
            return self._in_units(own)
        u = as_tensor(self.pairs.u.values)
        if isinstance(self.O, ConditionedOperator) and self.O.T.leaves_out:
            return u - self._in_units(self.O.T.U.decode(self.O.left_out, u.shape[-1]))
        return self._by_refitting(u)

    def _by_refitting(self, u: Tensor) -> Tensor:
        """Leave-one-out residuals of regressors that have none of their own."""
        n = len(self.pairs)
        return u if n == 1 else torch.cat([self._without(np.array([i]), u) for i in range(n)])

    def _without(self, rows: np.ndarray, u: Tensor) -> Tensor:
        """The residuals of these examples when all of them are left out."""
        v = plain(as_tensor(self.pairs.v.values)) / self.pairs.units[0]
        O = self._regress(np.delete(np.arange(len(u)), rows))
        return u[rows] - self._in_units(O(v[rows]))


def engine_for(regressor: Regressor, pairs: Pairs, name: str) -> Engine:
    """The engine of a regressor, conditioned on the pairs."""
    if isinstance(regressor, Transducer) and regressor.V.adapts:
        return GeneralEngine(regressor, pairs)
    return FamilyEngine(regressor, pairs, name)
