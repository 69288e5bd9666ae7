"""One law for all points: ridge regression on a window of v around each point.

    u(x_p) = w . (v(x_{p-h}), ..., v(x_{p+h})) + (products of the innermost values) + (1, x, x^2)

With `far`, means of v over blocks that grow with their distance, 2^k to 2^(k+1) points on either
side, take part too. Every point of every example is an equation for w. The reach h, whether
products take part, and the ridge are those of least error in examples that are left out. Values
beyond the ends repeat the last one. It is the law of local operators, such as a short time step.

All windows are columns of the largest one, so sums over points are computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..spaces.sampled import Sampled, resampling
from .comparison import CHOOSERS, evenly, without_each
from .per_task import PerTask, TaskFit
from .systems import identity_like

REACHES = (2, 7, 20)
INNER = 2  # reach of the values whose products take part
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

    def columns(self, index: Tensor) -> Sums:
        """The same for some of the features."""
        return Sums(self.gram[:, index][:, :, index], self.moment[:, index], self.fold)

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
        far: whether means over distant blocks take part.
    """

    chunk = 256
    onto: Tensor
    place: Tensor

    def __init__(self, V: Sampled, U: Sampled, far: bool = False):
        super().__init__()
        self.V, self.U, self.far = V, U, far
        self.register_buffer("onto", resampling(V.x, U.x), persistent=False)
        x = 2 * torch.tensor(U.x, dtype=torch.float64) - 1
        place = torch.stack([torch.ones_like(x), x, x * x], -1)
        self.register_buffer("place", place, persistent=False)
        reaches = REACHES[:1] if far else REACHES
        self.reaches = [h for h in reaches if h <= max(REACHES[0], U.points // 2)]

    def fit_task(self, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]) -> WindowFit:
        mean, offset, size = v.mean(), u.mean(), v.std().clamp(min=1e-300)
        f, y = self._curves((v - mean) / size), self._outputs(u - offset)
        with torch.no_grad():
            best, others = self._choose(f, y)
        units = {"mean": mean, "size": size, "offset": offset}
        if len(f) > CHOOSERS:
            others = []
        fits = {window: self._solved(f, y, window, units) for window in {best, *others}}
        if len(fits) == 1:
            return fits[best]
        rows = [fits[others[k % len(others)]].residual[k] for k in range(len(f))]
        return replace(fits[best], residual=torch.stack(rows))

    def _choose(self, f: Tensor, y: Tensor) -> tuple[Window, list[Window]]:
        """The window of least error in examples that are left out, and for each group that by the
        other groups alone."""
        stride = _stride(y, CHOOSING_ROWS)
        few = evenly(len(y), max(FOLDS, 2 * CHOOSING_ROWS * stride // y.shape[1])).to(y.device)
        parts = [part[:, ::stride] for part in self._parts(f[few], self.reaches[-1], True)]
        widest, y = torch.cat(parts), y[few, ::stride]
        sums = _sums([widest], y)

        def best(errors: dict[Window, Tensor], group: int | None) -> Window:
            def left(window: Window) -> float:
                each = errors[window]
                return float(each.sum() if group is None else without_each(each)[group])

            return min(errors, key=left)

        def errors(windows: Iterable[Window]) -> dict[Window, Tensor]:
            return {w: _errors(widest, y, sums, self._columns(*w[:2]), w[2]) for w in windows}

        groups = [None, *range(len(sums.moment))]
        tried = errors((h, p, FIRST_RIDGE) for h in self.reaches for p in (False, True))
        first = [best(tried, group) for group in groups]
        of_ridge = {w: errors((*w[:2], r) for r in RIDGES) for w in set(first)}
        found = [best(of_ridge[w], group) for w, group in zip(first, groups, strict=True)]
        return found[0], found[1:]

    def refit_task(
        self, fit: WindowFit, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]
    ) -> WindowFit:
        """Window, ridge and units stay."""
        f, y = self._curves((v - fit.mean) / fit.size), self._outputs(u - fit.offset)
        units = {"mean": fit.mean, "size": fit.size, "offset": fit.offset}
        return self._solved(f, y, (fit.reach, fit.products, fit.ridge), units)

    def answer_task(self, fit: WindowFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        f = self._features(self._curves((v - fit.mean) / fit.size), fit.reach, fit.products)
        return (f @ fit.w).mT.flatten(1) + fit.offset

    def _solved(self, f: Tensor, y: Tensor, window: Window, units: dict[str, Tensor]) -> WindowFit:
        reach, products, share = window
        stride = _stride(y, ROWS)
        parts = self._parts(f, reach, products)
        sums = _sums((part[:, ::stride] for part in parts), y[:, ::stride])
        ridge = share if isinstance(share, Tensor) else share * sums.unit()
        w, without = sums.law(ridge), sums.without(ridge)
        answers, left_out, start = [], [], 0
        for part in self._parts(f, reach, products):
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
            yield self._features(part, reach, products)

    def _curves(self, v: Float[Tensor, "n d"]) -> Float[Tensor, "n c p"]:
        """Inputs at the positions of U."""
        return v.unflatten(-1, (self.V.channels, -1)) @ self.onto.to(v).T

    def _outputs(self, u: Float[Tensor, "n q"]) -> Float[Tensor, "n p e"]:
        return u.unflatten(-1, (self.U.channels, -1)).mT

    def _features(
        self, f: Float[Tensor, "n c p"], reach: int, products: bool
    ) -> Float[Tensor, "n p d"]:
        """1, x, x^2; distant blocks; products; then the window, from the outside in."""
        points, inner = f.shape[-1], min(reach, INNER)
        index = torch.arange(points, device=f.device)

        def shifted(k: int) -> Float[Tensor, "n c p"]:
            return f[..., (index + k).clamp(0, points - 1)]

        parts = [self.place.to(f).T.expand(f.shape[0], -1, -1)]
        if self.far:
            parts.append(_blocks(f).flatten(1, 2))
        if products:
            near = torch.stack([shifted(k) for k in range(-inner, inner + 1)], 2)
            near = near.flatten(1, 2) if f.shape[1] == 1 else near[:, :, 1:-1].flatten(1, 2)
            i, j = torch.triu_indices(near.shape[1], near.shape[1])
            parts.append(near[:, i] * near[:, j])
        offsets = sorted(range(-reach, reach + 1), key=lambda k: -abs(k))
        parts.append(torch.stack([shifted(k) for k in offsets], 1).flatten(1, 2))
        return torch.cat(parts, 1).mT

    def _columns(self, reach: int, products: bool) -> Tensor:
        """The columns of the widest window's features that belong to another window."""
        channels, widest = self.V.channels, self.reaches[-1]
        near = 2 * INNER + 1 if channels == 1 else channels * (2 * INNER - 1)
        count = near * (near + 1) // 2
        blocks = channels * len(_sizes(self.U.points)) * 2 if self.far else 0
        first, last = 3 + blocks, 3 + blocks + count + channels * (2 * widest + 1)
        kept = [*range(first), *(range(first, first + count) if products else ())]
        return torch.tensor([*kept, *range(last - channels * (2 * reach + 1), last)])


def _stride(y: Float[Tensor, "n p e"], rows: int) -> int:
    """The step between points that leaves about so many rows, and at least `FEWEST` points."""
    n, points = y.shape[:2]
    return max(1, min(n * points // rows, points // FEWEST))


def _sums(parts: Iterable[Float[Tensor, "k s d"]], y: Float[Tensor, "n s e"]) -> Sums:
    """The sums of each group, from the features of a few examples at a time."""
    n, start = len(y), 0
    fold = torch.arange(n, device=y.device) % FOLDS
    grams, moments = [], []
    for part in parts:
        target, own = y[start : start + len(part)], fold[start : start + len(part)]
        gram, moment = part.mT @ part, part.mT @ target
        if n > FOLDS:
            gram = gram.new_zeros(FOLDS, *gram.shape[1:]).index_add(0, own, gram)
            moment = moment.new_zeros(FOLDS, *moment.shape[1:]).index_add(0, own, moment)
        grams.append(gram)
        moments.append(moment)
        start += len(part)
    if n > FOLDS:
        return Sums(torch.stack(grams).sum(0), torch.stack(moments).sum(0), fold)
    return Sums(torch.cat(grams), torch.cat(moments), fold)


def _errors(
    features: Tensor, y: Tensor, sums: Sums, index: Tensor, share: float | Tensor
) -> Float[Tensor, " k"]:
    """The squared error in each group that is left out, with a ridge that is a share of squares."""
    laws = y.new_zeros(len(sums.moment), features.shape[-1], y.shape[-1])
    part = sums.columns(index)
    laws[:, index] = part.without(share * part.unit())
    errors = (y - features @ laws[sums.fold]).square().sum((1, 2))
    return torch.zeros_like(errors[: len(laws)]).index_add(0, sums.fold, errors)


def _solve(A: Float[Tensor, "*k d d"], M: Float[Tensor, "*k d e"]) -> Float[Tensor, "*k d e"]:
    """A^-1 M by Cholesky, or by elimination where rounding has made A indefinite."""
    L, failed = torch.linalg.cholesky_ex(A)
    if failed.any():
        return torch.linalg.solve(A, M)
    return torch.cholesky_solve(M, L)


def _sizes(points: int) -> list[int]:
    """Sizes of the blocks on either side."""
    return [2**k for k in range(1, points.bit_length()) if 2**k < points]


def _blocks(f: Float[Tensor, "n c p"]) -> Float[Tensor, "n c b p"]:
    """Means over blocks on either side of each point."""
    points, sizes = f.shape[-1], _sizes(f.shape[-1])
    pad = 2 * (sizes[-1] if sizes else 1)
    total = nn.functional.pad(f, (pad, pad), mode="replicate").cumsum(-1)
    total = nn.functional.pad(total, (1, 0))  # total[k] is the sum of the first k values
    at = torch.arange(points, device=f.device) + pad
    found = []
    for size in sizes:
        right = total[..., at + 2 * size] - total[..., at + size]
        left = total[..., at - size + 1] - total[..., at - 2 * size + 1]
        found += [left / size, right / size]
    return torch.stack(found, 2) if found else f[:, :, None][:, :, :0]
