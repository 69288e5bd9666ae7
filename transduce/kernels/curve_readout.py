"""A closed-form read-out over the channels of a curve network, in units of the examples.

    u(x) = m_u(x) + s sum_jk W_jk h_j(v)(x) / t_j P_k(x)

m_u is the mean of the examples' u, s the root mean square of what varies about it, t_j that of
channel j, P_k the Legendre polynomials: the law may vary slowly with x. Of several channels, each
of v has channels h of its own, and each of u a law of its own. With f the vector of all h_j / t_j
P_k and <., .> means over x, n examples give

    W = A^-1 sum_i <(u_i - m_u) / s, f_i>,      A = sum_i <f_i, f_i> + mu diag(lambda(z))

lambda is learned, and mu is chosen by leave-one-out error. An example that is left out is left out
of W, of m_u and of the choice of mu. m, a, c, s, t and z are kept:

    u_i - m_u,-i = n / (n - 1) (u_i - m_u)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..spaces import Sampled, Space
from ..spaces.splines import resampling, spline_matrix
from ..types import TransduceError
from .comparison import evenly
from .curve_network import CurveNetwork
from .curve_units import Units, bounded, legendre, measure, sizes
from .kappa import Fit, Kappa, Reading
from .left_out import solve_left_out
from .systems import LOG_UNIT

SMALLEST, LARGEST = 1e-11, 1e6  # of lambda
ROWS = 640  # equations that W is solved from, about
SUMMARISED = 32  # examples that the summary sees at most
CHUNK = 32  # functions that the network takes at once
MOST_POINTS, FEWEST_POINTS = 100, 12  # of each example among these
GOLDEN = (5**0.5 - 1) / 2  # multiples of it are spread evenly modulo 1


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
        few = evenly(f.shape[1], SUMMARISED)
        z = self._summary(f[:, few], y[:, few], units, there[:, few])
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
        h = self._part(self._inputs(v), fit.units, fit.z) / fit.t
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

    def _features(
        self, h: Float[Tensor, "k n q c"], at: Int[Tensor, "n s"]
    ) -> Float[Tensor, "k n s d"]:
        """Channels times polynomials at some positions of each example, in double precision."""
        P = self.legendre[:, at].movedim(0, -1).to(h)
        some = h[:, torch.arange(len(at), device=at.device)[:, None], at]
        return (some[..., None] * P[:, :, None]).flatten(-2).double()

    def _law(self, W: Float[Tensor, "*k d"]) -> Float[Tensor, "*k q c"]:
        """The factor of each channel at each position of U."""
        return (W.unflatten(-1, (-1, self.polynomials)) @ self.legendre.to(W)).mT

    def _fit(self, h: Tensor, y: Tensor, there: Tensor, choice: CurveChoice) -> CurveFit:
        units, z, t, mu = choice
        n = y.shape[1]
        at = staggered(n, self.U.points, min(MOST_POINTS, max(FEWEST_POINTS, ROWS // n)))
        at = at.to(y.device)
        centred = ((y - units.m_u) / units.s).double() * there[..., None].double()
        target = centred.gather(2, at.expand(len(y), -1, -1))
        root = target.shape[-1] ** 0.5
        X = self._features(h, at) * (there[..., None, None].double() / root)
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
        residual = torch.where(count > 1, left_out * units.s, y) * there[..., None]
        return CurveFit(
            residual=self._functions(residual.to(y)),
            deviation=there[:: self.U.channels].double().new_ones(len(y) // self.U.channels, n),
            units=units,
            z=z,
            t=t,
            W=W,
            mu=solved.mu,
        )


def staggered(n: int, points: int, most: int) -> Int[Tensor, "n s"]:
    """At most `most` of the points for each of n examples, evenly spaced, and others for each."""
    s = min(points, most)
    shift = (GOLDEN * torch.arange(n, dtype=torch.float64)) % 1
    return ((torch.arange(s) + shift[:, None]) * points / s).long()


def _merged(f: Float[Tensor, "k n i p"]) -> Float[Tensor, "ki n p"]:
    """Channels of v as tasks."""
    return f.movedim(2, 1).flatten(0, 1)
