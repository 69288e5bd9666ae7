"""The contract of a domain. This module imports nothing heavy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ..conditioned import ConditionedOperator
    from ..files import PathLike
    from ..transducer import Transducer
    from ..types import Array, ExampleSet


@dataclass(frozen=True)
class Request:
    """What a user asks for besides the files. None stands for the domain's default.

    Args:
        v: the name of the variable of inputs.
        u: the name of the variable of outputs.
        x: the name of the variable of sensor positions.
        at: answer on a uniform grid of this many points; default: the grid of the examples' u.
    """

    v: str | None = None
    u: str | None = None
    x: str | None = None
    at: int | None = None


DEFAULTS = Request()


@dataclass(frozen=True, eq=False)
class Queries:
    """Functions to predict for.

    Args:
        v: inputs, shape (m, *grid).
        x: positions of their sensors, if these are scattered.
    """

    v: Array
    x: Array | None = None


class Domain(ABC):
    """A kind of data: how it is read, checked and written. Errors state what was expected, what
    was received, and the remedy."""

    name: ClassVar[str]

    @abstractmethod
    def check_model(self, T: Transducer) -> None:
        """Raise an error if T is not a model of this domain."""

    @abstractmethod
    def check(self, T: Transducer, examples: ExampleSet) -> None:
        """Raise an error if values do not fit the model. `T.regress` checks shapes and that values
        are finite; this adds what the domain knows about its values."""

    @abstractmethod
    def read_examples(
        self, T: Transducer, source: PathLike, request: Request = DEFAULTS
    ) -> ExampleSet:
        """Example pairs that `T.regress` takes.

        Args:
            T: the model.
            source: a file, or what the domain reads instead.
            request: names of variables.
        """

    @abstractmethod
    def read_queries(
        self,
        T: Transducer,
        source: PathLike,
        examples: ExampleSet,
        request: Request = DEFAULTS,
    ) -> Queries:
        """Functions to predict for.

        Args:
            T: the model.
            source: a file, or what the domain reads instead.
            examples: the pairs that `read_examples` returned.
            request: names of variables.
        """

    @abstractmethod
    def answer(
        self, O: ConditionedOperator, queries: Queries, request: Request = DEFAULTS
    ) -> dict[str, Array]:
        """The predictions for the queries, and what else belongs into their file, by the names of
        the variables."""

    def write(
        self,
        path: PathLike,
        answers: Mapping[str, Array],
        force: bool = False,
        attrs: Mapping[str, str | int | float] | None = None,
    ) -> None:
        """Write answers in the format of the suffix.

        Args:
            path: the file or Zarr store.
            answers: from `answer`.
            force: whether to replace an existing file.
            attrs: attributes of the whole file.
        """
        from ..storage import write_arrays

        write_arrays(path, answers, force, attrs)
