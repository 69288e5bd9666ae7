"""A closed-form read-out over the channels of a field network, in units of the examples.

    u_c = m_c + s_c R sum_jk W_cjk h_j(v) / t_j P_k

m_c is the mean of channel c of the examples' u, s_c the root mean square of what varies about it,
t_j that of channel h_j, and P_k are products of Legendre polynomials of x and y: the law may vary
slowly. Channels are on a uniform grid, of as many points along each axis as v or u has, up to a
largest number; R moves fields from there to the grid of u. All channels of v share the channels h,
and each channel of u has a law of its own. With f the vector of all h_j / t_j P_k and <., .> means
over points, n examples give

    W_c = A^-1 sum_i <R'(u_ic - m_c) / s_c, f_i>,      A = sum_i <f_i, f_i> + mu diag(lambda(z))

R' moves fields to the grid of the channels. lambda is learned, and mu is chosen by leave-one-out
error. An example that is left out is left out of W, of m and of the choice of mu.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..spaces import SampledFields, Space
from ..types import TransduceError
from .comparison import evenly
from .curve_readout import LARGEST, SMALLEST, SUMMARISED, staggered
from .curve_units import TINY, bounded, legendre
from .field_network import CHANNELS, FieldNetwork
from .kappa import Fit, Kappa, Reading
from .left_out import solve_left_out
from .systems import LOG_UNIT

ROWS = 1600  # equations that W is solved from, about
MOST_POINTS, FEWEST_POINTS = 128, 12  # of each example among these
CHUNK = 32  # functions that the network takes at once


@dataclass(frozen=True)
class FieldUnits:
    """Means and sizes of the examples.

    Attributes:
        m: mean of v on the grid of the channels.
        a: root mean square of v.
        c: root mean square of v - m.
        m_u: mean of u on its own grid.
        s: root mean square of u - m_u.
    """

    m: Float[Tensor, "b 1 i p q"]
    a: Float[Tensor, "b 1 i 1 1"]
    c: Float[Tensor, "b 1 i 1 1"]
    m_u: Float[Tensor, "b 1 o x y"]
    s: Float[Tensor, "b 1 o 1 1"]


class FieldChoice(NamedTuple):
    """What a fit chooses: units, the summary, sizes of channels, and the factor of the ridge."""

    units: FieldUnits
    z: Tensor
    t: Tensor
    mu: Tensor | None


@dataclass(frozen=True, kw_only=True)
class FieldFit(Fit):
    """What queries need: the choice, and the read-out of each channel of u."""

    units: FieldUnits
    z: Float[Tensor, "b s"]
    t: Float[Tensor, "b 1 k 1 1"]
    W: Float[Tensor, "b o d"]
    mu: Float[Tensor, " bo"] | None = None


class FieldReadout(Kappa[FieldFit, Reading]):
    """Channels of a network with a closed-form read-out, between fields.

    Args:
        V: space of the inputs, of at most two channels.
        U: space of the outputs, likewise.
        network: computes the channels.
        degree: largest total degree of the polynomials that multiply each channel.
    """

    leaves_out = True
    chunk = 32
    polynomials: Tensor

    def __init__(self, V: SampledFields, U: SampledFields, network: FieldNetwork, degree: int = 2):
        super().__init__()
        if max(V.channels, U.channels) > CHANNELS:
            raise TransduceError(
                f"a read-out between fields of {V.channels} and {U.channels} channels; expected at "
                f"most {CHANNELS}. Leave the read-out out."
            )
        self.V, self.U, self.network, self.degree = V, U, network, degree
        sides = (min(max(pair), network.points) for pair in zip(V.grid, U.grid, strict=True))
        own = SampledFields(*sides)
        self.inward, self.inward_u, self.outward = V.onto(own), U.onto(own), own.onto(U)
        P = products(degree, *(torch.tensor(axis, dtype=torch.float64) for axis in own.axes))
        self.register_buffer("polynomials", P, persistent=False)
        self.log_ridge = nn.Parameter(torch.full((network.size * len(P),), -0.8))
        self.ridge_of_z = nn.Linear(network.summary, 1)
        nn.init.zeros_(self.ridge_of_z.weight)
        nn.init.zeros_(self.ridge_of_z.bias)

    def between(self, V: Space, U: Space) -> FieldReadout:
        """The same network and ridges between other fields."""
        if not (isinstance(V, SampledFields) and isinstance(U, SampledFields)):
            raise TransduceError(
                f"a read-out between {V.config()} and {U.config()}; expected fields on grids. Use "
                "SampledFields."
            )
        other = FieldReadout(V, U, self.network, self.degree)
        other.log_ridge, other.ridge_of_z = self.log_ridge, self.ridge_of_z
        return other.train(self.training)

    def ridge(self, z: Float[Tensor, "b s"]) -> Float[Tensor, "b d"]:
        """lambda."""
        logs = self.log_ridge.double() + self.ridge_of_z(z).double()
        return (LOG_UNIT * logs).exp().clamp(SMALLEST, LARGEST)

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> FieldFit:
        there = _there(u, mask)
        f, y = self.inward(self.V.shaped(v)), self.U.shaped(u)
        units = measured(f, y, there)
        few = evenly(v.shape[1], SUMMARISED)
        z = self._summary(f[:, few], y[:, few], units, there[:, few])
        h = self._channels(f, units, z)
        return self._fit(h, y, there, FieldChoice(units, z, sizes(h, there), None))

    def refit(
        self,
        fit: FieldFit,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> FieldFit:
        """Units, the summary and mu stay, but for the mean of u."""
        there = _there(u, mask)
        f, y = self.inward(self.V.shaped(v)), self.U.shaped(u)
        units = replace(fit.units, m_u=mean(y, there))
        h = self._channels(f, units, fit.z)
        return self._fit(h, y, there, FieldChoice(units, fit.z, fit.t, fit.mu))

    def forward(self, fit: FieldFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        h = self._part(self.inward(self.V.shaped(v)), fit.units, fit.z) / fit.t
        answers = self._read(h, fit.W[:, None]).to(v)
        return (answers * fit.units.s + fit.units.m_u).flatten(2).to(v)

    def deviations(self, fit: FieldFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """The same for all queries."""
        return torch.ones(v.shape[:2], dtype=torch.float64, device=v.device)

    def _summary(self, f: Tensor, y: Tensor, units: FieldUnits, there: Tensor) -> Tensor:
        weight = self.network.lift.weight
        u = self.inward_u((y - units.m_u) / units.s)
        parts = (_two(f / units.a), _two((f - units.m) / units.c), _two(u), there)
        return self.network.z(*(part.to(weight) for part in parts))

    def _channels(
        self, f: Float[Tensor, "b n i p q"], units: FieldUnits, z: Tensor
    ) -> Float[Tensor, "b n k p q"]:
        """The channels on their grid."""
        parts = [self._part(g, units, z) for g in f.split(CHUNK, 1)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def _part(self, f: Float[Tensor, "b n i p q"], units: FieldUnits, z: Tensor) -> Tensor:
        """The channels of few fields."""
        weight = self.network.lift.weight
        raw, centred = (bounded(_two(g)).to(weight) for g in (f / units.a, (f - units.m) / units.c))
        return self.network(raw, centred, z)

    def _read(
        self, h: Float[Tensor, "b n k p q"], W: Float[Tensor, "b w o d"]
    ) -> Float[Tensor, "b n o x y"]:
        """sum_jk W_jk h_j P_k on the grid of u; one law for all functions, or one for each."""
        law = W.to(h).unflatten(-1, (h.shape[2], -1)) @ self.polynomials.to(h).flatten(1)
        answers = torch.einsum(
            "bnkp,bnokp->bnop", h.flatten(3), law.expand(-1, h.shape[1], *[-1] * 3)
        )
        return self.outward(answers.unflatten(-1, h.shape[-2:]))

    def _features(
        self, h: Float[Tensor, "b n k p q"], at: Int[Tensor, "n s"]
    ) -> Float[Tensor, "b n s d"]:
        """Channels times polynomials at some points of each example, in double precision."""
        P = self.polynomials.flatten(1)[:, at].movedim(0, -1).to(h)  # (n, s, e)
        index = at[None, :, None].expand(len(h), -1, h.shape[2], -1)
        some = h.flatten(3).gather(3, index).mT  # (b, n, s, k)
        return (some[..., None] * P[:, :, None]).flatten(-2).double()

    def _fit(self, h: Tensor, y: Tensor, there: Tensor, choice: FieldChoice) -> FieldFit:
        units, z, t, mu = choice
        h, n, outputs = h / t, y.shape[1], y.shape[2]
        most = min(MOST_POINTS, max(FEWEST_POINTS, ROWS // n))
        at = staggered(n, h[0, 0, 0].numel(), most).to(y.device)
        shown = there[..., None, None, None].double()
        centred = ((y - units.m_u) / units.s).double() * shown
        root = at.shape[1] ** 0.5
        target = self.inward_u(centred).flatten(3).movedim(2, 1)  # (b, o, n, points)
        target = target.gather(3, at.expand(*target.shape[:2], -1, -1)) / root
        X = self._features(h, at) * (there[..., None, None].double() / root)
        ridge = self.ridge(z)
        if self.training:
            rows = X.flatten(1, 2)
            A = rows.mT @ rows + torch.diag_embed(ridge)
            M = rows.mT @ target.flatten(2).mT
            W = torch.cholesky_solve(M, torch.linalg.cholesky(A)).mT
            return FieldFit(units=units, z=z, t=t, W=W)
        X = (X / ridge[:, None, None].sqrt()).repeat_interleave(outputs, 0)
        counted = there.double().repeat_interleave(outputs, 0)
        solved = solve_left_out(X, target.flatten(0, 1), counted, mu)
        W, others = (
            w.unflatten(0, (-1, outputs)) / scale.sqrt()
            for w, scale in ((solved.W, ridge[:, None]), (solved.others, ridge[:, None, None]))
        )
        count = there.double().sum(1)[:, None, None, None, None]
        left_out = centred * count / (count - 1).clamp(min=1) - self._left_out(
            h, others.movedim(2, 1)
        )
        residual = torch.where(count > 1, left_out * units.s, y) * shown
        return FieldFit(
            residual=residual.flatten(2).to(y),
            deviation=there.double().new_ones(there.shape),
            units=units,
            z=z,
            t=t,
            W=W,
            mu=solved.mu,
        )

    def _left_out(
        self, h: Float[Tensor, "b n k p q"], others: Float[Tensor, "b n o d"]
    ) -> Float[Tensor, "b n o x y"]:
        """The answers at the examples, each by the law without it."""
        each = zip(h.split(CHUNK, 1), others.split(CHUNK, 1), strict=True)
        return torch.cat([self._read(*part) for part in each], 1).double()


def measured(
    f: Float[Tensor, "b n i p q"], y: Float[Tensor, "b n o x y"], there: Float[Tensor, "b n"]
) -> FieldUnits:
    """Means and sizes of the examples that are there."""
    m, m_u = mean(f, there), mean(y, there)
    a = size(f, there).clamp(min=TINY)
    c = torch.maximum(size(f - m, there), 1e-6 * a)
    return FieldUnits(m, a, c, m_u, size(y - m_u, there).clamp(min=TINY))


def mean(f: Float[Tensor, "b n c p q"], there: Float[Tensor, "b n"]) -> Tensor:
    """The mean over functions."""
    return (f * _share(there).to(f)).sum(1, keepdim=True)


def size(f: Float[Tensor, "b n c p q"], there: Float[Tensor, "b n"]) -> Float[Tensor, "b 1 c 1 1"]:
    """The root mean square of each channel."""
    squares = (f.square() * _share(there).to(f)).sum(1, keepdim=True)
    return squares.mean((-2, -1), keepdim=True).sqrt()


def sizes(h: Float[Tensor, "b n k p q"], there: Float[Tensor, "b n"]) -> Float[Tensor, "b 1 k 1 1"]:
    """The root mean square of each channel; at least a hundredth of that of all."""
    squares = (h.square() * _share(there).to(h)).sum(1, keepdim=True).mean((-2, -1), keepdim=True)
    return torch.maximum(squares, 1e-4 * squares.mean(2, keepdim=True)).add(1e-20).sqrt()


def products(degree: int, x: Float[Tensor, " p"], y: Float[Tensor, " q"]) -> Float[Tensor, "e p q"]:
    """Products of Legendre polynomials of x and of y, up to a total degree."""
    P, Q = legendre(degree + 1, x), legendre(degree + 1, y)
    pairs = [(j, k) for j in range(degree + 1) for k in range(degree + 1 - j)]
    return torch.stack([torch.outer(P[j], Q[k]) for j, k in pairs])


def _share(there: Float[Tensor, "b n"]) -> Float[Tensor, "b n 1 1 1"]:
    return (there / there.sum(1, keepdim=True).clamp(min=1))[..., None, None, None]


def _there(u: Tensor, mask: Tensor | None) -> Float[Tensor, "b n"]:
    return torch.ones_like(u[..., 0]) if mask is None else mask.to(u.dtype)


def _two(f: Float[Tensor, "b n c p q"]) -> Float[Tensor, "b n two p q"]:
    """As many channels as the network takes, those that are added being zero."""
    return nn.functional.pad(f, (0, 0, 0, 0, 0, CHANNELS - f.shape[2]))
