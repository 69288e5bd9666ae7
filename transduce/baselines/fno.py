"""The Fourier neural operator, fitted to one operator's examples (Li et al. 2021), in neuraloperator's implementation.

    v -> P o sigma(W_L + K_L) o ... o sigma(W_1 + K_1) o Q v,      K_l w = inverse FFT of R_l(k) FFT(w)(k), for the first frequencies k

What a regression would cost without meta-learning: hundreds of passes over the examples, anew for each operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..types import ExampleSet, Operator, TransduceError, like, to_tensor


class Fno:
    """Adam on the mean squared error of normalised functions, in batches, the rate rising to `lr` and falling to zero over `epochs`.

    modes: as neuraloperator counts them, both signs, so that 16 keeps the frequencies 0 to 8. stop: called with the operator so far
    after each epoch; the fit ends when it says True. Functions have one variable, v and u the same grid; queries may come on any.

    >>> O = Fno(stop=lambda O: relative_mse(O(v_held_out), u_held_out) < 1e-2).regress(ExampleSet(v, u))
    """

    def __init__(
        self,
        modes: int = 16,
        width: int = 64,
        layers: int = 4,
        epochs: int = 200,
        lr: float = 3e-3,
        batch: int = 10,
        stop: Callable[[Operator], bool] | None = None,
        seed: int = 0,
    ):
        self.modes, self.width, self.layers, self.seed = modes, width, layers, seed
        self.epochs, self.lr, self.batch, self.stop = epochs, lr, batch, stop

    def regress(self, examples: ExampleSet) -> FnoOperator:
        v, u = _channels(examples.v, "examples.v"), _channels(examples.u, "examples.u")
        if v.shape[-1] != u.shape[-1]:
            raise TransduceError(
                f"examples.v has {v.shape[-1]} points and examples.u {u.shape[-1]}; an FNO answers on the grid it reads. "
                "Interpolate one of them to the other's."
            )
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(self.seed)
            network = _fno()(
                n_modes=(self.modes,), in_channels=v.shape[1], out_channels=u.shape[1], hidden_channels=self.width, n_layers=self.layers
            )
            operator = FnoOperator(network.to(v.device), Scale.of(v), Scale.of(u), bare=examples.u.ndim == 2)
            self._fit(operator, v.detach(), u.detach())
        return operator

    def _fit(self, operator: FnoOperator, v: Tensor, u: Tensor) -> None:
        batches = -(-len(v) // self.batch)
        optimiser = torch.optim.Adam(operator.network.parameters(), lr=self.lr)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, self.lr, total_steps=self.epochs * batches, pct_start=0.1)
        for _ in range(self.epochs):
            for chosen in torch.randperm(len(v)).split(self.batch):
                error = (operator.predict(v[chosen]) - u[chosen]) / operator.u_scale.deviation
                optimiser.zero_grad()
                error.square().mean().backward()
                optimiser.step()
                schedule.step()
            if self.stop is not None and self.stop(operator):
                return


@dataclass(frozen=True)
class Scale:
    """Values in units of their standard deviation, from their mean."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, f: Tensor) -> Scale:
        return cls(f.mean(), f.std(correction=0).clamp(min=1e-12))


@dataclass(frozen=True, eq=False)
class FnoOperator:
    """v -> the fitted network's answer, on the grid of v. bare: results have no channel axis."""

    network: torch.nn.Module
    v_scale: Scale
    u_scale: Scale
    bare: bool

    def predict(self, v: Tensor) -> Tensor:
        return self.network((v - self.v_scale.mean) / self.v_scale.deviation) * self.u_scale.deviation + self.u_scale.mean

    def __call__(self, v: Any) -> Any:
        with torch.no_grad():
            u_hat = self.predict(_channels(v, "v"))
        return like(u_hat.squeeze(1) if self.bare else u_hat, v)


def _channels(f: Any, name: str) -> Tensor:
    """Functions as (n, channels, points), in single precision."""
    f = to_tensor(f, name).float()
    if f.ndim not in (2, 3):
        raise TransduceError(f"{name} has shape {tuple(f.shape)}; this FNO expects (n, points) or (n, channels, points). Reshape it.")
    return f[:, None] if f.ndim == 2 else f


def _fno() -> Any:
    try:
        from neuralop.models import FNO
    except ImportError:
        raise TransduceError(
            "the FNO is neuraloperator's, which is not installed. Install it: pip install 'transduce[baselines]'"
        ) from None
    return FNO
