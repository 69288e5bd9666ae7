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

from .comparison import without_each
from .systems import identity_like

FACTORS = (1e-4, 1e-2, 1.0, 1e2)  # mu


class LeftOut(NamedTuple):
    """Read-outs of all examples, and of all but one, with the ridges that they chose."""

    W: Float[Tensor, "k d"]
    others: Float[Tensor, "k n d"]
    mu: Float[Tensor, " k"]
    mu_others: Float[Tensor, "k n"]


def solve_left_out(
    X: Float[Tensor, "k n q d"],
    y: Float[Tensor, "k n q"],
    there: Float[Tensor, "k n"],
    mu: Float[Tensor, " k"] | None,
) -> LeftOut:
    """Ridge regression of y on X with ridge mu, of least leave-one-out error if it is not given;
    an example that is left out takes no part in that choice. y is centred by its mean over
    examples, which is left out as well."""
    if X.requires_grad:
        with torch.no_grad():
            known = solve_left_out(X.detach(), y, there, mu)
        return _inverted(X, y, there, known.mu, known.mu_others)
    rows = X.flatten(1, 2)
    s, Q = torch.linalg.eigh(rows.mT @ rows)
    s, X = s.clamp(min=0), X @ Q[:, None]
    share, moment, others = _moments(X, y, there)
    identity = torch.eye(y.shape[2], dtype=y.dtype, device=y.device)
    factors = [torch.full_like(s[:, 0], mu) for mu in FACTORS] if mu is None else [mu]
    answers = []
    for factor in factors:
        scaled = X / (s + factor[:, None])[:, None, None]
        found = torch.linalg.solve(identity - scaled @ X.mT, scaled @ others[..., None])
        answers.append(found[..., 0])
    wrong = (y + share - torch.stack(answers)) * there[..., None]
    errors = wrong.square().sum(3)  # (factors, k, n)
    total = errors.sum(2)
    each = without_each(errors).argmin(0)  # without the example, (k, n)
    given = torch.stack(factors)
    mu, mu_others = given.gather(0, total.argmin(0)[None])[0], given.T.gather(1, each)
    kept = torch.stack(answers).gather(0, each[None, ..., None].expand(1, *y.shape))[0]
    left = (others + (X.mT @ kept[..., None])[..., 0]) / (s[:, None] + mu_others[..., None])
    W = moment / (s + mu[:, None])
    return LeftOut((Q @ W[..., None])[..., 0], left @ Q.mT, mu, mu_others)


def _inverted(
    X: Tensor,
    y: Tensor,
    there: Tensor,
    mu: Float[Tensor, " k"],
    mu_others: Float[Tensor, "k n"],
) -> LeftOut:
    """The same for given ridges, with gradients: eigenvectors of equal eigenvalues have none."""
    _, moment, others = _moments(X, y, there)
    rows = X.flatten(1, 2)
    gram = rows.mT @ rows

    def without(mu: Float[Tensor, " k"]) -> tuple[Tensor, Tensor]:
        inverse = torch.linalg.inv(gram + mu[:, None, None] * identity_like(gram))
        scaled = X @ inverse[:, None]
        H = scaled @ X.mT
        answers = torch.linalg.solve(identity_like(H) - H, scaled @ others[..., None])
        return inverse, (others + (X * answers).sum(2)) @ inverse

    inverse, left = without(mu)
    for other in mu_others.unique():
        chosen = (mu_others == other) & (mu_others != mu[:, None])
        if chosen.any():
            left = torch.where(chosen[..., None], without(torch.full_like(mu, other))[1], left)
    return LeftOut((inverse @ moment[..., None])[..., 0], left, mu, mu_others)


def _moments(X: Tensor, y: Tensor, there: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What leaving an example out adds to its y, the moments of all, and those of all but one."""
    share = y / (there.sum(1)[:, None, None] - 1).clamp(min=1)
    each = (X.mT @ y[..., None])[..., 0]  # (k, n, d)
    moment = each.sum(1)
    others = moment[:, None] - each - (X.mT @ share[..., None])[..., 0] + share @ X.sum(1)
    return share, moment, others
