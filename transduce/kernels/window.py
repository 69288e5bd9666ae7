"""One law for all points: ridge regression on a window of v around each point.

    u(x_p) = w . (v(x_{p-h}), ..., v(x_{p+h})) + (products of the innermost values) + (1, x, x^2)

Features may include means of v over distant blocks. Every point of every example is an equation for
w. The reach h, whether products take part, and the ridge are those of least error in examples that
are left out. It is the law of local operators, such as a short time step.

All windows are columns of the largest one, so sums over points are computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..spaces import Gridded
from .comparison import CHOOSERS, evenly, without_each
from .per_task import PerTask, TaskFit
from .systems import identity_like
from .window_features import WindowFeatures

RIDGES = (1e-9, 1e-6, 1e-4, 1e-2)
FIRST_RIDGE = 1e-6  # with which the window is chosen
FOLDS = 20  # examples are left out in so many groups, one by one if there are fewer
ROWS = 60_000  # equations of the law, about
PART_ROWS = 50_000  # rows of features that are computed at once, about
FEWEST = 20  # points of each example among the equations
CHOOSING_ROWS = 4_000  # equations that choose window and ridge, about


Window = tuple[int, bool, float | Tensor]
"""Reach, whether products take part, and the ridge: as a share of squares, or itself."""


class Sums(NamedTuple):
    """<f, f> and <f, u> of each group of examples, and the group of each example."""

    gram: Float[Tensor, "k d d"]
    moment: Float[Tensor, "k d e"]
    fold: Tensor

    def columns(self, some: slice) -> Sums:
        """The same for some of the features."""
        return Sums(self.gram[:, some, some], self.moment[:, some], self.fold)

    def unit(self) -> Float[Tensor, ""]:
        """The sum of squares of a feature, of which ridges are a share."""
        return self.gram.diagonal(dim1=1, dim2=2).sum(0).mean()

    def without(self, ridge: Tensor) -> Float[Tensor, "k d e"]:
        """The law without each group."""
        A = self.gram.sum(0) - self.gram + ridge * identity_like(self.gram)
        return _solve(A, self.moment.sum(0) - self.moment)

    def law(self, ridge: Tensor) -> Float[Tensor, "d e"]:
        """The law of all examples."""
        A = self.gram.sum(0) + ridge * identity_like(self.gram)
        return _solve(A, self.moment.sum(0))


class Widest(NamedTuple):
    """The features of the widest window at all points of all examples, and their sums."""

    features: Float[Tensor, "n p d"]
    sums: Sums


@dataclass(frozen=True, kw_only=True)
class WindowFit(TaskFit):
    """What queries need.

    Attributes:
        reach: of the window.
        products: whether they take part.
        ridge: of the law.
        mean: of v over all points and examples.
        size: standard deviation of v likewise.
        offset: mean of u likewise.
        w: the law.
    """

    reach: int
    products: bool
    ridge: Float[Tensor, ""]
    mean: Float[Tensor, ""]
    size: Float[Tensor, ""]
    offset: Float[Tensor, ""]
    w: Float[Tensor, "d e"]


class WindowRidge(PerTask[WindowFit]):
    """Ridge regression on a window that all points share.

    Args:
        V: space of the inputs.
        U: space of the outputs.
        features: of the inputs around each point of U.
    """

    chunk = 256
    is_shared = True

    def __init__(self, V: Gridded, U: Gridded, features: WindowFeatures):
        super().__init__()
        self.V, self.U, self.onto, self.features = V, U, V.onto(U), features

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> WindowFit:
        mean, offset, size = v.mean(), u.mean(), v.std().clamp(min=1e-300)
        f, y = self._curves((v - mean) / size), self._outputs(u - offset)
        with torch.no_grad():
            best, others, known = self._choose(f, y)
        if f.requires_grad or y.requires_grad:
            known = None
        units = {"mean": mean, "size": size, "offset": offset}
        if len(f) > CHOOSERS:
            others = []
        fits = {window: self._solved(f, y, window, units, known) for window in {best, *others}}
        if len(fits) == 1:
            return fits[best]
        rows = [fits[others[k % len(others)]].residual[k] for k in range(len(f))]
        return replace(fits[best], residual=torch.stack(rows))

    def _choose(self, f: Tensor, y: Tensor) -> tuple[Window, list[Window], Widest | None]:
        """The window of least error in examples that are left out, for each group that by the other
        groups alone, and the features that have chosen, if they are those of all points."""
        stride = _stride(y, CHOOSING_ROWS)
        few = evenly(len(y), max(FOLDS, 2 * CHOOSING_ROWS * stride // y.shape[1])).to(y.device)
        parts = [part[:, ::stride] for part in self._parts(f[few], self.features.reaches[-1], True)]
        complete = stride == 1 and len(few) == len(y)
        widest, y = torch.cat(parts), y[few, ::stride]
        sums = _sums([widest], y)

        def errors(windows: Sequence[Window]) -> Float[Tensor, "w g"]:
            found = [_errors(widest, y, sums, self.features.columns(*w[:2]), w[2]) for w in windows]
            each = torch.stack(found)
            return torch.cat([each.sum(1, keepdim=True), without_each(each)], 1)

        windows = [(h, p, FIRST_RIDGE) for h in self.features.reaches for p in (False, True)]
        tried = errors(windows)
        first = tried.argmin(0).tolist()
        found: list[Window] = [windows[k] for k in first]
        for k in set(first):
            ridges = [(*windows[k][:2], r) for r in RIDGES if r != FIRST_RIDGE]
            best = torch.cat([tried[k : k + 1], errors(ridges)]).argmin(0).tolist()
            for group, number in enumerate(best):
                if first[group] == k:
                    found[group] = [windows[k], *ridges][number]
        return found[0], found[1:], Widest(widest, sums) if complete else None

    def refit_task(
        self, fit: WindowFit, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]
    ) -> WindowFit:
        """Window, ridge and units stay."""
        f, y = self._curves((v - fit.mean) / fit.size), self._outputs(u - fit.offset)
        units = {"mean": fit.mean, "size": fit.size, "offset": fit.offset}
        return self._solved(f, y, (fit.reach, fit.products, fit.ridge), units)

    def answer_task(self, fit: WindowFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        f = self.features(self._curves((v - fit.mean) / fit.size), fit.reach, fit.products)
        return (f @ fit.w).mT.flatten(1) + fit.offset

    def _solved(
        self,
        f: Tensor,
        y: Tensor,
        window: Window,
        units: dict[str, Tensor],
        known: Widest | None = None,
    ) -> WindowFit:
        """The law of a window. known: the features of the widest one; None to compute those of this
        one."""
        reach, products, share = window
        if known is None:
            stride = _stride(y, ROWS)
            parts = self._parts(f, reach, products)
            sums = _sums((part[:, ::stride] for part in parts), y[:, ::stride])
            parts = self._parts(f, reach, products)
        else:
            some = self.features.columns(reach, products)
            sums, parts = known.sums.columns(some), iter([known.features[..., some]])
        ridge = share if isinstance(share, Tensor) else share * sums.unit()
        w, without = sums.law(ridge), sums.without(ridge)
        answers, left_out, start = [], [], 0
        for part in parts:
            fold = sums.fold[start : start + len(part)]
            answers.append(part @ w)
            left_out.append(part @ without[fold])
            start += len(part)
        residual = (y - torch.cat(left_out)).mT.flatten(1)
        return WindowFit(
            residual=residual if len(y) > 1 else y.mT.flatten(1) + units["offset"],
            in_sample=(y - torch.cat(answers)).mT.flatten(1),
            reach=reach,
            products=products,
            ridge=ridge,
            w=w,
            **units,
        )

    def _parts(
        self, f: Float[Tensor, "n c p"], reach: int, products: bool
    ) -> Iterator[Float[Tensor, "k p d"]]:
        """The features of a few examples at a time."""
        for part in f.split(max(1, PART_ROWS // f.shape[-1])):
            yield self.features(part, reach, products)

    def _curves(self, v: Float[Tensor, "n d"]) -> Float[Tensor, "n c p"]:
        """Inputs at the positions of U."""
        return self.onto(self.V.shaped(v)).flatten(2)

    def _outputs(self, u: Float[Tensor, "n q"]) -> Float[Tensor, "n p e"]:
        return u.unflatten(-1, (self.U.channels, -1)).mT


def _stride(y: Float[Tensor, "n p e"], rows: int) -> int:
    """The step between points that leaves about so many rows, and at least `FEWEST` points."""
    n, points = y.shape[:2]
    return max(1, min(n * points // rows, points // FEWEST))


def _sums(parts: Iterable[Float[Tensor, "k s d"]], y: Float[Tensor, "n s e"]) -> Sums:
    """The sums of each group, from the features of a few examples at a time."""
    n, start = len(y), 0
    folds = min(n, FOLDS)
    gram: Tensor | float = 0.0
    moment: Tensor | float = 0.0
    for part in parts:
        f = _by_group(part, start, folds)
        target = _by_group(y[start : start + len(part)], start, folds)
        gram, moment = gram + f @ f.mT, moment + f @ target.mT
        start += len(part)
    assert isinstance(gram, Tensor) and isinstance(moment, Tensor)
    return Sums(gram, moment, torch.arange(n, device=y.device) % folds)


def _by_group(f: Float[Tensor, "k s d"], start: int, folds: int) -> Float[Tensor, "g d r"]:
    """The values of each group; f[0] is of example number `start`."""
    before, after = start % folds, -(start + len(f)) % folds
    f = f.mT  # as features are stored
    if before or after:
        f = nn.functional.pad(f, (0, 0, 0, 0, before, after))
    return f.unflatten(0, (-1, folds)).permute(1, 2, 0, 3).flatten(2)


def _errors(
    features: Tensor, y: Tensor, sums: Sums, some: slice, share: float | Tensor
) -> Float[Tensor, " k"]:
    """The squared error in each group that is left out, with a ridge that is a share of squares."""
    part = sums.columns(some)
    laws = part.without(share * part.unit())
    errors = (y - features[..., some] @ laws[sums.fold]).square().sum((1, 2))
    return torch.zeros_like(errors[: len(laws)]).index_add(0, sums.fold, errors)


def _solve(A: Float[Tensor, "*k d d"], M: Float[Tensor, "*k d e"]) -> Float[Tensor, "*k d e"]:
    """A^-1 M by Cholesky, or by elimination where rounding has made A indefinite."""
    L, failed = torch.linalg.cholesky_ex(A)
    if failed.any():
        return torch.linalg.solve(A, M)
    return torch.cholesky_solve(M, L)
