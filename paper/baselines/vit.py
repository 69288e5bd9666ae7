"""Networks fitted by gradient descent to all training days, without a context: the vision
transformer (Dosovitskiy et al. 2021), the paper's baseline in section 5.3, and the Fourier neural
operator of two variables.

    u_hat = mean + unit f((v - mean) / unit),      theta = argmin  mean of w(lat) (u_hat - u)^2

    ViT
    f = D o block_L o ... o block_1 (E v(patch y) + place(y)),
    block: attention among all patches, then a feedforward
    FNO      f = P o sigma(W_L + K_L) o ... o sigma(W_1 + K_1) o Q

Means are of each point over the days of training, units of all points together.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transduce.baselines.fno import fno_network
from transduce.families import ClimateFields, latitude_weights
from transduce.spaces import Patches
from transduce.types import TransduceError

from .inductive import Answering, Inductive

RISING = 0.05  # of the steps
LONGEST = 1.0  # norm of a gradient
WIDEST = 4096


@dataclass(kw_only=True)
class Network(Inductive):
    """A network fitted by AdamW, in batches of days drawn at each step; the rate rises to `lr`,
    then falls to zero by a cosine."""

    steps: int = 4000
    batch: int = 16
    lr: float = 3e-3
    weight_decay: float = 0.05
    seed: int = 0
    _network: nn.Module | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def parameters(self) -> int:
        """How many numbers were fitted."""
        if self._network is None:
            raise TransduceError(
                f"{self} was asked for its parameters before it was fitted; expected .fit(fields) "
                "first."
            )
        return _count(self._network)

    @abstractmethod
    def _made(self, grid: tuple[int, ...]) -> nn.Module:
        """A network from (n, *grid) to the same, not yet fitted."""

    def _fitted(self, fields: ClimateFields) -> Answering:
        v, u = (torch.from_numpy(f) for f in (fields.v, fields.u))
        v_mean, u_mean = v.mean(0), u.mean(0)
        v_unit, u_unit = (
            (f - mean).std(correction=0).clamp(min=1e-12) for f, mean in ((v, v_mean), (u, u_mean))
        )
        area = torch.from_numpy(latitude_weights(fields.lat)).float()[:, None]
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(self.seed)
            self._network = network = self._made(fields.v.shape[1:])
            self._descend(network, (v - v_mean) / v_unit, (u - u_mean) / u_unit, area)

        @torch.no_grad()
        def answering(asked: ClimateFields) -> Any:
            days = (torch.from_numpy(asked.v) - v_mean) / v_unit
            return (
                u_mean + u_unit * torch.cat([network(some) for some in days.split(self.batch)])
            ).numpy()

        return answering

    def _descend(
        self,
        network: nn.Module,
        v: Float[Tensor, "n y x"],
        u: Float[Tensor, "n y x"],
        area: Float[Tensor, "y 1"],
    ) -> None:
        weights = list(network.parameters())
        fused = not any(p.is_complex() for p in weights)  # torch fuses real ones alone
        optimiser = torch.optim.AdamW(weights, self.lr, weight_decay=self.weight_decay, fused=fused)
        rising = max(1.0, RISING * self.steps)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser,
            lambda step: min((step + 1) / rising, (1 + math.cos(math.pi * step / self.steps)) / 2),
        )
        network.train()
        for _ in range(self.steps):
            days = torch.randint(len(v), (self.batch,))
            optimiser.zero_grad()
            (area * (network(v[days]) - u[days]).square()).mean().backward()
            nn.utils.clip_grad_norm_(weights, LONGEST)
            optimiser.step()
            schedule.step()
        network.eval()


@dataclass(kw_only=True)
class ViT(Network):
    """A vision transformer.

    Args:
        positions: whether a learned encoding of its position is added to each patch; if not,
            patches are a set.
        width: size of a token.

    >>> ViT(positions=True).of_size(150_000, (11, 13)).fit(fields).parameters
    152585
    """

    positions: bool
    patch: int = 3
    width: int = 64
    depth: int = 3
    heads: int = 4
    dropout: float = 0.1

    def of_size(self, parameters: int, grid: tuple[int, int]) -> ViT:
        """The same with another width, that of the number of parameters nearest to this on such a
        grid: to match another model."""

        def size(width: int) -> int:
            with torch.device("meta"):
                return _count(replace(self, width=width)._made(grid))

        widths = range(self.heads, WIDEST, self.heads)
        reached = bisect_left(widths, parameters, key=size)
        return replace(
            self,
            width=min(
                widths[max(reached - 1, 0) : reached + 1],
                key=lambda width: abs(size(width) - parameters),
            ),
        )

    def _made(self, grid: tuple[int, ...]) -> Transformer:
        return Transformer(
            grid, self.positions, self.patch, self.width, self.depth, self.heads, self.dropout
        )


class Transformer(nn.Module):
    """Patches of v in, patches of u out, with attention among all of them between."""

    def __init__(
        self,
        grid: tuple[int, ...],
        positions: bool,
        patch: int,
        width: int,
        depth: int,
        heads: int,
        dropout: float,
    ):
        super().__init__()
        self.grid, self.space = grid, Patches(patch, width)  # E is of v, D of u
        rows, columns = (-(-points // patch) for points in grid)
        self.place = nn.Parameter(0.02 * torch.randn(rows, columns, width)) if positions else None
        layers = (
            nn.TransformerEncoderLayer(
                width, heads, 4 * width, dropout, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(depth)
        )
        self.blocks = nn.Sequential(*layers, nn.LayerNorm(width))

    def forward(self, v: Float[Tensor, "n y x"]) -> Float[Tensor, "n y x"]:
        tokens = self.space.encode(v)
        placed = tokens if self.place is None else tokens + self.place
        return self.space.decode(self.blocks(placed.flatten(1, 2)).reshape(tokens.shape), self.grid)


@dataclass(kw_only=True)
class Fno2d(Network):
    """An FNO on a region: the place of each point is two channels more. modes, padding: as `Fno`
    has them. dropout: of its feedforwards."""

    modes: int = 6
    width: int = 24
    layers: int = 4
    padding: float = 0.0
    dropout: float = 0.0

    def _made(self, grid: tuple[int, ...]) -> nn.Module:
        inner = fno_network(
            len(grid),
            (1, 1),
            self.modes,
            self.width,
            self.layers,
            self.padding,
            positions=True,
            dropout=self.dropout,
        )
        return nn.Sequential(nn.Unflatten(1, (1, grid[0])), inner, nn.Flatten(1, 2))


def _count(network: nn.Module) -> int:
    return sum(p.numel() * (1 + p.is_complex()) for p in network.parameters())
