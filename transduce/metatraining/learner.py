"""What meta-training needs of a model and of the processes it runs on, as types.

A `Learner` regresses in two halves, in coefficients of its spaces V and U:

    kept = T.condition(v, u),      u_hat = T.query(kept, v_query)[-1]"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from ..spaces import Space
from ..types import Regressor

Batch = dict[str, Tensor]
"""Tasks of equal size: v, u, v_query, u_query, each (tasks, functions, *grid); x if scattered."""


@runtime_checkable
class Learner(Regressor, Protocol):
    """A model that `metatrain` can train: a Transducer, or any Regressor that is a torch module.

    Members of its own:
        V, U: the spaces of inputs and outputs.
        spread: the unit of each input coefficient; it has the model's device and precision.
        config: describes the model in values that JSON can hold; part of a run's identity.
        leaves_out: whether the last item of `condition` has leave-one-out residuals.
        condition: what the queries need of the examples, one item per layer.
        query: the queries' outputs after each layer; the last is the answer.

    Optional members:
        standardise(v): measures `spread` from coefficients v; see `Standardises`.
        measured: True once `spread` was measured.
        checkpointing: True for less memory and more time in a step.
        fitted_to(v, u, x): the learner for functions like v and u, if it adapts to grids.
        probabilities: True if answers are probabilities of classes.

    All others are those of `torch.nn.Module`.
    """

    @property
    def spread(self) -> Tensor: ...

    @property
    def V(self) -> Space: ...

    @property
    def U(self) -> Space: ...

    @property
    def config(self) -> Mapping[str, object]: ...

    @property
    def leaves_out(self) -> bool: ...

    def condition(self, v: Tensor, u: Tensor) -> list[Any]: ...

    def query(self, kept: list[Any], v: Tensor) -> list[Tensor]: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> object: ...

    def to(self, device: torch.device) -> object: ...

    def train(self) -> object: ...

    def eval(self) -> object: ...

    def requires_grad_(self, requires_grad: bool = True) -> object: ...


@runtime_checkable
class Standardises(Protocol):
    """A learner that measures inputs in units of their spread over the family.

    measured: whether it has.
    """

    measured: bool

    def standardise(self, v: Tensor) -> None: ...


@runtime_checkable
class Processes(Protocol):
    """The part of Lightning Fabric that training uses."""

    @property
    def device(self) -> torch.device: ...

    @property
    def world_size(self) -> int: ...

    @property
    def global_rank(self) -> int: ...

    @property
    def is_global_zero(self) -> bool: ...

    def setup(self, module: nn.Module, *optimizers: torch.optim.Optimizer) -> Any: ...

    def backward(self, tensor: Tensor) -> None: ...

    def all_reduce(self, data: Tensor) -> Tensor: ...

    def broadcast(self, obj: bool) -> bool: ...

    def rank_zero_first(self) -> AbstractContextManager[None]: ...


def fitted(T: Learner, v: Tensor, u: Tensor, x: Tensor | None) -> Learner:
    """The learner for functions like v and u, if it adapts to grids."""
    return T.fitted_to(v, u, x) if hasattr(T, "fitted_to") else T
