"""Ridge regression from examples of several equations each, with exact leave-one-out.

    W = (sum_i X_i^T X_i + mu I)^-1 sum_i X_i^T y_i

Of an example i that is left out, with H_i = X_i A^-1 X_i^T, A the matrix above and M_-i the moments
without it, the answer is (I - H_i)^-1 X_i A^-1 M_-i. In the eigenbasis of A this costs a system as
small as the number of equations of one example, for each mu.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .systems import identity_like

FACTORS = (1e-4, 1e-2, 1.0, 1e2)  # mu


class LeftOut(NamedTuple):
    """Read-outs of all examples, and of all but one."""

    W: Float[Tensor, "k d"]
    others: Float[Tensor, "k n d"]
    mu: Float[Tensor, " k"]


def solve_left_out(
    X: Float[Tensor, "k n q d"],
    y: Float[Tensor, "k n q"],
    there: Float[Tensor, "k n"],
    mu: Float[Tensor, " k"] | None,
) -> LeftOut:
    """Ridge regression of y on X with ridge mu, of least leave-one-out error if it is not given.
    y is centred by its mean over examples, which is left out as well."""
    if X.requires_grad:
        with torch.no_grad():
            mu = solve_left_out(X.detach(), y, there, mu).mu
        return _inverted(X, y, there, mu)
    rows = X.flatten(1, 2)
    s, Q = torch.linalg.eigh(rows.mT @ rows)
    s, X = s.clamp(min=0), X @ Q[:, None]
    share, moment, others = _moments(X, y, there)
    identity = torch.eye(y.shape[2], dtype=y.dtype, device=y.device)
    candidates = [torch.full_like(s[:, 0], mu) for mu in FACTORS] if mu is None else [mu]
    own = (y + share)[..., None]
    best: list[Tensor] = []
    for factor in candidates:
        inverse = 1 / (s + factor[:, None])
        scaled = X * inverse[:, None, None]
        answers = torch.linalg.solve(identity - scaled @ X.mT, scaled @ others[..., None])
        error = ((own - answers) * there[..., None, None]).square().sum((1, 2, 3))
        found = [error, factor[:, None, None], inverse[:, None], answers[..., 0]]
        if best:
            less = error < best[0]
            found = [
                torch.where(less.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                for new, old in zip(found, best, strict=True)
            ]
        best = found
    _, chosen, inverse, answers = best
    left = inverse * (others + (X.mT @ answers[..., None])[..., 0])
    W, chosen = inverse[:, 0] * moment, chosen[:, 0, 0]
    return LeftOut((Q @ W[..., None])[..., 0], left @ Q.mT, chosen)


def _inverted(X: Tensor, y: Tensor, there: Tensor, mu: Float[Tensor, " k"]) -> LeftOut:
    """The same for given ridges, with gradients: eigenvectors of equal eigenvalues have none."""
    _, moment, others = _moments(X, y, there)
    rows = X.flatten(1, 2)
    gram = rows.mT @ rows
    inverse = torch.linalg.inv(gram + mu[:, None, None] * identity_like(gram))
    scaled = X @ inverse[:, None]
    H = scaled @ X.mT
    answers = torch.linalg.solve(identity_like(H) - H, scaled @ others[..., None])
    left = (others + (X * answers).sum(2)) @ inverse
    return LeftOut((inverse @ moment[..., None])[..., 0], left, mu)


def _moments(X: Tensor, y: Tensor, there: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What leaving an example out adds to its y, the moments of all, and those of all but one."""
    share = y / (there.sum(1)[:, None, None] - 1).clamp(min=1)
    each = (X.mT @ y[..., None])[..., 0]  # (k, n, d)
    moment = each.sum(1)
    others = moment[:, None] - each - (X.mT @ share[..., None])[..., 0] + share @ X.sum(1)
    return share, moment, others
