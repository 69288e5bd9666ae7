"""One law for all points: ridge regression on a window of v around each point.

    u(x_p) = w . (v(x_{p-h}), ..., v(x_{p+h})) + (products of the innermost values) + (1, x, x^2)

With `far`, means of v over blocks that grow with their distance, 2^k to 2^(k+1) points on either
side, take part too. Every point of every example is an equation for w. The reach h, whether
products take part, and the ridge are those of least error in examples that are left out. Values
beyond the ends repeat the last one. It is the law of local operators, such as a short time step.

All windows are columns of the largest one, so sums over points are computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..spaces.sampled import Sampled, resampling
from .per_task import PerTask, TaskFit
from .systems import identity_like

REACHES = (2, 7, 20)
INNER = 2  # reach of the values whose products take part
RIDGES = (1e-9, 1e-6, 1e-4, 1e-2)
FIRST_RIDGE = 1e-6  # with which the window is chosen
FOLDS = 20  # examples are left out in so many groups, one by one if there are fewer
ROWS = 60_000  # equations of the law, about
CHOOSING_ROWS = 4_000  # equations that choose window and ridge, about


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
            reach, products, share = self._choose(f, y)
        units = {"mean": mean, "size": size, "offset": offset}
        return self._solved(f, y, reach, products, share, units)

    def _choose(self, f: Tensor, y: Tensor) -> tuple[int, bool, float]:
        """The reach, whether products take part, and the ridge as a share of squares."""
        stride = max(1, len(f) * self.U.points // CHOOSING_ROWS)
        widest, y = self._features(f, self.reaches[-1], True, stride), y[:, ::stride]
        sums, windows = _sums(widest, y), [(h, p) for h in self.reaches for p in (False, True)]
        tried = {w: _error(widest, y, sums, self._columns(*w), FIRST_RIDGE) for w in windows}
        reach, products = min(tried, key=tried.__getitem__)
        index = self._columns(reach, products)
        of_ridge = {r: _error(widest, y, sums, index, r) for r in RIDGES}
        return reach, products, min(of_ridge, key=of_ridge.__getitem__)

    def refit_task(
        self, fit: WindowFit, v: Float[Tensor, "n d"], u: Float[Tensor, "n q"]
    ) -> WindowFit:
        """Window, ridge and units stay."""
        f, y = self._curves((v - fit.mean) / fit.size), self._outputs(u - fit.offset)
        units = {"mean": fit.mean, "size": fit.size, "offset": fit.offset}
        return self._solved(f, y, fit.reach, fit.products, fit.ridge, units)

    def answer_task(self, fit: WindowFit, v: Float[Tensor, "m d"]) -> Float[Tensor, "m q"]:
        f = self._features(self._curves((v - fit.mean) / fit.size), fit.reach, fit.products, 1)
        return (f @ fit.w).mT.flatten(1) + fit.offset

    def _solved(
        self,
        f: Tensor,
        y: Tensor,
        reach: int,
        products: bool,
        ridge: float | Tensor,
        units: dict[str, Tensor],
    ) -> WindowFit:
        stride = max(1, len(f) * self.U.points // ROWS)
        features = self._features(f, reach, products, 1)
        sums = _sums(features[:, ::stride], y[:, ::stride])
        ridge = ridge if isinstance(ridge, Tensor) else ridge * sums.unit()
        if len(f) > 1:
            residual = (y - features @ sums.without(ridge)[sums.fold]).mT.flatten(1)
        else:
            residual = y.mT.flatten(1) + units["offset"]
        return WindowFit(
            residual=residual,
            reach=reach,
            products=products,
            ridge=ridge,
            w=sums.law(ridge),
            **units,
        )

    def _curves(self, v: Float[Tensor, "n d"]) -> Float[Tensor, "n c p"]:
        """Inputs at the positions of U."""
        return v.unflatten(-1, (self.V.channels, -1)) @ self.onto.to(v).T

    def _outputs(self, u: Float[Tensor, "n q"]) -> Float[Tensor, "n p e"]:
        return u.unflatten(-1, (self.U.channels, -1)).mT

    def _features(
        self, f: Float[Tensor, "n c p"], reach: int, products: bool, stride: int
    ) -> Float[Tensor, "n p d"]:
        """1, x, x^2; distant blocks; products; then the window, from the outside in."""
        points, inner = f.shape[-1], min(reach, INNER)
        index = torch.arange(points, device=f.device)[::stride]

        def shifted(k: int) -> Float[Tensor, "n c s"]:
            return f[..., (index + k).clamp(0, points - 1)]

        parts = [self.place[::stride].to(f).T.expand(f.shape[0], -1, -1)]
        if self.far:
            parts.append(_blocks(f)[..., ::stride].flatten(1, 2))
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


def _sums(features: Float[Tensor, "n s d"], y: Float[Tensor, "n s e"]) -> Sums:
    n = len(features)
    fold = torch.arange(n, device=y.device) % FOLDS
    gram, moment = features.mT @ features, features.mT @ y
    if n > FOLDS:
        gram = torch.zeros_like(gram[:FOLDS]).index_add(0, fold, gram)
        moment = torch.zeros_like(moment[:FOLDS]).index_add(0, fold, moment)
    return Sums(gram, moment, fold)


def _error(features: Tensor, y: Tensor, sums: Sums, index: Tensor, share: float) -> float:
    """The squared error in examples that are left out, with a ridge that is a share of squares."""
    laws = torch.zeros(len(sums.moment), features.shape[-1], y.shape[-1], dtype=y.dtype)
    part = sums.columns(index)
    laws[:, index] = part.without(share * part.unit())
    return float((y - features @ laws[sums.fold]).square().sum())


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
