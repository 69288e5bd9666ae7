"""Thousands of regressions of one operator, each from some of its examples.

    T(D_m)(v),      D_m = {(v_j, u_j) : m_j},      m one of many masks

Which examples are held out changes neither what the kernels read off the functions v nor the scores between all pairs: these are
computed once. A mask then costs the u-path (the paper's kernels), systems of its own examples (representer), or one as small as the
number of channels (prior). Examples that a mask leaves out are queries of the same pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..transducer import Transducer
from ..types import ExampleSet, TransduceError, to_tensor

TOGETHER = 1 << 22  # numbers that a block of masks may hold at once in one array

Progress = Callable[[int], object]


def many_regressions(T: Transducer, examples: ExampleSet, masks: Any, v: Any = None, progress: Progress | None = None) -> Regressions:
    """The operators that T regresses from the examples where each of `masks`, (regressions, n), is True.

    v: functions to answer for; default: the examples that a regression leaves out. progress: told, after each block, how many
    regressions are done.

    >>> masks = half_splits(len(examples), 5000, generator_for("test", 0))
    >>> many_regressions(T, examples, masks).errors().nanmean(0)      # of each example, left out
    """
    return Regressions(T, examples, checked_masks(masks, len(examples)), v, progress)


def half_splits(n: int, count: int, generator: torch.Generator) -> Bool[Tensor, "r n"]:
    """`count` masks of n examples with half of them in each, drawn at random."""
    if n < 2 or count < 1:
        raise TransduceError(f"{count} splits of {n} examples; expected at least one, of at least two examples.")
    return torch.rand(count, n, generator=generator).argsort(1) < n // 2


def checked_masks(masks: Any, n: int) -> Bool[Tensor, "r n"]:
    """Masks as a tensor, or an error that says what is wrong with them."""
    kept = torch.as_tensor(masks)
    if kept.dtype != torch.bool or kept.ndim != 2 or kept.shape[1] != n or not len(kept):
        raise TransduceError(
            f"masks have shape {tuple(kept.shape)} and hold {kept.dtype}; expected booleans of shape (regressions, {n}), True where an "
            "example is used."
        )
    empty = torch.nonzero(~kept.any(1)).flatten()
    if len(empty):
        raise TransduceError(
            f"mask {int(empty[0])} leaves no example ({len(empty)} of {len(kept)} do); expected at least one to regress from. Drop those."
        )
    return kept


class Regressions:
    """As many operators as there are masks, asked block by block, in bounded memory."""

    def __init__(self, T: Transducer, examples: ExampleSet, masks: Bool[Tensor, "r n"], v: Any, progress: Progress | None):
        self.T, self.masks, self.progress = T, masks.to(T.spread.device), progress
        x = None if examples.x is None else to_tensor(examples.x, "examples.x")
        with torch.no_grad():
            inputs, _ = T.encode(T.V, examples.v, x, "examples.v")
            self.u = to_tensor(examples.u, "examples.u").detach().to(T.spread)
            c, grid = T.encode(T.U, examples.u, x, "examples.u")
            queries = inputs[:0] if v is None else T.encode(T.V, v, x, "v")[0]
            self.at: Any = grid if x is None else x
            self.asked = slice(len(c), None) if len(queries) else slice(0, len(c))
            self.c = torch.cat([c, c.new_zeros(len(queries), T.U.size)])
            self.reads = T.read(torch.cat([inputs, queries])[None], self.c[None])

    def __len__(self) -> int:
        return len(self.masks)

    def __iter__(self) -> Iterator[Float[Tensor, "b m ..."]]:
        """The answers of one block of regressions after the other, (block, m, *grid); NaN at examples that a regression has used."""
        for used, c in self._streams():
            u = self.T.U.decode(c[:, self.asked], self.at)
            gone = used[:, self.asked]
            yield u.masked_fill(gone.reshape(*gone.shape, *[1] * (u.ndim - 2)), torch.nan)

    def errors(self) -> Float[Tensor, "r n"]:
        """The relative squared error of each example under each regression; NaN where it was used."""
        n, sizes = self.masks.shape[1], self.u.flatten(1).square().sum(1)
        c = self.c[:n]
        rest = (self.u - self.T.U.decode(c, self.at)).flatten(1)  # what coefficients cannot say of u
        blocks = [self._squares(streams[:, :n] - c, rest).masked_fill(used[:, :n], torch.nan) for used, streams in self._streams()]
        return torch.cat(blocks) / sizes

    def _squares(self, wrong: Float[Tensor, "b n d_u"], rest: Float[Tensor, "n p"]) -> Float[Tensor, "b n"]:
        """The squared errors of answers whose coefficients are wrong by so much."""
        inside = self.T.U.sum_of_squares(wrong, self.at) if isinstance(self.at, tuple) else None
        if inside is not None:
            return inside + rest.square().sum(1)
        return (self.T.U.decode(wrong, self.at).flatten(2) - rest).square().sum(-1)

    @torch.no_grad()
    def _streams(self) -> Iterator[tuple[Bool[Tensor, "b n"], Float[Tensor, "b n d_u"]]]:
        """Which functions were examples, and the coefficients of all answers, block by block."""
        functions = len(self.c)
        together = max(1, TOGETHER // (functions * max(self.T.U.size, 32 * functions)))
        done = 0
        for masks in self.masks.split(together):
            used = torch.nn.functional.pad(masks, (0, functions - masks.shape[1]))
            yield used, self.T.split(self.reads, self.c[None], used)
            done += len(masks)
            if self.progress is not None:
                self.progress(done)
