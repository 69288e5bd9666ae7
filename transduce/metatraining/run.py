"""A run of meta-training: everything that a step changes."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn

from ..optimisers import make_optimisers
from ..random_fields import seed_for
from ..types import TransduceError
from .checkpoints import State
from .learner import Batch, Learner, Processes
from .losses import Loss
from .options import Training


class Objective(nn.Module):
    """The loss of a step as a module, which Fabric replicates over processes.

    Its parameters are those that get gradients, which is what data-parallel processes expect.
    """

    def __init__(self, T: Learner, loss: Loss, left_out: bool, fabric: Processes):
        super().__init__()
        self.trained = loss.trained_part(T)
        self._given = (T, loss, left_out, fabric)  # a tuple, so that T is not a submodule

    def forward(self, batches: Sequence[Batch]) -> Tensor:
        """The mean of the loss over all tasks."""
        T, loss, left_out, fabric = self._given
        if loss.joint and len(batches) > 1:
            raise TransduceError(
                f"tasks on several grids with loss={loss.name!r}, which needs all of them at once; "
                "expected one grid, or a mean over tasks. Give loss='log_about_mean'."
            )
        tasks = sum(len(batch["v"]) for batch in batches)
        parts = (
            loss(T, batch, left_out, fabric.all_reduce) * (len(batch["v"]) / tasks)
            for batch in batches
        )
        return torch.stack(list(parts)).sum()


class Averaged:
    """The exponential average of the weights; the weights themselves if the decay is 0."""

    def __init__(self, T: Learner, decay: float):
        self.decay = decay
        self.model: Learner | None = None
        if decay:
            self.model = deepcopy(T)
            self.model.requires_grad_(False)

    @torch.no_grad()
    def update(self, T: Learner) -> None:
        """Move the average towards the weights of T."""
        if self.model is not None:
            torch._foreach_lerp_(
                list(self.model.parameters()), list(T.parameters()), 1 - self.decay
            )

    def best(self, T: Learner) -> Learner:
        """The model to validate."""
        return T if self.model is None else self.model

    @torch.no_grad()
    def copy_to(self, T: Learner) -> None:
        """Give T the averaged weights."""
        if self.model is not None:
            T.load_state_dict(self.model.state_dict())


class Run:
    """A model in training: `set_up` once, then `advance` for each step.

    Args:
        T: the learner, on the device of `fabric`.
        training: how to train it.
        fabric: the processes that train it.
    """

    def __init__(self, T: Learner, training: Training, fabric: Processes):
        self.T, self.training, self.fabric = T, training, fabric
        self.step = 0
        self.optimisers = make_optimisers(
            cast(nn.Module, T), training.lr, training.muon_lr, training.kernel_rate
        )
        self.rates = [[group["lr"] for group in o.param_groups] for o in self.optimisers]
        self.averaged = Averaged(T, training.average)

    def set_up(self) -> None:
        """Prepare loss and optimisers for the processes. Restore a checkpoint before."""
        objective = Objective(self.T, self.training.objective, self.training.left_out, self.fabric)
        self.objective, *self.optimisers = self.fabric.setup(objective, *self.optimisers)

    def advance(self, batches: Sequence[Batch]) -> float:
        """Take one step of descent; returns the loss before it."""
        factor = self.training.factor(self.step)
        for optimiser, rates in zip(self.optimisers, self.rates, strict=True):
            optimiser.zero_grad()
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = factor * rate
        loss: Tensor = self.objective(batches)
        self.fabric.backward(loss)
        norm = nn.utils.clip_grad_norm_(self.T.parameters(), self.training.clip)
        if not torch.isfinite(norm):
            raise TransduceError(
                f"the gradient at step {self.step} is {norm.item()} (loss {loss.item()}, batch "
                f"seed {seed_for('train', self.training.seed, self.step)}); expected finite. The "
                "last good checkpoint is kept. Lower lr and muon_lr, or look for bad values in the "
                "data."
            )
        for optimiser in self.optimisers:
            optimiser.step()
        self.averaged.update(self.T)
        self.step += 1
        return loss.item()

    def state(self) -> State:
        """All that a checkpoint needs to resume with the same bits."""
        averaged = self.averaged.model
        return {
            "step": self.step,
            "model": self.T.state_dict(),
            "averaged": None if averaged is None else averaged.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "random": torch.get_rng_state(),
        }

    def restore(self, state: State) -> None:
        """Resume from a state."""
        self.T.load_state_dict(state["model"])
        if self.averaged.model is not None and state["averaged"] is not None:
            self.averaged.model.load_state_dict(state["averaged"])
        for optimiser, saved in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)
        torch.set_rng_state(state["random"])
        self.step = state["step"]


def make_fabric() -> Processes:
    """Lightning Fabric for the processes that torchrun started, or for this one."""
    try:
        from lightning_fabric import Fabric
    except ImportError:
        raise TransduceError(
            "meta-training runs on Lightning Fabric, which is not installed. Install it: "
            "pip install 'transduce[train]'"
        ) from None
    world, local = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    fabric = Fabric(
        devices=local, num_nodes=world // local, strategy="ddp" if world > 1 else "auto"
    )
    fabric.launch()
    if world > 1:  # threads of the group that outlive Python abort the process
        atexit.register(_leave_group)
    return cast(Processes, fabric)


def _leave_group() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
