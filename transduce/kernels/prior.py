"""A Gaussian prior over operators: what is believed of O before any example, and what a few
examples settle of it.

    O(v)(x) = W h(v)(x),      W ~ N(W_0, diag(1 / lambda)),      B = W_0 h

h are the channels of a spectral network that is learned once for all operators; each has its own
read-out W. With <f, g> the mean of f(x) g(x)^T over x, n examples leave

    W = W_0 + (sum_i <u_i - B(v_i), h(v_i)>) A^-1,      A = sum_i <h(v_i), h(v_i)> + diag(lambda),

that is T(D)(v) = B(v) + sum_i K(v_i, v)(u_i - B(v_i)) with the kernel K(v', v)(r) = <r, h(v')> A^-1
h(v): a Gaussian process with mean B whose kernel compares functions point by point, so that every
point of u_i is evidence and one example may do. Sums over examples are all that W needs: to leave
some out costs a system as small as the number of channels. What is left of each example when it is
left out is what the kernels of the layers then regress.

The network may also see a summary of the examples, z = f(mean_i e(v_i, u_i)), which scales its
layers. An example that is left out of W is not left out of z: what is left of it is then a little
too small."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..spaces import Modes, Space, space_from_config
from ..types import TransduceError
from .kappa import Kappa, Known
from .spectral import SpectralLayer, pointwise
from .systems import PACE, SMALLEST_RIDGE, inverse_factor


class Posterior(NamedTuple):
    """What a query needs of the examples, and what bands need."""

    z: Float[Tensor, "b s"] | None
    W: Float[Tensor, "b e c"]
    factor: Float[Tensor, "b c c"] | None  # F with F^T F = A^-1, if W is regressed
    residual: Float[Tensor, "b n q"]
    deviation: Float[Tensor, "b n"]


class Read(NamedTuple):
    """What all tasks on the same functions share: of each, the channels' coefficients, and the sums
    that its being an example adds.

    as_answered: <h, h>, <u - B, h> and <u - B, u - B> of the coefficients, which say how far from u
    any read-out is."""

    channels: Float[Tensor, "c n d"]
    gram: Float[Tensor, "n c c"]
    moment: Float[Tensor, "n e c"]
    as_answered: tuple[Float[Tensor, "n c c"], Float[Tensor, "n e c"], Float[Tensor, " n"]]


class Prior(Kappa):
    """h, W_0 and the posterior of W.

    channels, layers: of the network. modes: the frequencies that its layers mix, along each axis.
    grid: the points that it works on, along each axis. readout: whether W is regressed; else it is
    W_0. summary: the length of z, 0 if the network sees no examples."""

    leaves_out: ClassVar[bool] = True

    def __init__(
        self,
        V: Space,
        U: Space,
        channels: int = 32,
        layers: int = 4,
        modes: int = 12,
        grid: int = 32,
        readout: bool = True,
        summary: int = 0,
    ):
        super().__init__()
        options = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "V", "U", "__class__")
        }
        if not (isinstance(V, Modes) and isinstance(U, Modes)) or (V.dims, V.closed) != (
            U.dims,
            U.closed,
        ):
            raise TransduceError(
                f"a prior was asked for between {V.config()} and {U.config()}; expected SineModes "
                "or FourierModes of the same number of "
                "variables, on the same kind of grid. Leave the prior out, or give both the same "
                "space."
            )
        if min(channels, layers, modes) < 1 or summary < 0:
            raise TransduceError(
                f"channels={channels}, layers={layers}, modes={modes}, summary={summary}; "
                "expected at least one of the first three."
            )
        needed = max(
            2 * modes, *(space.points_for(int(space.frequencies().max())) for space in (V, U))
        )
        if grid < needed:
            raise TransduceError(
                f"grid={grid}; layers of {modes} modes, and those of V and U, need at least "
                f"{needed} points. Give those."
            )
        self.config: dict[str, Any] = options
        self.spaces, self.grid, self.readout = (
            (V, U),
            (grid,) * V.dims,
            readout,
        )  # in a tuple: the spaces are the Transducer's
        inputs = V.channels + (V.dims if V.closed else 0)
        self.lift = nn.Linear(inputs, channels)
        self.layers = nn.ModuleList(
            SpectralLayer(V.dims, channels, modes, summary) for _ in range(layers)
        )
        self.W_0 = nn.Parameter(torch.zeros(U.channels, channels + inputs))
        self.log_ridge = nn.Parameter(
            torch.full((channels + inputs,), -7.0 / PACE), requires_grad=readout
        )
        self.summary = (
            Summary(V.dims, inputs + U.channels, channels, modes, summary) if summary else None
        )
        self.scalar = space_from_config({**U.config(), "channels": 1})
        self.scale = nn.Parameter(torch.ones(V.size), requires_grad=False)
        self.unit = nn.Parameter(torch.ones(()), requires_grad=False)

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        """Inputs and outputs are measured in units of the inputs' size."""
        self.scale.copy_(spread / size)
        self.unit.copy_(size)

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
        known: Known | None = None,
    ) -> Posterior:
        there = torch.ones_like(u[..., 0]) if mask is None else mask.to(u.dtype)
        inputs, target = self._inputs(v), self._on_grid(self.spaces[1], u / self.unit)
        z = None if self.summary is None else self.summary(torch.cat([inputs, target], 2), there)
        h = self._channels(inputs, z)
        if not self.readout:
            W, factor, deviation = (
                self.W_0.expand(len(v), -1, -1),
                None,
                torch.ones_like(there, dtype=torch.float64),
            )
            others = W[:, None]
        else:
            gram, moment = moments(h, target.flatten(3) - self.W_0 @ h, there)
            factor = inverse_factor(gram.sum(1) + torch.diag(self.ridge))
            W = self._posterior(moment.sum(1), factor)
            without = inverse_factor(sum_of_others(gram) + torch.diag(self.ridge))
            others = self._posterior(sum_of_others(moment), without)
            deviation = spread_of(without, gram)
        residual = (u - self._coefficients(others @ h)) * there[..., None]
        return Posterior(z, W, factor, residual, deviation)

    def forward(self, sources: Posterior, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        return self._coefficients(sources.W[:, None] @ self._channels(self._inputs(v), sources.z))

    def carry(
        self, sources: Posterior, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
    ) -> Float[Tensor, "b n d_u"]:
        """What is left of each example when it is left out: the first layer's task."""
        return sources.residual

    def read(self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"]) -> Read:
        if self.summary is not None:
            raise TransduceError(
                "a prior with a summary of its examples reads functions anew for every set of "
                "examples; expected one with summary=0, whose "
                "reading many regressions share. Use another model, or call `regress` for each."
            )
        h = self._channels(self._inputs(v), None)
        target = self._on_grid(self.spaces[1], u / self.unit).flatten(3)
        gram, moment = moments(h, target - self.W_0 @ h, torch.ones_like(u[..., 0]))
        channels = self.scalar.encode(h[0].unflatten(2, self.grid))
        left = (u[0] / self.unit).unflatten(
            1, (self.spaces[1].channels, -1)
        ).double() - self.W_0.double() @ channels.double()
        as_answered = (
            channels.double() @ channels.double().mT,
            left @ channels.double().mT,
            left.square().sum((1, 2)),
        )
        return Read(channels.movedim(1, 0).contiguous(), gram[0], moment[0], as_answered)

    def split(
        self, read: Read, u: Float[Tensor, "b n d_u"], mask: Bool[Tensor, "b n"], carry: bool = True
    ) -> Float[Tensor, "b n d_u"]:
        """The examples of each task add their sums; to leave one out takes its sums away."""
        A, M = self._sums(read, mask)
        answers = self._read_out("bec,cnd->bned", self._posterior(M, inverse_factor(A)), read)
        if not carry:
            return answers
        there = mask[..., None, None].double() * self.readout
        without = inverse_factor(A[:, None] - there * read.gram)
        others = self._posterior(M[:, None] - there * read.moment, without)
        return torch.where(
            mask[..., None], u - self._read_out("bnec,cnd->bned", others, read), answers
        )

    def squared_errors(self, read: Read, mask: Bool[Tensor, "b n"]) -> Float[Tensor, "b n"]:
        """|u - B - dW h|^2 = |u - B|^2 - 2 <dW, <u - B, h>> + <dW <h, h>, dW>"""
        A, M = self._sums(read, mask)
        factor, (gram, moment, squares) = inverse_factor(A), read.as_answered
        dW = M @ factor.mT @ factor
        quadratic = (torch.einsum("bec,ncd->bned", dW, gram) * dW[:, None]).sum((2, 3))
        return self.unit.double() ** 2 * (
            squares - 2 * dW.flatten(1) @ moment.flatten(1).T + quadratic
        )

    def _sums(
        self, read: Read, mask: Bool[Tensor, "b n"]
    ) -> tuple[Float[Tensor, "b c c"], Float[Tensor, "b e c"]]:
        """A and sum_i <u_i - B(v_i), h(v_i)> over the examples of each task."""
        there = mask.double() * self.readout
        A = (there @ read.gram.flatten(1)).unflatten(1, read.gram.shape[1:]) + torch.diag(
            self.ridge
        )
        return A, (there @ read.moment.flatten(1)).unflatten(1, read.moment.shape[1:])

    def _posterior(self, moment: Tensor, factor: Tensor) -> Tensor:
        """W_0 + M A^-1, in the precision of the network."""
        return self.W_0 + (moment @ factor.mT @ factor).to(self.W_0)

    def _read_out(self, sum: str, W: Tensor, read: Read) -> Float[Tensor, "b n d_u"]:
        return torch.einsum(sum, W, read.channels).flatten(2) * self.unit

    def deviations(self, sources: Posterior, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """The root mean square over x of the standard deviation of W h(v)(x), in units of the
        noise."""
        if sources.factor is None:
            return torch.ones_like(v[..., 0], dtype=torch.float64)
        h = self._channels(self._inputs(v), sources.z)
        return spread_of(
            sources.factor[:, None], moments(h, h[:, :, :0], torch.ones_like(v[..., 0]))[0]
        )

    @property
    def ridge(self) -> Float[Tensor, " c"]:
        """lambda."""
        return (PACE * self.log_ridge.double()).exp().clamp(min=SMALLEST_RIDGE)

    def _inputs(self, v: Float[Tensor, "b n d"]) -> Float[Tensor, "b n i *grid"]:
        """v on the grid, and where functions end, the place: a periodic network knows none."""
        V = self.spaces[0]
        f = self._on_grid(V, v * self.scale)
        if not V.closed:
            return f
        x = V.grid(self.grid).to(f).T.unflatten(1, self.grid)
        return torch.cat([f, x.expand(*f.shape[:2], *x.shape)], 2)

    def _on_grid(self, space: Space, c: Float[Tensor, "b n d"]) -> Float[Tensor, "b n c *grid"]:
        f = space.decode(c, self.grid)
        return f if space.channels > 1 else f[:, :, None]

    def _coefficients(self, f: Float[Tensor, "b n c p"]) -> Float[Tensor, "b n d"]:
        U, f = self.spaces[1], f.unflatten(3, self.grid)
        return U.encode(f if U.channels > 1 else f[:, :, 0]) * self.unit

    def _channels(
        self, inputs: Float[Tensor, "b n i *grid"], z: Float[Tensor, "b s"] | None
    ) -> Float[Tensor, "b n c p"]:
        """h, the inputs themselves among them."""
        f = inputs.flatten(0, 1)
        each = None if z is None else z.repeat_interleave(inputs.shape[1], 0)
        h = pointwise(self.lift, f.flatten(2)).unflatten(2, self.grid)
        for layer in self.layers:
            h = layer(h, each)
        return torch.cat([h, f], 1).flatten(2).unflatten(0, inputs.shape[:2])


def spectral_prior(V: Space, U: Space, options: dict[str, Any]) -> Prior:
    """The prior that `options` describe."""
    known = [name for name in inspect.signature(Prior).parameters if name not in "VU"]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TransduceError(
            f"a prior has no option {', '.join(unknown)}; expected of {', '.join(known)}. Check "
            "the spelling."
        )
    return Prior(V, U, **options)


class Summary(nn.Module):
    """z = f(mean_i e(v_i, u_i)), e being the means and mean squares over x of the channels of one
    layer."""

    def __init__(self, dims: int, inputs: int, channels: int, modes: int, size: int):
        super().__init__()
        self.lift = nn.Linear(inputs, channels)
        self.layer = SpectralLayer(dims, channels, modes, 0)
        self.hidden = nn.Linear(2 * channels, 2 * size)
        self.out = nn.Linear(2 * size, size)

    def forward(
        self, pairs: Float[Tensor, "b n i *grid"], there: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b s"]:
        grid, f = pairs.shape[3:], pairs.flatten(0, 1)
        h = self.layer(pointwise(self.lift, f.flatten(2)).unflatten(2, grid), None).flatten(2)
        pooled = torch.cat([h.mean(2), h.square().mean(2)], 1).unflatten(0, pairs.shape[:2])
        mean = (pooled * there[..., None]).sum(1) / there.sum(1, keepdim=True).clamp(min=1)
        return self.out(nn.functional.gelu(self.hidden(mean)))


def moments(
    h: Float[Tensor, "b n c p"], r: Float[Tensor, "b n e p"], there: Float[Tensor, "b n"]
) -> tuple[Float[Tensor, "b n c c"], Float[Tensor, "b n e c"]]:
    """<h_i, h_i> and <r_i, h_i> of each example, in double precision; zero where there is none."""
    weight, h, r = there[..., None, None].double() / h.shape[-1], h.double(), r.double()
    return h @ h.mT * weight, r @ h.mT * weight


def sum_of_others(f: Float[Tensor, "b n ..."]) -> Float[Tensor, "b n ..."]:
    """For each example the sum over the others, without the loss of digits that subtracting a large
    one from all would be."""
    before, after = f.cumsum(1).roll(1, 1), f.flip(1).cumsum(1).flip(1).roll(-1, 1)
    first = torch.arange(f.shape[1], device=f.device).reshape(-1, *[1] * (f.ndim - 2)) == 0
    return torch.where(first, 0, before) + torch.where(first.flip(0), 0, after)


def spread_of(
    factor: Float[Tensor, "b i c c"], gram: Float[Tensor, "b n c c"]
) -> Float[Tensor, "b n"]:
    """sqrt(1 + trace(A^-1 <h, h>)): the deviation of a function, root mean square over x, in units
    of the noise."""
    return (1 + (factor.mT @ factor * gram).sum((-2, -1))).sqrt()
