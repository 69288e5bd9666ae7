"""A request for a store of operators. It determines every byte of the store.

Operator i comes from the generator of (split, seed, i), drawn alone and on one thread, so any
number of workers on one kind of machine gives the same bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy.typing as npt
import torch
from torch import Tensor

from ..files import versions
from ..random_fields import SPLITS, generator_for
from ..types import ExampleSet, TransduceError

SomeOperator = TypeVar("SomeOperator")
Layout = Mapping[str, tuple[str, tuple[str, ...]]]
"""Variables of a store: the dtype and the dimensions of each."""


@runtime_checkable
class SolverFamily(Protocol[SomeOperator]):
    """A family that has a solver: a dataclass, whose fields the store records.

    Members:
        axes: the dimensions of its functions, each with its coordinates.
        parameters: what is stored of each operator in addition to its pairs.
        sample_operator: draws one operator.
        sample_pairs: draws n pairs of it.
        parameters_of: the values of `parameters` for it.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def axes(self) -> Mapping[str, Tensor]: ...

    @property
    def parameters(self) -> Layout: ...

    def sample_operator(self, generator: torch.Generator, /) -> SomeOperator: ...

    def sample_pairs(
        self, operator: SomeOperator, n: int, generator: torch.Generator, /
    ) -> ExampleSet: ...

    def parameters_of(self, operator: SomeOperator, /) -> Mapping[str, npt.ArrayLike]: ...


@dataclass(frozen=True)
class Request:
    """What to draw.

    Args:
        family: where operators and pairs come from.
        operators: how many operators.
        examples: how many pairs of each.
        seed: of all draws.
        split: "train", "validation" or "test"; their draws never meet.
    """

    family: SolverFamily
    operators: int
    examples: int
    seed: int
    split: str

    def __post_init__(self) -> None:
        if self.operators < 1 or self.examples < 1:
            raise TransduceError(
                f"{self.operators} operators of {self.examples} examples were asked for; expected "
                "at least one of each."
            )
        if self.split not in SPLITS:
            raise TransduceError(f"split={self.split!r}; expected one of {', '.join(SPLITS)}.")

    @property
    def block(self) -> int:
        """Operators in a shard: few enough to share the work evenly, and not too many files."""
        return min(64, math.ceil(self.operators / 64))

    @property
    def blocks(self) -> range:
        """The numbers of all blocks."""
        return range(math.ceil(self.operators / self.block))

    def members(self, block: int) -> range:
        """The operators of a block."""
        return range(block * self.block, min((block + 1) * self.block, self.operators))

    def attributes(self) -> dict[str, object]:
        """The attributes of the store: the family, its parameters, the seed and the versions."""
        parameters = {
            field.name: getattr(self.family, field.name)
            for field in fields(self.family)
            if field.init
        }
        made_with = {f"{name}_version": version for name, version in versions().items()}
        return {
            "family": type(self.family).__name__,
            **parameters,
            "split": self.split,
            "seed": self.seed,
            **made_with,
        }

    def record(self) -> dict[str, object]:
        """The request in JSON's own types, to compare with another."""
        counts = {"operators": self.operators, "examples": self.examples}
        return dict(json.loads(json.dumps({**counts, **self.attributes()})))

    def layout(self) -> Layout:
        """The variables of the store: their dtype and dimensions."""
        functions = ("float32", ("operator", "example", *self.family.axes))
        parameters = {
            name: (dtype, ("operator", *dims))
            for name, (dtype, dims) in self.family.parameters.items()
        }
        return {"v": functions, "u": functions, **parameters}

    def draw(self, operator: int) -> dict[str, npt.ArrayLike]:
        """The variables of one operator."""
        family = replace(self.family)  # its count of redrawn solutions starts at zero
        generator = generator_for(self.split, self.seed, operator)
        O = family.sample_operator(generator)
        pairs = family.sample_pairs(O, self.examples, generator)
        return {"v": pairs.v, "u": pairs.u, **family.parameters_of(O)}
