"""The contract of a domain. This module imports nothing heavy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

if TYPE_CHECKING:
    import pandas as pd

    from ..files import PathLike
    from ..storage import Choice
    from ..types import Array

R = TypeVar("R")
"""Regressors of a domain."""
E = TypeVar("E")
"""Examples that they take."""
O = TypeVar("O")
"""Operators that they return."""


@dataclass(frozen=True)
class Request:
    """What a user asks for besides the files. None stands for the domain's default.

    Args:
        v: the name of the variable of inputs.
        u: the name of the variable of outputs.
        x: the name of the variable of sensor positions.
        at: answer on a uniform grid of this many points; default: the grid of the examples' u.
        band: the share of the values that the written band should hold; default: no band.
        missing: "drop" leaves out pairs with missing values; default: they are refused.
        outputs: the file of outputs, if the file of examples has inputs alone.
        columns: whether functions are the columns of arrays, and not the rows.
        parameters: names of columns that are parameters, with commas between, or "all".
    """

    v: str | None = None
    u: str | None = None
    x: str | None = None
    at: int | None = None
    band: float | None = None
    missing: str | None = None
    outputs: PathLike | None = None
    columns: bool = False
    parameters: str | None = None

    @property
    def choice(self) -> Choice:
        """Which variables of which files to read."""
        from ..storage import Choice

        names = tuple(name.strip() for name in (self.parameters or "").split(",") if name.strip())
        return Choice(self.v, self.u, self.outputs, self.columns, names)


DEFAULTS = Request()


@dataclass(frozen=True, eq=False)
class Queries:
    """Functions to predict for, or parameters, or both.

    Args:
        v: inputs, shape (m, *grid); None if parameters are the only inputs.
        x: positions of their points, if they have their own.
        parameters: numbers and categories that come with each query, shape (m, p).
    """

    v: Array | None
    x: Array | None = None
    parameters: pd.DataFrame | Array | None = None

    @property
    def functions(self) -> Array:
        """The inputs v, for models that take no parameters alone."""
        assert self.v is not None
        return self.v

    def __len__(self) -> int:
        given = self.parameters if self.v is None else self.v
        return 0 if given is None else len(given)


def ends_of(u: str) -> tuple[str, str, str]:
    """The variables of predictions and of the ends of their band."""
    return u, f"{u}_low", f"{u}_high"


class Domain(ABC, Generic[R, E, O]):
    """A kind of data: how it is read, checked and written. Errors state what was expected, what
    was received, and the remedy."""

    name: ClassVar[str]

    @abstractmethod
    def check_model(self, T: R) -> None:
        """Raise an error if T is not a model of this domain."""

    @abstractmethod
    def check(self, T: R, examples: E) -> None:
        """Raise an error if values do not fit the model. `T.regress` checks shapes and that values
        are finite; this adds what the domain knows about its values."""

    @abstractmethod
    def read_examples(self, T: R, source: PathLike, request: Request = DEFAULTS) -> E:
        """Example pairs that `regress` takes.

        Args:
            T: the model.
            source: a file, or what the domain reads instead.
            request: names of variables.
        """

    @abstractmethod
    def read_queries(
        self,
        T: R,
        source: PathLike,
        examples: E,
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
    def regress(self, T: R, examples: E, name: str = "") -> O:
        """The operator of the examples.

        Args:
            T: the model.
            examples: the pairs that `read_examples` returned.
            name: what messages call the model.
        """

    @abstractmethod
    def answer(self, O: O, queries: Queries, request: Request = DEFAULTS) -> dict[str, Array]:
        """The predictions for the queries, and what else belongs into their file, by the names of
        the variables. The ends of a band are u_low and u_high."""

    def summary(self, O: O) -> str:
        """A few words on the expected error, if that is known without more regressions."""
        return ""

    def report(self, O: O, name: str = "") -> str:
        """What leave-one-out says about the regression.

        Args:
            O: the operator.
            name: what the report calls the model.
        """
        from ..types import TransduceError

        raise TransduceError(
            f"a report of a regression of the domain {self.name!r}; expected one between functions "
            "of one variable. Leave out --report."
        )

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
