"""Regressed operators by id, for as long as someone asks for them.

An operator expires after `seconds` without a request for it. There are at most `most` of them, of
`most_bytes` together: a new one takes the place of those that were asked for longest ago, so that a
client who forgets its operators never shuts out another."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..regression import RegressedOperator
from .bodies import TooLargeError
from .served import Operator


@dataclass(frozen=True, eq=False)
class Regressed:
    """An operator, the name of the model that regressed it, in how many milliseconds, what it
    warned of, and where known its expected error and those of baselines."""

    model: str
    operator: Operator
    milliseconds: float
    warnings: list[str]
    error: float | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)


@dataclass(eq=False)
class Stored:
    """A regressed operator, the memory it takes and when it was last asked for."""

    id: str
    regressed: Regressed
    bytes: int
    used: float


class Operators:
    """The store; used from one thread."""

    def __init__(
        self,
        seconds: float = 3600.0,
        most: int = 1000,
        most_bytes: int = 2**29,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.seconds, self.most, self.most_bytes, self.clock = seconds, most, most_bytes, clock
        # The one asked for longest ago stands first.
        self._by_id: OrderedDict[str, Stored] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def bytes(self) -> int:
        """What all operators take."""
        return sum(stored.bytes for stored in self._by_id.values())

    def add(self, regressed: Regressed) -> Stored:
        """Keep an operator under a new id, in the place of others if there is no room."""
        size = held_bytes(regressed.operator)
        if size > self.most_bytes:
            raise TooLargeError(
                f"the operator takes {size} bytes; all that are kept may take {self.most_bytes}. "
                "Send fewer examples."
            )
        self.sweep()
        stored = Stored(secrets.token_urlsafe(16), regressed, size, self.clock())
        self._by_id[stored.id] = stored
        while len(self) > self.most or self.bytes > self.most_bytes:
            self._by_id.popitem(last=False)
        return stored

    def get(self, id: str) -> Stored | None:
        """The operator of an id, from now on to be kept for another while; None if there is none,
        or no longer."""
        self.sweep()
        stored = self._by_id.get(id)
        if stored is not None:
            stored.used = self.clock()
            self._by_id.move_to_end(id)
        return stored

    def remove(self, id: str) -> bool:
        """Forget an operator; whether there was one."""
        self.sweep()
        return self._by_id.pop(id, None) is not None

    def sweep(self) -> None:
        """Forget those that expired."""
        while self._by_id and next(iter(self._by_id.values())).used + self.seconds <= self.clock():
            self._by_id.popitem(last=False)


def held_bytes(operator: Operator) -> int:
    """The bytes of all arrays that an operator keeps, each counted once; the model, which its
    operators share, is not. What a model that adapts makes for the operator's grids is counted."""
    sizes: dict[int, int] = {}  # by where the memory begins
    model: Any = operator.regressor if isinstance(operator, RegressedOperator) else operator.T
    seen = {id(part) for part in (*model.modules(), *model.parameters(), *model.buffers())}
    rest: list[Any] = [operator]
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            sizes[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        elif isinstance(value, np.ndarray):
            sizes.setdefault(value.__array_interface__["data"][0], value.nbytes)
        elif isinstance(value, Mapping):
            rest += value.values()
        elif isinstance(value, list | tuple):
            rest += value
        elif hasattr(value, "__dict__"):
            rest += vars(value).values()
    return sum(sizes.values())
