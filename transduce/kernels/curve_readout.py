"""A closed-form read-out over the channels of a curve network, in units of the examples.

    u(x) = m_u(x) + s sum_jk W_jk h_j(v)(x) / t_j P_k(x)

m_u is the mean of the examples' u, s the root mean square of what varies about it, t_j that of
channel j, P_k the Legendre polynomials: the law may vary slowly with x. Of several channels, each
of v has channels h of its own, and each of u a law of its own. With f the vector of all h_j / t_j
P_k and <., .> means over x, n examples give

    W = A^-1 sum_i <(u_i - m_u) / s, f_i>,      A = sum_i <f_i, f_i> + mu diag(lambda(z))

lambda is learned, and mu is chosen by leave-one-out error. Residuals are exact for a refit that
keeps m, a, c, s, t, z and mu, and leaves the example out of W and of m_u:

    u_i - m_u,-i = n / (n - 1) (u_i - m_u)

With X_i the rows of f_i in the eigenbasis of A, H_i = X_i A^-1 X_i^T and M_-i the moments without
example i, its answer is (I - H_i)^-1 X_i A^-1 M_-i.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..spaces import Sampled, Space
from ..spaces.sampled import resampling, spline_matrix
from ..types import TransduceError
from .curve_network import CurveNetwork
from .kappa import Fit, Kappa, Reading
from .systems import LOG_UNIT

TINY = 1e-30
SMALLEST, LARGEST = 1e-11, 1e6  # of lambda
FACTORS = (1e-4, 1e-2, 1.0, 1e2, 1e4)  # mu
ROWS = 4000  # equations that W is solved from, about
BOUND = 20.0  # of inputs of the network in units of the examples, beyond which they grow slowly
CHUNK = 256  # functions that the network takes at once
MOST_POINTS, FEWEST_POINTS = 100, 24  # of each example among these


def legendre(count: int, x: Float[Tensor, " p"]) -> Float[Tensor, "k p"]:
    """The first Legendre polynomials on [0, 1]."""
    t = 2 * x - 1
    found = [torch.ones_like(t), t]
    for k in range(1, count - 1):
        found.append(((2 * k + 1) * t * found[-1] - k * found[-2]) / (k + 1))
    return torch.stack(found[:count])


@dataclass(frozen=True)
class Units:
    """Means and sizes of the examples. b is the number of tasks times that of channels of u.

    Attributes:
        m: mean of v on the network's grid.
        a: root mean square of v.
        c: root mean square of v - m.
        m_u: mean of u.
        s: root mean square of u - m_u.
    """

    m: Float[Tensor, "b 1 i p"]
    a: Float[Tensor, "b 1 i 1"]
    c: Float[Tensor, "b 1 i 1"]
    m_u: Float[Tensor, "b 1 q"]
    s: Float[Tensor, "b 1 1"]


@dataclass(frozen=True, kw_only=True)
class CurveFit(Fit):
    """What queries need: units, summaries, sizes t of channels, the read-out, and the factor mu of
    the ridge."""

    units: Units
    z: Float[Tensor, "b i s"]
    t: Float[Tensor, "b 1 1 c"]
    W: Float[Tensor, "b d"]
    mu: Float[Tensor, " b"] | None = None


class CurveChoice(NamedTuple):
    """What a fit chooses: units, summaries, sizes of channels, and the factor of the ridge."""

    units: Units
    z: Tensor
    t: Tensor
    mu: Tensor | None


class CurveReadout(Kappa[CurveFit, Reading]):
    """Channels of a network with a closed-form read-out, between curves.

    Args:
        V: space of the inputs.
        U: space of the outputs.
        network: computes the channels.
        polynomials: number of Legendre polynomials that multiply each channel.
    """

    leaves_out = True
    chunk = 64
    inward: Tensor
    inward_u: Tensor
    outward: Tensor
    legendre: Tensor

    def __init__(self, V: Sampled, U: Sampled, network: CurveNetwork, polynomials: int = 5):
        super().__init__()
        self.V, self.U, self.network, self.polynomials = V, U, network, polynomials
        size = network.size * polynomials
        self.log_ridge = nn.Parameter(torch.full((size,), -0.8))
        self.ridge_of_z = nn.Linear(network.summary, 1)
        nn.init.zeros_(self.ridge_of_z.weight)
        nn.init.zeros_(self.ridge_of_z.bias)
        own = tuple(torch.linspace(0, 1, network.points, dtype=torch.float64).tolist())
        x = torch.tensor(U.x, dtype=torch.float64)
        self.register_buffer("inward", resampling(V.x, own), persistent=False)
        self.register_buffer("inward_u", resampling(U.x, own), persistent=False)
        self.register_buffer("outward", spline_matrix(own, U.x), persistent=False)
        self.register_buffer("legendre", legendre(polynomials, x), persistent=False)
        self.same_grid = own == U.x

    def between(self, V: Space, U: Space) -> CurveReadout:
        """The same network and ridges between other curves."""
        if not (isinstance(V, Sampled) and isinstance(U, Sampled)):
            raise TransduceError(
                f"a read-out between {V.config()} and {U.config()}; expected curves at positions "
                "x. Use Sampled spaces."
            )
        other = CurveReadout(V, U, self.network, self.polynomials)
        other.log_ridge, other.ridge_of_z = self.log_ridge, self.ridge_of_z
        return other.train(self.training)

    def ridge(self, z: Float[Tensor, "b i s"]) -> Float[Tensor, "b d"]:
        """lambda."""
        logs = self.log_ridge.double() + self.ridge_of_z(z).double()
        return (LOG_UNIT * logs).exp().clamp(SMALLEST, LARGEST).flatten(1)

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> CurveFit:
        f, y, there = self._inputs(v), self._outputs(u), self._there(u, mask)
        units = measure(f, y, there)
        z = self._summary(f, y, units, there)
        h = self._channels(f, units, z)
        t = sizes(h, there)
        return self._fit(h / t, y, there, CurveChoice(units, z, t, None))

    def refit(
        self,
        fit: CurveFit,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> CurveFit:
        """Units, summaries and mu stay, but for the mean of u."""
        f, y, there = self._inputs(v), self._outputs(u), self._there(u, mask)
        units = replace(fit.units, m_u=measure(f, y, there).m_u)
        h = self._channels(f, units, fit.z) / fit.t
        return self._fit(h, y, there, CurveChoice(units, fit.z, fit.t, fit.mu))

    def forward(self, fit: CurveFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        h = self._channels(self._inputs(v), fit.units, fit.z) / fit.t
        answers = (h * self._law(fit.W.to(h))[:, None]).sum(-1)
        return self._functions(answers.to(v) * fit.units.s + fit.units.m_u).to(v)

    def deviations(self, fit: CurveFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """The same for all queries."""
        return torch.ones(v.shape[:2], dtype=torch.float64, device=v.device)

    def _inputs(self, v: Float[Tensor, "b n d_v"]) -> Float[Tensor, "k n i p"]:
        """v on the network's grid, once for each channel of u."""
        f = v.unflatten(-1, (self.V.channels, -1)) @ self.inward.to(v).T
        return f.repeat_interleave(self.U.channels, 0)

    def _outputs(self, u: Float[Tensor, "b n d_u"]) -> Float[Tensor, "k n q"]:
        """The channels of u as tasks."""
        return u.unflatten(-1, (self.U.channels, -1)).movedim(2, 1).flatten(0, 1)

    def _functions(self, y: Float[Tensor, "k n q"]) -> Float[Tensor, "b n d_u"]:
        """The inverse of `_outputs`."""
        return y.unflatten(0, (-1, self.U.channels)).movedim(1, 2).flatten(2)

    def _there(self, u: Tensor, mask: Tensor | None) -> Float[Tensor, "k n"]:
        there = torch.ones_like(u[..., 0]) if mask is None else mask.to(u.dtype)
        return there.repeat_interleave(self.U.channels, 0)

    def _summary(self, f: Tensor, y: Tensor, units: Units, there: Tensor) -> Tensor:
        weight, inputs = self.network.lift.weight, self.V.channels
        y = ((y - units.m_u) / units.s) @ self.inward_u.to(y).T
        parts = (
            _merged(f / units.a),
            _merged((f - units.m) / units.c),
            y.repeat_interleave(inputs, 0),
            there.repeat_interleave(inputs, 0),
        )
        return self.network.z(*(part.to(weight) for part in parts)).unflatten(0, (-1, inputs))

    def _channels(self, f: Tensor, units: Units, z: Tensor) -> Float[Tensor, "k n q c"]:
        """The channels at the positions of U, those of all channels of v in one axis."""
        parts = [self._part(g, units, z) for g in f.split(CHUNK, 1)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def _part(self, f: Tensor, units: Units, z: Tensor) -> Tensor:
        weight = self.network.lift.weight
        raw, centred = _merged(f / units.a), _merged((f - units.m) / units.c)
        h = self.network(bounded(raw).to(weight), bounded(centred).to(weight), z.flatten(0, 1))
        h = h if self.same_grid else self.outward.to(h) @ h
        return h.unflatten(0, (-1, self.V.channels)).movedim(1, 3).flatten(3)

    def _features(self, h: Float[Tensor, "k n q c"], stride: int) -> Float[Tensor, "k n q d"]:
        """Channels times polynomials at every `stride`-th position, in double precision."""
        P = self.legendre[:, ::stride].T.to(h)
        return (h[:, :, ::stride, :, None] * P[:, None]).flatten(-2).double()

    def _law(self, W: Float[Tensor, "*k d"]) -> Float[Tensor, "*k q c"]:
        """The factor of each channel at each position of U."""
        return (W.unflatten(-1, (-1, self.polynomials)) @ self.legendre.to(W)).mT

    def _fit(self, h: Tensor, y: Tensor, there: Tensor, choice: CurveChoice) -> CurveFit:
        units, z, t, mu = choice
        n, points = y.shape[1], self.U.points
        stride = max(1, round(points / min(MOST_POINTS, max(FEWEST_POINTS, ROWS // n))))
        centred = ((y - units.m_u) / units.s).double() * there[..., None].double()
        target = centred[..., ::stride]
        root = target.shape[-1] ** 0.5
        X = self._features(h, stride) * (there[..., None, None].double() / root)
        ridge, target = self.ridge(z), target / root
        if self.training:
            rows = X.flatten(1, 2)
            A = rows.mT @ rows + torch.diag_embed(ridge)
            M = rows.mT @ target.flatten(1)[..., None]
            W = torch.cholesky_solve(M, torch.linalg.cholesky(A))[..., 0]
            return CurveFit(units=units, z=z, t=t, W=W)
        solved = solve_left_out(X / ridge[:, None, None].sqrt(), target, there.double(), mu)
        W, others = (w / ridge.sqrt() for w in (solved.W, solved.others.movedim(0, 1)))
        count = there.double().sum(1)[:, None, None]
        answers = (h * self._law(others.movedim(0, 1).to(h))).sum(-1).double()
        left_out = centred * count / (count - 1).clamp(min=1) - answers
        residual = left_out * units.s * there[..., None] if n > 1 else y
        return CurveFit(
            residual=self._functions(residual.to(y)),
            deviation=torch.ones(len(y) // self.U.channels, n, dtype=torch.float64),
            units=units,
            z=z,
            t=t,
            W=W,
            mu=solved.mu,
        )


class LeftOut(NamedTuple):
    """Read-outs of all examples, and of all but one."""

    W: Float[Tensor, "k d"]
    others: Float[Tensor, "k n d"]
    mu: Float[Tensor, " k"]


def solve_left_out(
    X: Float[Tensor, "k n q d"],
    y: Float[Tensor, "k n q"],
    there: Float[Tensor, "k n"],
    mu: Float[Tensor, " k"] | None,
) -> LeftOut:
    """Ridge regression of y on X with ridge mu, of least leave-one-out error if it is not given.
    y is centred by its mean over examples, which is left out as well."""
    rows = X.flatten(1, 2)
    s, Q = torch.linalg.eigh(rows.mT @ rows)
    s, X = s.clamp(min=0), X @ Q[:, None]
    share = y / (there.sum(1)[:, None, None] - 1).clamp(min=1)
    moment = (X * y[..., None]).sum((1, 2))
    others = moment[:, None] - ((y + share)[..., None] * X).sum(2)
    others = others + (X.sum(1)[:, None] * share[..., None]).sum(2)
    identity = torch.eye(y.shape[2], dtype=y.dtype, device=y.device)
    candidates = [torch.full_like(s[:, 0], mu) for mu in FACTORS] if mu is None else [mu]
    best: list[Tensor] = []
    for factor in candidates:
        inverse = 1 / (s + factor[:, None])
        scaled = X * inverse[:, None, None]
        answers = scaled @ others[..., None]
        answers = torch.linalg.solve(identity - scaled @ X.mT, answers)
        error = (
            (((y + share)[..., None] - answers) * there[..., None, None]).square().sum((1, 2, 3))
        )
        left = inverse[:, None] * (others + (X * answers).sum(2))
        found = [error, factor, inverse * moment, left]
        if not best:
            best = found
        else:
            better = error < best[0]
            best = [
                torch.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                for new, old in zip(found, best, strict=True)
            ]
    _, chosen, W, left = best
    return LeftOut((Q @ W[..., None])[..., 0], left @ Q.mT, chosen)


def sizes(h: Float[Tensor, "k n q c"], there: Float[Tensor, "k n"]) -> Float[Tensor, "k 1 1 c"]:
    """The root mean square of each channel over the examples that are there; at least a hundredth
    of that of all."""
    share = (there / there.sum(1, keepdim=True).clamp(min=1)).to(h)[..., None, None]
    squares = (h.square() * share).sum(1, keepdim=True).mean(2, keepdim=True)
    return torch.maximum(squares, 1e-4 * squares.mean(-1, keepdim=True)).add(1e-20).sqrt()


def bounded(f: Tensor) -> Tensor:
    """f, growing as a logarithm beyond `BOUND`."""
    excess = (f.abs() - BOUND).clamp(min=0)
    return f.clamp(-BOUND, BOUND) + f.sign() * excess.log1p()


def _merged(f: Float[Tensor, "k n i p"]) -> Float[Tensor, "ki n p"]:
    """Channels of v as tasks."""
    return f.movedim(2, 1).flatten(0, 1)


def measure(
    f: Float[Tensor, "k n i p"], y: Float[Tensor, "k n q"], there: Float[Tensor, "k n"]
) -> Units:
    """Means and sizes of the examples that are there."""
    share = (there / there.sum(1, keepdim=True).clamp(min=1))[..., None]

    def size(g: Tensor, share: Tensor) -> Tensor:
        return (g.square() * share).sum(1, keepdim=True).mean(-1, keepdim=True).sqrt()

    m, m_u = (f * share[..., None]).sum(1, keepdim=True), (y * share).sum(1, keepdim=True)
    a = size(f, share[..., None]).clamp(min=TINY)
    c = torch.maximum(size(f - m, share[..., None]), 1e-6 * a)
    return Units(m, a, c, m_u, size(y - m_u, share).clamp(min=TINY))
