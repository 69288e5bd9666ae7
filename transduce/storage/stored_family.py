"""The operators of a file as an `OperatorFamily`."""

from __future__ import annotations

import zlib
from copy import copy
from pathlib import Path

import torch

from ..files import PathLike
from ..types import ExampleSet, Task, TransduceError, to_tensor
from .opening import opened


class StoredFamily:
    """The operators of a file, each with its examples, held in memory in single precision.

    A task is an operator drawn from the file, with n + m of its stored pairs drawn without
    repetition.

    Args:
        path: the file, with variables of shape (operator, example, *grid).
        v: the name of the variable of inputs.
        u: the name of the variable of outputs.
        x: the name of the variable of positions, which may be missing.
    """

    def __init__(self, path: PathLike, v: str = "v", u: str = "u", x: str = "x"):
        with opened(path) as file:
            stored = {name: file.fetch(name) for name in (v, u)}
            positions = file.positions(x)
        self.path = Path(path)
        self.v, self.u = (to_tensor(stored[name], f"{path}: {name}").float() for name in (v, u))
        self.x = None if positions is None else to_tensor(positions, f"{path}: {x}")
        for name in (v, u):
            if stored[name].ndim < 3:
                raise TransduceError(
                    f"{name} in {path} has shape {tuple(stored[name].shape)}; expected (operator, "
                    "example, *grid). "
                    f"If it holds one operator's examples, give {name}[None]."
                )
        if self.v.shape[:2] != self.u.shape[:2] or 0 in self.v.shape[:2]:
            raise TransduceError(
                f"{path} holds {v} of shape {tuple(self.v.shape)} and {u} of shape "
                f"{tuple(self.u.shape)}; expected the same numbers "
                "of operators and of examples, at least one of each. Drop what has no partner."
            )

    def __len__(self) -> int:
        return len(self.v)

    def __repr__(self) -> str:
        """Shapes and a checksum: families with equal reprs hold equal data."""
        checksum = zlib.crc32(self.u[0].contiguous().numpy().tobytes())
        return (
            f"StoredFamily(v={tuple(self.v.shape)}, u={tuple(self.u.shape)}, first u: "
            f"{checksum:08x})"
        )

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        """Draw an operator, n example pairs and m other pairs of it as queries."""
        return self.task_of(int(torch.randint(len(self), (), generator=generator)), n, m, generator)

    def task_of(self, operator: int, n: int, m: int, generator: torch.Generator) -> Task:
        """Draw n example pairs and m other pairs of one operator."""
        stored = self.v.shape[1]
        if n + m > stored:
            remedy = (
                f"Ask for n up to {stored - m}, or for fewer queries."
                if m < stored
                else "Ask for fewer queries, or store more."
            )
            raise TransduceError(
                f"n = {n} examples and {m} queries need {n + m} pairs; {self.path} holds {stored} "
                f"of each operator. {remedy}"
            )
        picked = torch.randperm(stored, generator=generator)[: n + m]
        pairs = ExampleSet(self.v[operator, picked], self.u[operator, picked], self.x)
        return Task(pairs[:n], pairs[n:])

    def hold_out(self, share: float) -> tuple[StoredFamily, StoredFamily]:
        """Two families: all operators but the last `share` of them, and these, at least one."""
        kept = len(self) - max(1, round(share * len(self)))
        if kept < 1:
            raise TransduceError(
                f"{self.path} holds {len(self)} operator(s), too few to hold some out; expected "
                "at least 2. Store more."
            )
        return self._part(slice(None, kept)), self._part(slice(kept, None))

    def first(self, operators: int, examples: int | None = None) -> StoredFamily:
        """The family of the first operators, with the first examples of each."""
        return self._part(slice(operators), slice(examples))

    def _part(self, operators: slice, examples: slice = slice(None)) -> StoredFamily:
        part = copy(self)
        part.v, part.u = self.v[operators, examples], self.u[operators, examples]
        return part
