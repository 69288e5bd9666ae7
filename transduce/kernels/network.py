"""The spectral network whose channels `Readout` combines, and the summary that modulates it.

    h(v)(x) = (h_L(x), v(x)),       h_l = the l-th SpectralLayer of h_{l-1},    h_0 = C v
    z = f(mean_i e(v_i, u_i))

e are the means and mean squares over x of the channels of one more layer. z scales and shifts what
the layers compute.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..configs import Part
from ..spaces import Modes, Space
from ..types import TransduceError
from .spectral import SpectralLayer, pointwise


class Summary(nn.Module):
    """z of b sets of examples."""

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


class SpectralNetwork(Part):
    """Channels h of functions, on a grid of its own.

    Args:
        V: space of the inputs: SineModes or FourierModes.
        U: space of the outputs, of the same kind.
        channels: number of learned channels.
        layers: number of spectral layers.
        modes: number of frequencies that a layer mixes along each axis.
        points: number of points of the grid along each axis.
        summary: length of z; 0 if the channels do not depend on the examples.
    """

    def __init__(
        self,
        V: Modes,
        U: Modes,
        channels: int = 32,
        layers: int = 4,
        modes: int = 12,
        points: int = 32,
        summary: int = 0,
    ):
        super().__init__()
        check_spaces(V, U)
        if min(channels, layers, modes) < 1 or summary < 0:
            raise TransduceError(
                f"channels={channels}, layers={layers}, modes={modes}, summary={summary}; "
                "expected at least one of the first three."
            )
        needed = max(
            2 * modes,
            *(space.points_for(int(space.frequencies().max())) for space in (V, U)),
        )
        if points < needed:
            raise TransduceError(
                f"grid={points}; layers of {modes} modes, and those of V and U, need at least "
                f"{needed} points. Give those."
            )
        self.V, self.U, self.channels, self.layers = V, U, channels, layers
        self.modes, self.points, self.summary = modes, points, summary
        self.grid = (points,) * V.dims
        inputs = V.channels + (V.dims if V.closed else 0)
        self.size = channels + inputs
        self.lift = nn.Linear(inputs, channels)
        self.steps = nn.ModuleList(
            SpectralLayer(V.dims, channels, modes, summary) for _ in range(layers)
        )
        self.summarise = (
            Summary(V.dims, inputs + U.channels, channels, modes, summary) if summary else None
        )
        self.scale = nn.Parameter(torch.ones(V.size), requires_grad=False)
        self.unit = nn.Parameter(torch.ones(()), requires_grad=False)

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        """Inputs and outputs are measured in units of the inputs' size."""
        self.scale.data.copy_(spread / size)
        self.unit.data.copy_(size)

    def inputs(self, v: Float[Tensor, "b n d"]) -> Float[Tensor, "b n i *grid"]:
        """v on the grid; and for functions that are not periodic, the position x."""
        f = self._on_grid(self.V, v * self.scale)
        if not self.V.closed:
            return f
        x = self.V.grid(self.grid).to(f).T.unflatten(1, self.grid)
        return torch.cat([f, x.expand(*f.shape[:2], *x.shape)], 2)

    def outputs(self, u: Float[Tensor, "b n d"]) -> Float[Tensor, "b n e *grid"]:
        """u on the grid."""
        return self._on_grid(self.U, u / self.unit)

    def coefficients(self, f: Float[Tensor, "b n e p"]) -> Float[Tensor, "b n d"]:
        """Functions on the grid as coefficients of U."""
        f = f.unflatten(3, self.grid)
        return self.U.encode(f if self.U.channels > 1 else f[:, :, 0]) * self.unit

    def z(
        self,
        inputs: Float[Tensor, "b n i *grid"],
        outputs: Float[Tensor, "b n e *grid"],
        there: Float[Tensor, "b n"],
    ) -> Float[Tensor, "b s"] | None:
        """The summary of the examples; None if the network takes none."""
        if self.summarise is None:
            return None
        return self.summarise(torch.cat([inputs, outputs], 2), there)

    def forward(
        self, inputs: Float[Tensor, "b n i *grid"], z: Float[Tensor, "b s"] | None
    ) -> Float[Tensor, "b n c p"]:
        """The channels, the inputs among them, with the grid's points in one axis."""
        f = inputs.flatten(0, 1)
        each = None if z is None else z.repeat_interleave(inputs.shape[1], 0)
        h = pointwise(self.lift, f.flatten(2)).unflatten(2, self.grid)
        for step in self.steps:
            h = step(h, each)
        return torch.cat([h, f], 1).flatten(2).unflatten(0, inputs.shape[:2])

    def _on_grid(self, space: Space, c: Float[Tensor, "b n d"]) -> Float[Tensor, "b n c *grid"]:
        f = space.decode(c, self.grid)
        return f if space.channels > 1 else f[:, :, None]


def check_spaces(V: Space, U: Space) -> None:
    """Raise unless both are of modes on the same kind of grid."""
    modes = isinstance(V, Modes) and isinstance(U, Modes)
    if not modes or (V.dims, V.closed) != (U.dims, U.closed):
        raise TransduceError(
            f"a spectral network was asked for between {V.config()} and {U.config()}; expected "
            "SineModes or FourierModes of the same number of variables, on the same kind of grid. "
            "Use another model, or give both the same space."
        )
