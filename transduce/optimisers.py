"""Muon: momentum, orthogonalised (Jordan et al., 2024).

    M <- mu M + (1 - mu) G,
    W <- W - eta sqrt(max(1, rows / columns)) U V^T,
    (1 - mu) G + mu M = U S V^T

U V^T is approximated by five Newton-Schulz iterations. torch.optim.Muon takes one matrix at a time
and rounds it to bfloat16, which a CPU emulates slowly; here all matrices of one shape are taken
together in their own precision, which is several times faster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn


def orthogonalise(X: Float[Tensor, "b r c"], iterations: int = 5) -> Float[Tensor, "b r c"]:
    """About U V^T of each X = U S V^T with r <= c: singular values between 0.7 and 1.2, whatever
    they were."""
    X = X / (X.norm(dim=(-2, -1), keepdim=True) + 1e-12)
    for _ in range(iterations):
        A = X @ X.mT
        X = torch.baddbmm(X, torch.baddbmm(A, A, A, beta=-4.7750, alpha=2.0315), X, beta=3.4445)
    return X


class Muon(torch.optim.Optimizer):
    """For the matrices of a network; give the rest to AdamW."""

    def __init__(self, parameters: Iterable[Any], lr: float = 0.02, momentum: float = 0.95):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
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
        """The gradient with Nesterov momentum, lying down."""
        assert W.grad is not None
        state = self.state[W]
        if not state:
            state["momentum"] = torch.zeros_like(W)
        M = state["momentum"].lerp_(W.grad, 1 - momentum)
        descent = W.grad.lerp(M, momentum)
        return descent if W.shape[0] <= W.shape[1] else descent.T


def make_optimisers(
    model: nn.Module, lr: float, muon_lr: float, kernel_rate: float = 1.0
) -> list[torch.optim.Optimizer]:
    """Muon for the matrices, AdamW for the rest; AdamW for all when muon_lr is 0. kernel_rate: a
    factor of both, of what is a kernel's."""
    groups: dict[bool, dict[float, list[Tensor]]] = {
        True: defaultdict(list),
        False: defaultdict(list),
    }
    for name, p in model.named_parameters():
        if p.requires_grad:
            groups[bool(muon_lr) and p.ndim == 2][kernel_rate if ".kappa." in name else 1.0].append(
                p
            )

    def with_rates(of: dict[float, list[Tensor]], rate: float) -> list[dict[str, Any]]:
        return [{"params": parameters, "lr": factor * rate} for factor, parameters in of.items()]

    rest: list[Any] = (
        [torch.optim.AdamW(with_rates(groups[False], lr), lr=lr, weight_decay=0.0, fused=True)]
        if groups[False]
        else []
    )
    return rest + ([Muon(with_rates(groups[True], muon_lr), lr=muon_lr)] if groups[True] else [])
