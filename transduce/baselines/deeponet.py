"""The deep operator network, fitted to one operator's examples (Lu et al. 2021), in deepxde's
implementation.

u_hat(v)(x) = sum_k b_k(v) t_k(x) + constant,      b: the branch, which reads v at its grid points;
t: the trunk, which reads a point"""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from ..files import pip_install
from ..types import ExampleSet, TransduceError
from .classical import expect_grid
from .fitting import Fitting, NetworkOperator

TUNED = Fitting(epochs=400, steps=2000, lr=3e-3, batch=50, falling=True, weight_decay=1e-4)


@dataclass(frozen=True)
class DeepOnet:
    """A DeepONet fitted to each operator's examples: branch and trunk of `layers` hidden
    layers of `width` units.

    Functions have one variable or two; queries come on the grid of the examples' v and are answered
    on that of their u.

    >>> O = DeepOnet().regress(ExampleSet(v, u))      # v, u of shape (50, 101)
    """

    width: int = 200
    layers: int = 4
    activation: str = "relu"
    fitting: Fitting = TUNED

    def regress(self, examples: ExampleSet) -> DeepOnetOperator:
        return DeepOnetOperator(
            self.fitting.fit(self._network, examples), tuple(examples.v.shape[1:])
        )

    def _network(self, v: Tensor, u: Tensor) -> BranchAndTrunk:
        hidden = [self.width] * self.layers
        channels, *grid = u.shape[1:]
        return BranchAndTrunk(
            _deeponet()(
                [v[0].numel(), *hidden, self.width * channels],
                [len(grid), *hidden, self.width],
                self.activation,
                "Glorot normal",
                num_outputs=channels,
                multi_output_strategy="split_branch" if channels > 1 else None,
            ),
            tuple(grid),
        )


def paper_deeponet() -> DeepOnet:
    """The paper's: branch and trunk of 4 hidden layers of 50 rectified units. It does not say how
    they are fitted: 5,000 steps of Adam, each on all examples."""
    return DeepOnet(
        width=50, layers=4, activation="relu", fitting=Fitting(epochs=5000, lr=1e-3, batch=10**6)
    )


class BranchAndTrunk(torch.nn.Module):
    """deepxde's network as a map from (n, channels, *grid) to the same, u being asked at the points
    x of its own grid."""

    x: Tensor

    def __init__(self, network: torch.nn.Module, grid: tuple[int, ...]):
        super().__init__()
        self.network, self.grid = network, grid
        self.register_buffer(
            "x",
            torch.cartesian_prod(*(torch.linspace(-1, 1, points) for points in grid)).reshape(
                -1, len(grid)
            ),
        )

    def forward(self, v: Tensor) -> Tensor:
        u = self.network((v.flatten(1), self.x))  # (n, points), or (n, points, channels)
        return u.reshape(len(v), self.x.shape[0], -1).mT.reshape(len(v), -1, *self.grid)


@dataclass(frozen=True, eq=False)
class DeepOnetOperator:
    """v -> the fitted network's answer, for v on the grid of the examples."""

    fitted: NetworkOperator
    v_shape: tuple[int, ...]

    def __call__(self, v: Any) -> Any:
        expect_grid(v, self.v_shape)
        return self.fitted(v)


def _deeponet() -> Any:
    """deepxde names its backend as it is imported, and makes a GPU that it finds torch's default
    device."""
    device = torch.get_default_device()
    try:
        with patch.dict(os.environ, DDE_BACKEND="pytorch"), redirect_stderr(io.StringIO()):
            from deepxde.nn.pytorch import DeepONetCartesianProd
    except ImportError:
        raise TransduceError(
            "the DeepONet is deepxde's, which is not installed. Install it: "
            f"{pip_install('baselines')}"
        ) from None
    finally:
        if torch.get_default_device() != device:
            torch.set_default_device(None if device.type == "cpu" else device)
    return DeepONetCartesianProd
