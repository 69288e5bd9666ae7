"""The two linear systems of kernel ridge regression, with their leave-one-out residuals r_i.

    n x n       alpha = (K + lambda I)^-1 u,        u_hat(v) = k(v) alpha
                r_i = alpha_i / P_ii,               P = (K + lambda I)^-1
    p x p       theta = Q Psi^T u,                  u_hat(v) = psi(v) theta
                Q = (Psi^T Psi + lambda I)^-1,      P_ii = (1 - psi_i Q psi_i^T) / lambda

They agree where K = Psi Psi^T. The first costs n^3, the second n p^2. Both keep a factor W of the
inverse, W^T W = P or Q, which variances and updates need.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..types import TransduceError

SMALLEST_RIDGE = 1e-12
LOG_UNIT = 10.0  # logarithms are learned in units of this: AdamW moves every parameter alike


class Solved(NamedTuple):
    """One of the two systems, solved for every candidate j before these are mixed."""

    residuals: Float[Tensor, "b j n q"]
    variances: Float[Tensor, "b j n"]
    coefficients: Float[Tensor, "b j r q"]
    factor: Float[Tensor, "b j r r"]


def identity_like(K: Float[Tensor, "... n n"]) -> Float[Tensor, "n n"]:
    return torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)


def inverse_factor(K: Float[Tensor, "... n n"]) -> Float[Tensor, "... n n"]:
    """W with W^T W = K^-1, by Cholesky. If rounding has made K indefinite, the smallest multiple
    of the identity that helps is added."""
    L, failed = torch.linalg.cholesky_ex(K)
    raised = SMALLEST_RIDGE
    while failed.any():
        if raised > 1 or not torch.isfinite(K).all():
            raise TransduceError(
                "a kernel matrix could not be factorised; expected finite features. Check the "
                "values of v."
            )
        lift = raised * K.diagonal(dim1=-2, dim2=-1).mean(-1) * (failed > 0)
        L, failed = torch.linalg.cholesky_ex(K + lift[..., None, None] * identity_like(K))
        raised *= 10
    return torch.linalg.solve_triangular(L, identity_like(K).expand_as(L), upper=False)


def apply_inverse(
    W: Float[Tensor, "b j n n"], u: Float[Tensor, "b n q"]
) -> Float[Tensor, "b j n q"]:
    """W^T W u for every factor, in the cheaper order."""
    if W.shape[-1] <= u.shape[-1]:
        return ((W.mT @ W).flatten(1, 2) @ u).view(*W.shape[:-1], u.shape[-1])
    return W.mT @ (W.flatten(1, 2) @ u).view(*W.shape[:-1], u.shape[-1])


class Solve(torch.autograd.Function):
    """(K, u) -> alpha = K^-1 u, the diagonal of K^-1, and W with W^T W = K^-1, which is not
    differentiated; u is common to all K."""

    @staticmethod
    def forward(ctx: Any, K: Tensor, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        W = inverse_factor(K)
        alpha = apply_inverse(W, u)
        ctx.save_for_backward(W, alpha)
        ctx.mark_non_differentiable(W)
        return alpha, W.square().sum(-2), W

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        W, alpha = ctx.saved_tensors
        d_alpha, d_diagonal, _ = gradients
        P = W.mT @ W
        d_u = P @ d_alpha
        return -(d_u @ alpha.mT + (P * d_diagonal[..., None, :]) @ P), d_u.sum(1)


def without(W: Float[Tensor, "... n n"], i: int) -> Float[Tensor, "... p p"]:
    """The factor of the matrix without row and column i: W's other columns, reflected so that
    column i lies along the first axis, which is then dropped. W need not be triangular."""
    w = W[..., i]
    mirror = w.clone()
    mirror[..., 0] += torch.where(w[..., 0] < 0, -1.0, 1.0) * w.norm(dim=-1)
    mirror = (mirror / mirror.norm(dim=-1, keepdim=True))[..., None]
    rest = torch.cat([W[..., :i], W[..., i + 1 :]], -1)
    return (rest - 2 * mirror * (mirror.mT @ rest))[..., 1:, :]


def extended(
    W: Float[Tensor, "... n n"], rows: Float[Tensor, "... k p"]
) -> Float[Tensor, "... p p"]:
    """The factor of the matrix with these k = p - n rows more, and with their columns."""
    for i in range(rows.shape[-2]):
        n = W.shape[-1]
        across, corner = W @ rows[..., i, :n, None], rows[..., i, n]
        left = (
            (corner - across.square().sum((-2, -1)))
            .clamp(min=SMALLEST_RIDGE * corner.abs())
            .sqrt()[..., None, None]
        )
        last = torch.cat([-across.mT @ W, torch.ones_like(left)], -1) / left
        W = torch.cat([nn.functional.pad(W, (0, 1)), last], -2)
    return W
