"""Fitting a network to the examples of one operator: what a regression costs without meta-learning.

    theta = argmin_theta  sum_i |f_theta(v~_i) - u~_i|^2,
    v~ = (v - mean) / deviation of all values of the examples, u~ likewise

by Adam, in batches. Some examples may be held out, never to be trained on: then the fit ends when
their error no longer falls, and the weights of their least error are kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..types import ExampleSet, Operator, TransduceError, like, to_tensor

FEWEST = 10  # examples of which some can be spared


@dataclass(frozen=True)
class Fitting:
    """How a network is fitted to examples.

    Args:
        epochs: passes over the examples.
        steps: smallest number of updates; there are more epochs if these give fewer.
        lr: the learning rate.
        batch: examples in an update.
        falling: whether the rate rises to `lr` in the first tenth of the updates and then falls to
            zero; if not, it is `lr` throughout.
        weight_decay: of Adam.
        held_out: share of the examples that validate the fit; 0 with fewer than ten examples.
        patience: the fit ends after this many epochs without a smaller validation error; None for
            never.
        stop: called with the operator after each epoch; the fit ends when it returns True.
        seed: of weights and batches.
    """

    epochs: int = 500
    steps: int = 0
    lr: float = 1e-3
    batch: int = 20
    falling: bool = False
    weight_decay: float = 0.0
    held_out: float = 0.0
    patience: int | None = None
    stop: Callable[[Operator], bool] | None = None
    seed: int = 0

    def fit(
        self, make: Callable[[Tensor, Tensor], torch.nn.Module], examples: ExampleSet
    ) -> NetworkOperator:
        """Fit the network that `make` makes for v and u of shape (n, channels, *grid)."""
        v, u = (
            with_channels(examples.v, "examples.v").detach(),
            with_channels(examples.u, "examples.u").detach(),
        )
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(self.seed)
            network = make(v, u).to(v.device)
            count = math.ceil(self.held_out * len(v)) if len(v) >= FEWEST else 0
            held, trained = torch.randperm(len(v)).tensor_split([count])
            operator = NetworkOperator(
                network, Scale.of(v[trained]), Scale.of(u[trained]), bare=examples.u.ndim == 2
            )
            self._descend(operator, v, u, trained, held)
        return operator

    def _descend(
        self, operator: NetworkOperator, v: Tensor, u: Tensor, trained: Tensor, held: Tensor
    ) -> None:
        batches = -(-len(trained) // self.batch)
        epochs = max(self.epochs, -(-self.steps // batches))
        optimiser = torch.optim.Adam(
            operator.network.parameters(), lr=self.lr, weight_decay=self.weight_decay, foreach=True
        )
        schedule = self._schedule(optimiser, epochs * batches)
        least, best, since = math.inf, None, 0
        for _ in range(epochs):
            for chosen in trained[torch.randperm(len(trained))].split(self.batch):
                optimiser.zero_grad()
                operator.loss(v[chosen], u[chosen]).backward()
                optimiser.step()
                schedule.step()
            if len(held):
                with torch.no_grad():
                    error = operator.loss(v[held], u[held]).item()
                since += 1
                if error < least:
                    least, best, since = error, deepcopy(operator.network.state_dict()), 0
            if (self.stop is not None and self.stop(operator)) or since == self.patience:
                break
        if best is not None:
            operator.network.load_state_dict(best)

    def _schedule(
        self, optimiser: torch.optim.Optimizer, steps: int
    ) -> torch.optim.lr_scheduler.LRScheduler:
        if self.falling:
            # Torch divides by zero where a part has but one step.
            rising = max(0.1, min(0.75, 1.5 / steps))
            return torch.optim.lr_scheduler.OneCycleLR(
                optimiser, self.lr, total_steps=steps, pct_start=rising
            )
        return torch.optim.lr_scheduler.ConstantLR(optimiser, factor=1.0)


@dataclass(frozen=True)
class Scale:
    """Values in units of their standard deviation, from their mean."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, f: Tensor) -> Scale:
        return cls(f.mean(), f.std(correction=0).clamp(min=1e-12))


@dataclass(frozen=True, eq=False)
class NetworkOperator:
    """v -> the fitted network's answer. bare: results have no channel axis."""

    network: torch.nn.Module
    v_scale: Scale
    u_scale: Scale
    bare: bool

    def predict(self, v: Tensor) -> Tensor:
        return (
            self.network((v - self.v_scale.mean) / self.v_scale.deviation) * self.u_scale.deviation
            + self.u_scale.mean
        )

    def loss(self, v: Tensor, u: Tensor) -> Tensor:
        """The mean squared error in units of the deviation of u."""
        return ((self.predict(v) - u) / self.u_scale.deviation).square().mean()

    def __call__(self, v: Any) -> Any:
        with torch.no_grad():
            u_hat = self.predict(with_channels(v, "v"))
        return like(u_hat.squeeze(1) if self.bare else u_hat, v)


def with_channels(f: Any, name: str) -> Tensor:
    """Functions of one or two variables as (n, channels, *grid), in single precision."""
    f = to_tensor(f, name).float()
    if f.ndim not in (2, 3, 4):
        raise TransduceError(
            f"{name} has shape {tuple(f.shape)}; this regression expects (n, points), (n, "
            "channels, points) or "
            "(n, channels, x, y). Reshape it."
        )
    return f[:, None] if f.ndim == 2 else f
