"""A network's channels with a read-out that the examples determine in closed form.

    O(v)(x) = W h(v)(x),        W ~ N(W_0, diag(1 / lambda)),       B = W_0 h

h are the channels of a network that is learned once for all operators; each operator has its own
read-out W. With <f, g> the mean of f(x) g(x)^T over x, n examples give

    W = W_0 + (sum_i <u_i - B(v_i), h(v_i)>) A^-1,      A = sum_i <h(v_i), h(v_i)> + diag(lambda)

This is a Gaussian process with mean B and kernel K(v', v)(r) = <r, h(v')> A^-1 h(v). The kernel
compares functions point by point, so every point of u_i is evidence and one example may do. Sums
over examples are all that W needs: leaving some out costs a system as small as the number of
channels.

If the network takes a summary of the examples, an example that is left out of W is not left out of
the summary. Its residual is then a little too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..spaces import space_from_config
from .kappa import Fit, Kappa, Reading
from .network import SpectralNetwork
from .systems import LOG_UNIT, SMALLEST_RIDGE, inverse_factor


@dataclass(frozen=True, kw_only=True)
class ReadoutFit(Fit):
    """What queries and bands need.

    Attributes:
        z: the summary of the examples; None if the network takes none.
        W: the read-out.
        factor: F with F^T F = A^-1; None if the read-out is not regressed.
    """

    residual: Float[Tensor, "b n q"]
    deviation: Float[Tensor, "b n"]
    z: Float[Tensor, "b s"] | None
    W: Float[Tensor, "b e c"]
    factor: Float[Tensor, "b c c"] | None


@dataclass(frozen=True)
class Moments(Reading):
    """Of each function, the channels' coefficients and what it adds to the sums of W.

    as_answered: <h, h>, <u - B, h> and |u - B|^2 of the coefficients, which give the error of any
    read-out.
    """

    channels: Float[Tensor, "c n d"]
    gram: Float[Tensor, "n c c"]
    moment: Float[Tensor, "n e c"]
    as_answered: tuple[Float[Tensor, "n c c"], Float[Tensor, "n e c"], Float[Tensor, " n"]]


class Readout(Kappa[ReadoutFit, Reading]):
    """Channels of a network with a closed-form read-out.

    Args:
        network: computes the channels.
        readout: whether W is regressed; if not, it is W_0 for every operator.
    """

    leaves_out = True
    chunk = 64

    def __init__(self, network: SpectralNetwork, readout: bool = True):
        super().__init__()
        self.network, self.readout = network, readout
        self.W_0 = nn.Parameter(torch.zeros(network.U.channels, network.size))
        start = torch.full((network.size,), -7.0 / LOG_UNIT)
        self.log_ridge = nn.Parameter(start, requires_grad=readout)
        self.scalar = space_from_config({**network.U.config(), "channels": 1})

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        self.network.standardised(spread, size)

    @property
    def ridge(self) -> Float[Tensor, " c"]:
        """lambda."""
        return (LOG_UNIT * self.log_ridge.double()).exp().clamp(min=SMALLEST_RIDGE)

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> ReadoutFit:
        there = torch.ones_like(u[..., 0]) if mask is None else mask.to(u.dtype)
        inputs, outputs = self.network.inputs(v), self.network.outputs(u)
        z = self.network.z(inputs, outputs, there)
        return self._fit(u, outputs, self.network(inputs, z), z, there)

    def refit(
        self,
        fit: ReadoutFit,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> ReadoutFit:
        """The summary stays that of `fit`."""
        there = torch.ones_like(u[..., 0]) if mask is None else mask.to(u.dtype)
        h = self.network(self.network.inputs(v), fit.z)
        return self._fit(u, self.network.outputs(u), h, fit.z, there)

    def _fit(
        self,
        u: Tensor,
        outputs: Tensor,
        h: Float[Tensor, "b n c p"],
        z: Tensor | None,
        there: Float[Tensor, "b n"],
    ) -> ReadoutFit:
        factor: Tensor | None = None
        if self.readout:
            gram, moment = moments(h, outputs.flatten(3) - self.W_0 @ h, there)
            factor = inverse_factor(gram.sum(1) + torch.diag(self.ridge))
            W = self._posterior(moment.sum(1), factor)
            without = inverse_factor(sum_of_others(gram) + torch.diag(self.ridge))
            others = self._posterior(sum_of_others(moment), without)
            deviation = spread_of(without, gram)
        else:
            W = self.W_0.expand(len(u), -1, -1)
            others, deviation = W[:, None], torch.ones_like(there, dtype=torch.float64)
        residual = (u - self.network.coefficients(others @ h)) * there[..., None]
        return ReadoutFit(residual=residual, deviation=deviation, z=z, W=W, factor=factor)

    def forward(self, fit: ReadoutFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        h = self.network(self.network.inputs(v), fit.z)
        return self.network.coefficients(fit.W[:, None] @ h)

    def deviations(self, fit: ReadoutFit, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """The root mean square over x of the standard deviation of W h(v)(x), in units of the
        noise."""
        there = torch.ones_like(v[..., 0])
        if fit.factor is None:
            return there.double()
        h = self.network(self.network.inputs(v), fit.z)
        return spread_of(fit.factor[:, None], moments(h, h[:, :, :0], there)[0])

    def read(self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"] | None) -> Reading:
        """Moments, unless channels or outputs differ between sets of examples."""
        if self.network.summary or u is None:
            return Reading(v)
        network = self.network
        h, outputs = network(network.inputs(v), None), network.outputs(u).flatten(3)
        gram, moment = moments(h, outputs - self.W_0 @ h, torch.ones_like(u[..., 0]))
        channels = self.scalar.encode(h[0].unflatten(2, network.grid)).double()
        target = (u[0] / network.unit).unflatten(1, (network.U.channels, -1)).double()
        rest = target - self.W_0.double() @ channels
        as_answered = channels @ channels.mT, rest @ channels.mT, rest.square().sum((1, 2))
        ordered = channels.to(h).movedim(1, 0).contiguous()
        return Moments(v, ordered, gram[0], moment[0], as_answered)

    def split(
        self,
        reading: Reading,
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n d_u"]:
        """The examples of each task add their moments; leaving one out takes its own away."""
        if not isinstance(reading, Moments):
            return super().split(reading, u, mask, carry)
        A, M = self._sums(reading, mask)
        W = self._posterior(M, inverse_factor(A))
        answers = u + self._read_out("bec,cnd->bned", W, reading)
        if not carry:
            return answers
        there = mask[..., None, None].double() * self.readout
        without = inverse_factor(A[:, None] - there * reading.gram)
        others = self._posterior(M[:, None] - there * reading.moment, without)
        residual = u - self._read_out("bnec,cnd->bned", others, reading)
        return torch.where(mask[..., None], residual, answers)

    def squared_errors(
        self, reading: Reading, mask: Bool[Tensor, "b n"]
    ) -> Float[Tensor, "b n"] | None:
        """|u - B - dW h|^2 = |u - B|^2 - 2 <dW, <u - B, h>> + <dW <h, h>, dW>"""
        if not isinstance(reading, Moments):
            return None
        A, M = self._sums(reading, mask)
        factor, (gram, moment, squares) = inverse_factor(A), reading.as_answered
        dW = M @ factor.mT @ factor
        quadratic = (torch.einsum("bec,ncd->bned", dW, gram) * dW[:, None]).sum((2, 3))
        linear = dW.flatten(1) @ moment.flatten(1).T
        return self.network.unit.double() ** 2 * (squares - 2 * linear + quadratic)

    def _sums(
        self, reading: Moments, mask: Bool[Tensor, "b n"]
    ) -> tuple[Float[Tensor, "b c c"], Float[Tensor, "b e c"]]:
        """A and sum_i <u_i - B(v_i), h(v_i)> over the examples of each task."""
        there = mask.double() * self.readout
        gram, moment = reading.gram, reading.moment
        A = (there @ gram.flatten(1)).unflatten(1, gram.shape[1:]) + torch.diag(self.ridge)
        return A, (there @ moment.flatten(1)).unflatten(1, moment.shape[1:])

    def _posterior(self, moment: Tensor, factor: Tensor) -> Tensor:
        """W_0 + M A^-1, in the precision of the network."""
        return self.W_0 + (moment @ factor.mT @ factor).to(self.W_0)

    def _read_out(self, sum: str, W: Tensor, reading: Moments) -> Float[Tensor, "b n d_u"]:
        return torch.einsum(sum, W, reading.channels).flatten(2) * self.network.unit


def moments(
    h: Float[Tensor, "b n c p"], r: Float[Tensor, "b n e p"], there: Float[Tensor, "b n"]
) -> tuple[Float[Tensor, "b n c c"], Float[Tensor, "b n e c"]]:
    """<h_i, h_i> and <r_i, h_i> of each example, in double precision; zero where there is none."""
    weight, h, r = there[..., None, None].double() / h.shape[-1], h.double(), r.double()
    return h @ h.mT * weight, r @ h.mT * weight


def sum_of_others(f: Float[Tensor, "b n ..."]) -> Float[Tensor, "b n ..."]:
    """For each example the sum over the others, without the cancellation that subtracting one large
    term from the total causes."""
    before, after = f.cumsum(1).roll(1, 1), f.flip(1).cumsum(1).flip(1).roll(-1, 1)
    first = torch.arange(f.shape[1], device=f.device).reshape(-1, *[1] * (f.ndim - 2)) == 0
    return torch.where(first, 0, before) + torch.where(first.flip(0), 0, after)


def spread_of(
    factor: Float[Tensor, "b i c c"], gram: Float[Tensor, "b n c c"]
) -> Float[Tensor, "b n"]:
    """sqrt(1 + trace(A^-1 <h, h>)): the deviation of a function, root mean square over x, in units
    of the noise."""
    return (1 + (factor.mT @ factor * gram).sum((-2, -1))).sqrt()
