"""The law of evolution of least error after a step.

    w = argmin_w  sum_i |u_i - u_hat(v_i; w)|^2

by Levenberg and Marquardt's steps, from the weights that are best for differences in time of long
waves. Then come fewer terms, if they explain the examples about as well, and finer steps in time,
until finer ones no longer change the answer.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from .comparison import evenly
from .evolution import Evolution, Terms

SUBSTEPS, MOST_SUBSTEPS = 8, 64
RESOLVED = 1e-10  # errors that do not matter
SHARES = (1e-1, 1e-2, 1e-3, 1e-4)  # of the largest effect of a term; terms below are left out
AS_GOOD = 1.05  # factor in the error with fewer terms
VALUES, FEWEST = 4096, 8  # values of examples that are fitted, about; examples at least
STARTS = (4, 16, 10_000)  # waves in the differences that the fit starts from
GOOD = 1e-3  # error of a fit for which no other start is tried
USELESS = 0.3  # error of a law that is not worth fitting further
ITERATIONS = 12
LARGEST = 1e3  # error of a value in units of the spread; larger ones count as this


def fitted(
    v: Float[Tensor, "n c p"], u: Float[Tensor, "n c p"], known: Evolution | None = None
) -> Evolution:
    """The law of least squared error.

    Args:
        v: states on a uniform grid over one period.
        u: the states one step later.
        known: the law of some of these pairs. If it explains all of them, its terms are kept.
    """
    if known is not None:
        found = _continued(known, v, u)
        if found.error < GOOD:
            return found
    size = float((v - v.mean()).square().mean().sqrt()) or 1.0
    closed = _is_closed(v, u, size)
    v, u = _few(v, u, size, closed)
    terms = Terms(v.shape[1], v.shape[2])
    laws = (
        _refined(Evolution(terms, _differences(terms, v, u, waves), size, closed, SUBSTEPS), v, u)
        for waves in STARTS
    )
    best = next(laws)
    while best.error >= GOOD and (other := next(laws, None)) is not None:
        best = min(best, other, key=lambda law: law.error)
    return best if best.error > USELESS else _resolved(_sparse(best, v, u), v, u)


def _continued(law: Evolution, v: Tensor, u: Tensor) -> Evolution:
    """The same terms, fitted to other pairs."""
    pairs = _few(v, u, law.size, law.closed)
    return _resolved(_refined(law, *pairs), *pairs)


def _few(v: Tensor, u: Tensor, size: float, closed: bool) -> tuple[Tensor, Tensor]:
    """Some of the pairs, in units of `size`, without the repeated point."""
    few = evenly(len(v), max(FEWEST, VALUES // (v.shape[1] * v.shape[2])))
    f, g = ((f[few, :, :-1] if closed else f[few]) / size for f in (v, u))
    return f, g


def _sparse(law: Evolution, v: Tensor, u: Tensor) -> Evolution:
    """The law with the fewest terms that explain the examples about as well: those that change the
    states most."""
    sizes = law.w.abs() / _units(law, v)
    for share in SHARES:
        active = sizes > share * sizes.max()
        if active.all() or not active.any():
            return law
        few = _refined(replace(law, w=law.w * active, active=active), v, u)
        if few.error <= max(AS_GOOD * law.error, RESOLVED):
            return few
    return law


def _resolved(law: Evolution, v: Tensor, u: Tensor) -> Evolution:
    """The law with enough substeps that more of them do not change what it explains."""
    while law.substeps < MOST_SUBSTEPS:
        finer = replace(law, substeps=2 * law.substeps)
        change = (finer._step(v) - law._step(v)).square().sum() / _variation(u)
        if not change > max(0.01 * law.error, RESOLVED):
            return law
        law = _refined(finer, v, u)
    return law


def _differences(terms: Terms, v: Tensor, u: Tensor, waves: int) -> Float[Tensor, "j c"]:
    """Weights by which u - v is the mean of the terms of v and u, over long waves."""
    h, g = torch.fft.rfft(v), torch.fft.rfft(u)
    both = [torch.cat([terms.linear_of(f), terms.others_of(f)], 1) for f in (h, g)]
    mean = (both[0] + both[1])[..., :waves].movedim(1, -1).flatten(0, -2) / 2
    change = (g - h)[..., :waves].movedim(1, -1).flatten(0, -2)
    A, b = (torch.cat([f.real, f.imag]) for f in (mean, change))
    size = A.norm(dim=0).clamp(min=1e-300)
    gram = (A / size).T @ (A / size)
    return (
        torch.linalg.solve(gram + 1e-10 * torch.eye(len(gram)).double(), (A / size).T @ b)
        / (size[:, None])
    )


def _refined(law: Evolution, v: Tensor, u: Tensor) -> Evolution:
    """Levenberg and Marquardt's steps on the squared error of one step."""
    unit = _units(law, v)
    variation, damping = _variation(u), 1e-3
    r = _residual(law, v, u)
    for _ in range(ITERATIONS):
        J = _jacobian(law, r, unit, v, u)
        gram, gradient, before = J.T @ J, J.T @ r, r.square().sum()
        law, r, damping = _descended(law, r, damping, unit, (gram, gradient), (v, u))
        if not r.square().sum() < 0.999 * before:
            break
    return replace(law, error=float(r.square().sum() / variation))


def _units(law: Evolution, v: Tensor) -> Float[Tensor, "j c"]:
    """The weight of each term that changes states as much as their size."""
    h = torch.fft.rfft(v)
    sizes = torch.cat([law.terms.linear_of(h), law.terms.others_of(h)], 1).abs().square()
    unit = (h.abs().square().mean() / sizes.mean((0, 2)).clamp(min=1e-300)).sqrt()
    return unit[:, None].expand_as(law.w)


def _jacobian(law: Evolution, r: Tensor, unit: Tensor, v: Tensor, u: Tensor) -> Tensor:
    """Derivatives of the residual by each weight, in units of it."""
    columns, small = [], 1e-5
    for j in _active(law):
        change = torch.zeros_like(law.w).flatten()
        change[j] = small
        moved = replace(law, w=law.w + change.view_as(law.w) * unit)
        columns.append((_residual(moved, v, u) - r) / small)
    return torch.stack(columns, 1)


def _active(law: Evolution) -> list[int]:
    """The numbers of the weights that are fitted."""
    every = torch.ones_like(law.w, dtype=torch.bool) if law.active is None else law.active
    return every.flatten().nonzero()[:, 0].tolist()


def _descended(
    law: Evolution,
    r: Tensor,
    damping: float,
    unit: Tensor,
    system: tuple[Tensor, Tensor],
    pairs: tuple[Tensor, Tensor],
) -> tuple[Evolution, Tensor, float]:
    """The law after a step that makes the error smaller, if one is found."""
    gram, gradient = system
    own = gram.diagonal()
    for _ in range(6):
        A = gram + torch.diag(damping * own + 1e-12 * own.mean() + 1e-300)
        step = torch.linalg.lstsq(A, gradient[:, None]).solution[:, 0]
        change = torch.zeros_like(law.w).flatten()
        change[_active(law)] = step
        moved = replace(law, w=law.w - change.view_as(law.w) * unit)
        found = _residual(moved, *pairs)
        if found.square().sum() < r.square().sum():
            return moved, found, max(damping / 10, 1e-9)
        damping *= 10
    return law, r, damping


def _residual(law: Evolution, v: Tensor, u: Tensor) -> Float[Tensor, " k"]:
    r = torch.nan_to_num(law._step(v) - u, nan=LARGEST, posinf=LARGEST, neginf=-LARGEST)
    return r.clamp(-LARGEST, LARGEST).flatten()


def _variation(u: Tensor) -> Tensor:
    return (u - u.mean(0)).square().sum().clamp(min=1e-300)


def _is_closed(v: Tensor, u: Tensor, size: float) -> bool:
    """Whether the last point is the first one again."""
    return all(bool((f[..., 0] - f[..., -1]).abs().max() <= 1e-6 * size) for f in (v, u))
