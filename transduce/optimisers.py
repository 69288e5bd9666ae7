"""Muon: momentum, orthogonalised (Jordan et al., 2024).

    M <- mu M + (1 - mu) G,
    W <- W - eta sqrt(max(1, rows / columns)) U V^T,
    (1 - mu) G + mu M = U S V^T

G is the gradient, M its momentum, mu the decay of M, eta the learning rate. Five Newton-Schulz
iterations approximate U V^T. torch.optim.Muon takes one matrix at a time and rounds it to bfloat16,
which a CPU emulates slowly. This one takes all matrices of one shape together, in their own
precision, which is several times faster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .kernels import Kappa


def orthogonalise(X: Float[Tensor, "b r c"], iterations: int = 5) -> Float[Tensor, "b r c"]:
    """About U V^T of each X = U S V^T with r <= c: singular values between 0.7 and 1.2."""
    X = X / (X.norm(dim=(-2, -1), keepdim=True) + 1e-12)
    for _ in range(iterations):
        A = X @ X.mT
        X = torch.baddbmm(X, torch.baddbmm(A, A, A, beta=-4.7750, alpha=2.0315), X, beta=3.4445)
    return X


class Muon(torch.optim.Optimizer):
    """Muon for the matrices of a network; give other parameters to AdamW.

    Args:
        parameters: matrices, or groups of them as in every torch optimiser.
        lr: eta.
        momentum: mu.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor] | Iterable[dict[str, object]],
        lr: float = 0.02,
        momentum: float = 0.95,
    ):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None if closure is None else closure()
        for group in self.param_groups:
            shapes: dict[tuple[int, ...], list[Tensor]] = defaultdict(list)
            for W in group["params"]:
                if W.grad is not None:
                    shapes[tuple(W.shape)].append(W)
            for (rows, columns), matrices in shapes.items():
                updates = orthogonalise(
                    torch.stack([self._descent(W, group["momentum"]) for W in matrices])
                )
                if rows > columns:
                    updates = updates.mT
                scale = group["lr"] * max(1.0, rows / columns) ** 0.5
                torch._foreach_add_(matrices, list(updates.unbind()), alpha=-scale)
        return loss

    def _descent(self, W: Tensor, momentum: float) -> Tensor:
        """The gradient with Nesterov momentum, transposed so that rows <= columns."""
        assert W.grad is not None
        state = self.state[W]
        if not state:
            state["momentum"] = torch.zeros_like(W)
        M = state["momentum"].lerp_(W.grad, 1 - momentum)
        descent = W.grad.lerp(M, momentum)
        return descent if W.shape[0] <= W.shape[1] else descent.T


def kernel_parameters(model: nn.Module) -> set[nn.Parameter]:
    """The parameters of all kernels in a model."""
    kernels = (module for module in model.modules() if isinstance(module, Kappa))
    return {parameter for kappa in kernels for parameter in kappa.parameters()}


def make_optimisers(
    model: nn.Module, lr: float, muon_lr: float, kernel_rate: float = 1.0
) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of a model, AdamW for its other parameters.

    Args:
        model: its parameters that require gradients are trained.
        lr: the learning rate of AdamW.
        muon_lr: the learning rate of Muon; 0 for AdamW alone.
        kernel_rate: a factor of both learning rates for the parameters of kernels.
    """
    kernels = kernel_parameters(model)
    matrices: dict[float, list[nn.Parameter]] = defaultdict(list)
    others: dict[float, list[nn.Parameter]] = defaultdict(list)
    for parameter in model.parameters():
        if parameter.requires_grad:
            groups = matrices if muon_lr and parameter.ndim == 2 else others
            groups[kernel_rate if parameter in kernels else 1.0].append(parameter)
    optimisers: list[torch.optim.Optimizer] = []
    if others:
        optimisers.append(
            torch.optim.AdamW(_with_rates(others, lr), lr=lr, weight_decay=0.0, fused=True)
        )
    if matrices:
        optimisers.append(Muon(_with_rates(matrices, muon_lr), lr=muon_lr))
    return optimisers


def _with_rates(groups: dict[float, list[nn.Parameter]], lr: float) -> list[dict[str, object]]:
    """A group of parameters for each factor of the learning rate."""
    return [{"params": parameters, "lr": factor * lr} for factor, parameters in groups.items()]
