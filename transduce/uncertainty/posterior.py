"""The posterior of an input given its output, and its most probable value.

    E(xi) = (u - O(v))^T C^-1 (u - O(v)) / 2 + |xi|^2 / 2 = -log p(xi | u) + constant

The most probable xi* is found by Gauss-Newton steps. Gradients are exact, back through O. The
matrix H = I + A^T C^-1 A with A = dO / dxi only steers, so central differences suffice, in one
batch of queries. Near xi* the posterior is about N(xi*, H^-1) (Laplace).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..types import Operator, TransduceError, to_tensor
from .gaussian_prior import GaussianPrior

DIFFERENCE = 0.1  # of xi, in central differences
STARTS = 32  # draws of the prior, of which the most probable is where the search begins
LENGTHS = 0.5 ** torch.arange(8, dtype=torch.float64)  # of a Gauss-Newton step, tried at once
ITERATIONS = 50
SETTLED = 1e-4  # a step that promises to lower E by less is the last


@dataclass(frozen=True)
class Noise:
    """C^-1/2: noise everywhere, and less of a few orthonormal directions, by `shares`."""

    deviation: float
    directions: Float[Tensor, "p r"]
    shares: Float[Tensor, " r"]

    def whitened(self, f: Float[Tensor, "*b p"]) -> Float[Tensor, "*b p"]:
        return (f - f @ self.directions * self.shares @ self.directions.T) / self.deviation


def noise_of(noise: float, u: Float[Tensor, "m ..."], errors: object) -> Noise:
    """C^-1/2 from the modes of O's errors, which are functions like u."""
    r = u[:0] if errors is None else to_tensor(errors, "errors").to(u)
    if r.shape[1:] != u.shape[1:]:
        raise TransduceError(
            f"errors have shape {tuple(r.shape)}, u_observed {tuple(u.shape)}; expected the same "
            "but for how many there are. Give both on "
            "one grid."
        )
    _, sizes, directions = torch.linalg.svd(r.flatten(1), full_matrices=False)
    return Noise(noise, directions.T, 1 - noise / (noise**2 + sizes**2).sqrt())


@dataclass(frozen=True)
class Posterior:
    """E, its gradient and its curvature, for m observed functions at once."""

    O: Operator
    u: Float[Tensor, "m ..."]
    prior: GaussianPrior
    noise: Noise

    def answers(self, xi: Float[Tensor, "m b d"]) -> Float[Tensor, "m b p"]:
        """C^-1/2 O(v)."""
        u: Any = self.O(self.prior.fields(xi.flatten(0, 1)))
        return self.noise.whitened(u.double().flatten(1)).unflatten(0, xi.shape[:2])

    @cached_property
    def observed(self) -> Float[Tensor, "m p"]:
        """C^-1/2 u."""
        return self.noise.whitened(self.u.flatten(1))

    def energy(self, xi: Float[Tensor, "m b d"]) -> Float[Tensor, "m b"]:
        """E; infinite where O's answer is not a number."""
        misfits = self.observed[:, None] - self.answers(xi)
        return ((misfits.square().sum(-1) + xi.square().sum(-1)) / 2).nan_to_num(nan=math.inf)

    def gradient(self, xi: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        with torch.enable_grad():
            xi = xi.detach().requires_grad_()
            answers = self.answers(xi[:, None])[:, 0]
            if not answers.requires_grad:
                raise TransduceError(
                    "the answers of O carry no gradient; expected an operator that torch can "
                    "differentiate in v."
                )
            (back,) = torch.autograd.grad(answers, xi, answers.detach() - self.observed)
        return xi.detach() + back

    def curvature(self, xi: Float[Tensor, "m d"]) -> Float[Tensor, "m d d"]:
        """H = I + A^T C^-1 A."""
        identity = torch.eye(xi.shape[1], dtype=xi.dtype)
        ahead, behind = (
            self.answers(xi[:, None] + step * identity) for step in (DIFFERENCE, -DIFFERENCE)
        )
        A = (ahead - behind) / (2 * DIFFERENCE)
        return identity + A @ A.mT


def most_probable(posterior: Posterior) -> tuple[Float[Tensor, "m d"], Float[Tensor, "m d d"]]:
    """xi* and H there, by Gauss-Newton steps of the best of a few lengths; H is renewed when they
    slow down."""
    m, d = len(posterior.u), len(posterior.prior.root)
    starts = torch.randn(STARTS, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    xi = starts[posterior.energy(starts.expand(m, -1, -1)).argmin(1)]
    H, before = posterior.curvature(xi), math.inf
    for _ in range(ITERATIONS):
        gradient = posterior.gradient(xi)
        step = -torch.linalg.solve(H, gradient)
        promised = float((-gradient * step).sum(1).max()) / 2
        if promised < SETTLED:
            break
        if promised > before / 10:
            H = posterior.curvature(xi)
            step = -torch.linalg.solve(H, gradient)
        trials = torch.cat([xi[:, None], xi[:, None] + LENGTHS[:, None] * step[:, None]], 1)
        best = posterior.energy(trials).argmin(1)
        xi, before = trials[torch.arange(m), best], promised
        if not best.any():
            break
    if promised > 0.1:
        warnings.warn(
            "the search for the most probable input ended where a step still promised "
            f"{promised:.2g} nats: O may be too rough for its "
            "gradients, or noise too small. Compare O(v) with u_observed.",
            stacklevel=4,
        )
    return xi, posterior.curvature(xi)
