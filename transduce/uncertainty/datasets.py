"""Monte Carlo in the space of datasets: which sets of simulated pairs explain those observed, and
what parameters they have.

    p(c, S | observed) ~ exp(-sum_i e_i(S)^2 / (2 noise^2)),      e_i(S) = |u_i - T(S)(v_i)| / |u_i|

S is k pairs of a bank whose parameters are alike: any k of the neighbours N_c of a pair c, those
nearest to it in their parameters. Were S free, chance would favour sets of all parameters, whose
mean is that of the bank. The paper names the idea (section 5.2): as a regression takes no training,
every state of a Markov chain can be one. A step either

    swaps a pair of S for another of N_c,
    or moves to c', near c or anywhere, and replaces S \\ N_c' by as many of N_c' \\ N_c

and is accepted with probability min(1, p(c', S') / p(c, S)): the way back is as likely. Bank and
observed pairs are read once, and the chains are the masks of one batch of regressions. The mean of
S's parameters is a sample of those of the observed operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..transducer import Transducer
from ..types import ExampleSet, TransduceError, like, to_tensor
from .chains import band, check_sampling, effective_sizes

BURN_IN = 100  # steps at least


@dataclass(frozen=True, eq=False)
class DatasetPosterior:
    """The posterior of the observed operator's parameters.

    Attributes:
        mean: of the parameter, or of each if there are several.
        low: lower end of its band.
        high: upper end of its band.
        samples: mean parameters of each sampled set, (samples,) or (samples, p).
        errors: root mean square of e_i of each sampled set.
        members: how often each pair of the bank was in a set.
        acceptance: share of accepted steps.
        effective: effective sample size, of the parameter with the smallest.
    """

    mean: Any
    low: Any
    high: Any
    samples: Any
    errors: Float[Tensor, " s"]
    members: Float[Tensor, " n"]
    acceptance: float
    effective: float


@torch.no_grad()
def dataset_posterior(
    T: Transducer,
    bank: ExampleSet | object,
    parameters: object,
    observed: ExampleSet | object,
    *,
    noise: float,
    k: int = 6,
    among: int | None = None,
    samples: int = 1000,
    chains: int = 16,
    level: float = 0.9,
    generator: torch.Generator | None = None,
) -> DatasetPosterior:
    """The parameters of an operator of which a few pairs were observed.

    Args:
        T: the model that regresses.
        bank: pairs of operators whose parameters are known.
        parameters: of each pair of the bank, (n,) or (n, p).
        observed: pairs of the unknown operator.
        noise: relative error, root mean square over functions, that a set is expected to leave:
            that of T with k examples, and of the measurement.
        k: number of pairs of a set.
        among: number of neighbours that a set is drawn from; default: 3 k.
        samples: number of sets to keep, after as many that are not.
        chains: number of Markov chains.
        level: of the band.
        generator: of the chains.

    >>> found = dataset_posterior(T, bank, nu, observed, noise=0.05, generator=generator)
    >>> found.mean, found.low, found.high
    """
    check_sampling(noise, level, samples, chains, fewest=1)
    bank, observed = _pairs(bank, "bank"), _pairs(observed, "observed")
    among = _neighbours(bank, k, among)
    theta = _checked(parameters, len(bank))
    explained = Explained(T, bank, observed, noise)
    generator = generator or torch.Generator().manual_seed(0)
    near = neighbours_of(theta, among)
    sets, energies, acceptance = walk(explained, near, k, samples, chains, generator)
    means = sets.to(theta) @ theta / k
    drawn, energies, members = (part.flatten(0, 1)[:samples] for part in (means, energies, sets))
    mean, low, high, drawn = _like(parameters, (drawn.mean(0), *band(drawn, level), drawn))
    errors = (2 * noise**2 * energies / len(observed)).sqrt()
    share, effective = members.double().mean(0), float(effective_sizes(means).min())
    return DatasetPosterior(mean, low, high, drawn, errors, share, acceptance, effective)


def _like(parameters: object, found: Sequence[Tensor]) -> list[Any]:
    """Parameters of sets in the kind of array, and with as many axes, as the user's."""
    template = parameters if isinstance(parameters, Tensor) else np.asarray(parameters)
    return [like(f if template.ndim == 2 else f[..., 0], template) for f in found]


def _pairs(given: object, name: str) -> ExampleSet:
    """The pairs that were given; raises if they are no ExampleSet."""
    if isinstance(given, ExampleSet):
        return given
    raise TransduceError(
        f"{name} is of type {type(given).__name__}; expected an ExampleSet of at least one pair. "
        "Give one."
    )


def _neighbours(bank: ExampleSet, k: int, among: int | None) -> int:
    """How many neighbours a set is drawn from; raises if the arguments do not fit."""
    count = min(3 * k, len(bank)) if among is None else among
    if not 1 <= k < count <= len(bank):
        raise TransduceError(
            f"sets of k={k} pairs among {count} neighbours in a bank of {len(bank)}; expected 1 "
            f"<= k < among <= {len(bank)}, to have something to swap. Lower k, or give a larger "
            "bank."
        )
    return count


def _checked(parameters: object, n: int) -> Float[Tensor, "n p"]:
    theta = to_tensor(parameters, "parameters").double()
    if theta.ndim not in (1, 2) or len(theta) != n or not theta.numel():
        raise TransduceError(
            f"parameters have shape {tuple(theta.shape)}; expected ({n},), or ({n}, p) for "
            "several: those of each pair of the bank."
        )
    return theta.reshape(n, -1)


def neighbours_of(theta: Float[Tensor, "n p"], among: int) -> Bool[Tensor, "n n"]:
    """Whether j is one of those nearest to i, itself included, parameters being measured in units
    of their spread."""
    unit = theta / theta.std(0, correction=0).clamp(min=1e-300)
    distances = torch.cdist(unit, unit, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(
        -1
    )
    return torch.zeros_like(distances, dtype=torch.bool).scatter(
        1, distances.argsort(dim=1, stable=True)[:, :among], True
    )


class Explained:
    """How well sets of the bank explain the observed pairs, which are never examples."""

    def __init__(self, T: Transducer, bank: ExampleSet, observed: ExampleSet, noise: float):
        self.T, self.noise, self.n = T, noise, len(bank)
        v, u = [], []
        for name, pairs in (("bank", bank), ("observed", observed)):
            x = None if pairs.x is None else to_tensor(pairs.x, f"{name}.x")
            v.append(T.encode(T.V, pairs.v, x, f"{name}.v")[0])
            c, grid = T.encode(T.U, pairs.u, x, f"{name}.u")
            u.append(c)
        self.at: Any = grid if x is None else x
        self.points = T.U.isometry(grid) if x is None else None
        self.u = to_tensor(observed.u, "observed.u").to(c).flatten(1)
        self.squares = self.u.square().sum(1)
        if not self.squares.all():
            place = int((self.squares == 0).int().argmax())
            raise TransduceError(
                f"observed.u[{place}] is zero; expected functions that an error can be relative "
                "to. Drop it."
            )
        # What the coefficients of u do not represent.
        self.rest = (self.u - T.U.decode(c, self.at).flatten(1)).square().sum(1)
        self.c = torch.cat(u)[None]
        self.reads = T.read(torch.cat(v)[None], self.c)

    def energy(self, sets: Bool[Tensor, "b n"]) -> Float[Tensor, " b"]:
        """sum_i e_i^2 / (2 noise^2)"""
        used = torch.nn.functional.pad(sets.to(self.c.device), (0, len(self.u)))
        errors = None if self.points is None else self.T.split_errors(self.reads, used)
        if errors is None or self.points is None:
            answers = self.T.split(self.reads, self.c, used)[:, self.n :]
            squares = (self.T.U.decode(answers, self.at).flatten(2) - self.u).square().sum(-1)
        else:
            squares = self.points * errors[:, self.n :].clamp(min=0) + self.rest
        return (squares / self.squares).sum(1).cpu().double() / (2 * self.noise**2)


def walk(
    explained: Explained,
    inside: Bool[Tensor, "n n"],
    k: int,
    samples: int,
    chains: int,
    generator: torch.Generator,
) -> tuple[Bool[Tensor, "t c n"], Float[Tensor, "t c"], float]:
    """The sets of the chains after burn-in, their energies, and the share of steps taken. inside:
    the neighbours of each pair."""
    steps, n = -(-samples // chains), len(inside)

    def some_of(candidates: Bool[Tensor, "c n"], count: Tensor | int) -> Bool[Tensor, "c n"]:
        """`count` of the candidates of each chain, at random."""
        keys = torch.rand(candidates.shape, generator=generator).masked_fill(~candidates, 2.0)
        return candidates & (keys.argsort(1).argsort(1) < count)

    c = torch.randint(n, (chains,), generator=generator)
    members = some_of(inside[c], k)
    energy, states, taken = explained.energy(members), [], 0.0
    burn_in = max(BURN_IN, steps)
    for number in range(burn_in + steps):
        kind = torch.randint(3, (chains,), generator=generator)
        near, anywhere = (
            some_of(inside[c], 1).int().argmax(1),
            torch.randint(n, (chains,), generator=generator),
        )
        c_new = torch.stack([c, near, anywhere])[kind, torch.arange(chains)]
        swap = (kind == 0)[:, None]
        leaving = torch.where(swap, some_of(members, 1), members & ~inside[c_new])
        coming = some_of(
            inside[c_new] & ~torch.where(swap, members, inside[c]), leaving.sum(1, keepdim=True)
        )
        proposed = members & ~leaving | coming
        energy_proposed = explained.energy(proposed)
        accepted = (
            torch.rand(chains, dtype=energy.dtype, generator=generator).log()
            < energy - energy_proposed
        )
        accepted &= (kind != 1) | inside[c_new, c]  # or there is no way back
        c, energy = torch.where(accepted, c_new, c), torch.where(accepted, energy_proposed, energy)
        members = torch.where(accepted[:, None], proposed, members)
        if number >= burn_in:
            states.append((members, energy))
            taken += float(accepted.double().mean()) / steps
    sets, energies = (torch.stack(part) for part in zip(*states, strict=True))
    return sets, energies, taken
