"""What a rollout applies to states, and how far from the examples.

The choice of the map, and the errors that bands are made of, are kept with the operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..kernels.evolution import Evolution
from .chains import chains_of
from .engines import GeneralEngine
from .ensembles import Errors, errors_of
from .shapes import as_tensor
from .steps import (
    LAW,
    SHORTEST,
    WHOLE,
    Parameters,
    Part,
    States,
    Step,
    chosen,
    law_of,
    parts_in_time,
    query_of,
    step_of,
)

if TYPE_CHECKING:
    from .operator import RegressedOperator

MARGIN = 0.5  # of the range of values


@dataclass(eq=False)
class Stepper:
    """What a rollout applies.

    Args:
        O: the operator.
    """

    O: RegressedOperator

    @cached_property
    def parts(self) -> list[Part]:
        """Regressions from earlier parts of the examples' trajectories."""
        O = self.O
        chains = chains_of(O.pairs)
        if chains.longest < SHORTEST:
            return []
        with torch.no_grad():
            return parts_in_time(O.pairs, chains, O.regressor, O.model)

    @cached_property
    def name(self) -> str:
        """Of the map that is applied."""
        best = chosen(self.O.pairs, self.parts)
        return WHOLE if best == LAW and self.law is None else best

    @cached_property
    def law(self) -> Evolution | None:
        """The law of all examples."""
        return law_of(self.O.pairs, self.parts[-1].law if self.parts else None)

    def __call__(self, states: States, parameters: Parameters) -> States:
        """The states one step later."""
        with torch.no_grad():
            return self._step(states, parameters)

    @cached_property
    def _step(self) -> Step:
        return step_of(self.O.engine, self.law if self.name == LAW else None, self.name)

    def outside(self, states: States, parameters: Parameters) -> np.ndarray:
        """Whether each state is far outside the examples, shape (m,). Laws that all points
        share stop only at values beyond the examples' range by half of it."""
        if self.name == LAW or self.name in self.O.engine.shared:
            return _beyond_values(as_tensor(self.O.pairs.v.array), states)
        return self.O._surroundings.outside(query_of(self.O.pairs, states, parameters))

    @cached_property
    def errors(self) -> Errors:
        """What bands are made of."""
        return errors_of(self.name, self.O.pairs, self.parts, self._left_out)

    @property
    def _left_out(self) -> Tensor:
        """Leave-one-out residuals times the honesty factor of bands."""
        engine = self.O.engine
        residuals = engine.residuals.detach().double()
        if not isinstance(engine, GeneralEngine):
            return residuals
        honesty = engine.O.fits[-1].honesty
        return residuals if honesty is None else residuals * float(honesty[0])


def _beyond_values(v: Float[Tensor, "n c p"], states: States) -> np.ndarray:
    """Whether a value of a state is beyond the range of its channel by half of that."""
    low, high = v.amin((0, 2), keepdim=True), v.amax((0, 2), keepdim=True)
    margin = MARGIN * (high - low)
    found: np.ndarray = (
        ((states < low - margin) | (states > high + margin)).flatten(1).any(1).numpy()
    )
    return found
