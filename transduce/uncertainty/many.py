"""Thousands of regressions of one operator, each from some of its examples.

    T(D_m)(v),      D_m = {(v_j, u_j) : m_j},      m one of many masks

Which examples are held out changes neither what the kernels read off the functions v nor the scores
between all pairs: these are computed once. A mask then costs the u-path (the paper's kernels),
systems of its own examples (representer), or one as small as the number of channels (prior).
Examples that a mask leaves out are queries of the same pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..conditioned import sensors_of
from ..transducer import Transducer
from ..types import ExampleSet, TransduceError, to_tensor

TOGETHER = 1 << 22  # numbers that a block of masks may hold at once in one array

Progress = Callable[[int], object]


def many_regressions(
    T: Transducer,
    examples: ExampleSet,
    masks: object,
    v: object = None,
    progress: Progress | None = None,
) -> Regressions:
    """The operators that T regresses from some of the examples, for many choices of these.

    Args:
        T: the model.
        examples: pairs of one operator.
        masks: (regressions, n), True where an example is used.
        v: functions to answer for, in addition to the examples that a regression leaves out.
        progress: called after each block with the number of regressions done.

    >>> masks = half_splits(len(examples), 5000, generator_for("test", 0))
    >>> many_regressions(T, examples, masks).errors().nanmean(0)      # of each example, left out
    """
    return Regressions(T, examples, checked_masks(masks, len(examples)), v, progress)


def half_splits(n: int, count: int, generator: torch.Generator) -> Bool[Tensor, "r n"]:
    """`count` masks of n examples with half of them in each, drawn at random."""
    if n < 2 or count < 1:
        raise TransduceError(
            f"{count} splits of {n} examples; expected at least one, of at least two examples."
        )
    return torch.rand(count, n, generator=generator).argsort(1) < n // 2


def all_but_one(n: int) -> Bool[Tensor, "n n"]:
    """n masks, each without one of n examples."""
    if n < 2:
        raise TransduceError(
            f"{n} example cannot be left out of itself; expected at least two. Give more."
        )
    return ~torch.eye(n, dtype=torch.bool)


def checked_masks(masks: object, n: int) -> Bool[Tensor, "r n"]:
    """Masks as a tensor, or an error that says what is wrong with them."""
    kept = torch.as_tensor(masks)
    if kept.dtype != torch.bool or kept.ndim != 2 or kept.shape[1] != n or not len(kept):
        raise TransduceError(
            f"masks have shape {tuple(kept.shape)} and hold {kept.dtype}; expected booleans of "
            f"shape (regressions, {n}), True where an "
            "example is used."
        )
    empty = torch.nonzero(~kept.any(1)).flatten()
    if len(empty):
        raise TransduceError(
            f"mask {int(empty[0])} leaves no example ({len(empty)} of {len(kept)} do); expected "
            "at least one to regress from. Drop those."
        )
    return kept


class Regressions:
    """As many operators as there are masks, asked block by block, in bounded memory."""

    def __init__(
        self,
        T: Transducer,
        examples: ExampleSet,
        masks: Bool[Tensor, "r n"],
        v: object,
        progress: Progress | None,
    ):
        self.T, self.masks, self.progress = T, masks.to(T.spread.device), progress
        x = None if examples.x is None else to_tensor(examples.x, "examples.x")
        with torch.no_grad():
            inputs, _ = T.encode(T.V, examples.v, x, "examples.v")
            self.u = to_tensor(examples.u, "examples.u").detach().to(T.spread)
            c, grid = T.encode(T.U, examples.u, x, "examples.u")
            queries = inputs[:0] if v is None else T.encode(T.V, v, sensors_of(v, x), "v")[0]
            self.at: Any = grid if x is None else x
            self.c = torch.cat([c, c.new_zeros(len(queries), *c.shape[1:])])
            self.reads = T.read(torch.cat([inputs, queries])[None], self.c[None])

    def __len__(self) -> int:
        return len(self.masks)

    def __iter__(self) -> Iterator[Float[Tensor, "b m ..."]]:
        """The answers of one block of regressions after the other, (block, functions, *grid): at
        the examples, NaN where a regression has used them, and then at v."""
        return map(self._answers, self._blocks())

    @torch.no_grad()
    def _answers(self, used: Bool[Tensor, "b n"]) -> Float[Tensor, "b n ..."]:
        u = self.T.U.decode(self.T.split(self.reads, self.c[None], used), self.at)
        return u.masked_fill(used.reshape(*used.shape, *[1] * (u.ndim - 2)), torch.nan)

    @torch.no_grad()
    def errors(self) -> Float[Tensor, "r n"]:
        """The relative squared error of each example under each regression; NaN where it was
        used."""
        n, u = self.masks.shape[1], self.u.flatten(1)
        # What the coefficients of u do not represent.
        rest = u - self.T.U.decode(self.c[:n], self.at).flatten(1)
        points = self.T.U.isometry(self.at) if isinstance(self.at, tuple) else None
        errors = []
        for used in self._blocks():
            inside = None if points is None else self.T.split_errors(self.reads, used)
            if points is None or inside is None:
                wrong = self.T.split(self.reads, self.c[None], used)[:, :n] - self.c[:n]
                squares = (self.T.U.decode(wrong, self.at).flatten(2) - rest).square().sum(-1)
            else:
                squares = points * inside[:, :n].clamp(min=0) + rest.square().sum(1)
            errors.append(
                squares.masked_fill(used[:, :n], torch.nan) / u.square().sum(1).clamp(min=1e-30)
            )
        return torch.cat(errors).to(u)

    def _blocks(self) -> Iterator[Bool[Tensor, "b n"]]:
        """Which of all functions are examples, for as many regressions as memory allows at once."""
        functions, done = len(self.c), 0
        for masks in self.masks.split(
            max(1, TOGETHER // (functions * max(self.T.U.size, self.u[0].numel(), 32 * functions)))
        ):
            yield torch.nn.functional.pad(masks, (0, functions - masks.shape[1]))
            done += len(masks)
            if self.progress is not None:
                self.progress(done)
