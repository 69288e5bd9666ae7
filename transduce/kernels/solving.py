"""The systems of `Ridge`: solved at once, updated by a few examples, or approximated by landmarks.

n x n       alpha_j = (K_j + lambda_j I)^-1 u
p x p       theta_j = (Psi_j^T Psi_j + lambda_j I)^-1 Psi_j^T u
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from .candidates import Candidates
from .grams import Points
from .grams.base import Landmarks
from .systems import (
    SMALLEST_RIDGE,
    Solve,
    Solved,
    apply_inverse,
    extended,
    identity_like,
    inverse_factor,
    without,
)

FEW = 1 / 16  # share of the examples that may change for updates to be cheaper than a new factor


def solve(
    candidates: Candidates,
    K: Float[Tensor, "b j n n"],
    u: Float[Tensor, "b n q"],
    there: Float[Tensor, "b n"] | None,
) -> Solved:
    """Solve for the coefficients. Examples that are not `there` get a row of the identity."""
    ridge = candidates.ridge()
    if there is not None:
        K = K * (there[:, None, :] * there[:, :, None])[:, None]
        ridge = ridge + (1 - there)[:, None]
    K.diagonal(dim1=-2, dim2=-1).add_(ridge)
    alpha, diagonal, factor = Solve.apply(K, u)
    return Solved(alpha / diagonal[..., None], 1 / diagonal, alpha, factor)


def solve_updated(
    candidates: Candidates,
    factor: Float[Tensor, "b j m m"],
    rows: Sequence[int],
    points: Points,
    scale: Float[Tensor, "b _"],
    u: Float[Tensor, "b n q"],
) -> Solved:
    """Solve from the factor of other examples, of which these rows are the first ones here."""
    W, kept = factor, len(rows)
    for i in sorted(set(range(W.shape[-1])) - set(rows), reverse=True):
        W = without(W, i)
    if list(rows) != sorted(rows):
        W = W[..., torch.tensor(rows).argsort().argsort()]
    new = tuple(part[..., kept:, :] for part in points)
    K = candidates.between(new, points, scale)
    identity = torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)[kept:]
    W = extended(W, K + candidates.ridge()[..., None] * identity)
    alpha, diagonal = apply_inverse(W, u), W.square().sum(-2)
    return Solved(alpha / diagonal[..., None], 1 / diagonal, alpha, W)


def solve_spanned(
    candidates: Candidates,
    landmarks: Landmarks,
    points: Points,
    scale: Float[Tensor, "b k"],
    u: Float[Tensor, "b n q"],
) -> Solved:
    """Solve for the coefficients of the features that the landmarks span."""
    psi, ridge = candidates.design(points, scale, landmarks), candidates.ridge()
    gram = psi.mT @ psi
    W = inverse_factor(gram + ridge[..., None] * identity_like(gram))
    theta = W.mT @ (W @ (psi.mT @ u[:, None]))
    rest = (1 - (psi @ W.mT).square().sum(-1)).clamp(min=SMALLEST_RIDGE)
    residuals = (u[:, None] - psi @ theta) / rest[..., None]
    variances = candidates.unspanned(points, scale, psi) + ridge / rest
    return Solved(residuals, variances, theta, W)


def few(old: int, kept: int, new: int) -> bool:
    """Whether updating from `old` examples, of which `kept` stay, to `new` is the cheaper way."""
    return (old - kept) + (new - kept) <= max(1, FEW * old)
