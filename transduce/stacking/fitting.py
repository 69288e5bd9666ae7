"""Fitting a trust to records.

    e = mean over queries of w(v)^T E(v) w(v)
    loss = mean over tasks of  log (e / e_b) + c max(0, log (e / 1.1 e_b))
           + (log error - log e)^2 / 8

e_b is the error of the best of the simple baselines in hindsight.
The second term makes being worse than it cost more than being better gains. Some answers are left
out at random in each step, so that a trust can weigh any of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..kernels import Trust
from ..kernels.catalogue import BASELINES, Catalogue
from ..kernels.trust import capped, votes_between, weights_at
from ..random_fields import generator_for
from .records import Records

FLOOR = 1e-10  # errors below it count as equal


@dataclass(frozen=True)
class TrustTraining:
    """How to fit a trust.

    Args:
        steps: of AdamW.
        lr: its learning rate.
        batch: records in a step.
        worse: c, the cost of being worse than the best baseline.
        left_out: the largest share of answers that a step leaves out.
        weight_decay: of AdamW.
        seed: of all draws.
    """

    steps: int = 1500
    lr: float = 3e-3
    batch: int = 192
    worse: float = 6.0
    left_out: float = 0.5
    weight_decay: float = 0.3
    seed: int = 0


def fit_trust(
    trust: Trust, records: Records, catalogue: Catalogue, training: TrustTraining
) -> float:
    """Fit a trust in place; returns the mean loss of the last tenth of the steps.

    Args:
        trust: to fit.
        records: of tasks.
        catalogue: of the answers in the records.
        training: how.
    """
    generator = generator_for("train", training.seed, 5)
    optimiser = torch.optim.AdamW(
        trust.parameters(), lr=training.lr, weight_decay=training.weight_decay
    )
    trust.train()
    last: list[float] = []
    for step in range(training.steps):
        done = step / training.steps
        rate = min(1.0, (step + 1) / 100) * (1 + math.cos(math.pi * done)) / 2
        for group in optimiser.param_groups:
            group["lr"] = rate * training.lr
        rows = torch.randint(len(records), (training.batch,), generator=generator)
        which = kept_answers(len(catalogue.known), training.left_out, generator)
        loss = trust_loss(trust, records[rows], catalogue, which, training.worse)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trust.parameters(), 1.0)
        optimiser.step()
        if done > 0.9:
            last.append(loss.item())
    trust.eval()
    return sum(last) / max(1, len(last))


def ratio_to_best(trust: Trust, records: Records, catalogue: Catalogue) -> float:
    """The mean logarithm of the error in units of that of the best baseline."""
    with torch.no_grad():
        own, best, _ = compared(trust, records, catalogue, list(range(len(catalogue.known))))
    return float((own / best).log().mean())


def kept_answers(answers: int, left_out: float, generator: torch.Generator) -> list[int]:
    """The numbers of the answers, of so many, that take part in a step; the mean always does."""
    share = left_out * torch.rand((), generator=generator)
    kept = torch.rand(answers, generator=generator) >= share
    kept[0] = True
    return kept.nonzero()[:, 0].tolist()


def trust_loss(
    trust: Trust, records: Records, catalogue: Catalogue, which: list[int], worse: float
) -> Tensor:
    """The loss of weighing these answers."""
    own, best, error = compared(trust, records, catalogue, which)
    ratio = (own / best).log()
    reported = (error.clamp(min=FLOOR).log() - own.detach().log()).clamp(-10, 10)
    penalty = worse * (ratio - math.log(1.1)).clamp(min=0)
    return (ratio + penalty).mean() + reported.square().mean() / 8


def compared(
    trust: Trust, records: Records, catalogue: Catalogue, which: list[int]
) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"], Float[Tensor, " b"]]:
    """The error of the weighed sum, that of the best baseline, and the expected error."""
    known = catalogue.known
    votes = votes_between([catalogue.origin_of(known[k]) for k in which])
    some = records.among(which)
    weighing = trust.weigh(some.gram, some.of_answer, some.of_task, which)

    def errors(products: Tensor, strange: Tensor) -> Float[Tensor, "b m"]:
        w = weights_at(weighing, strange.double(), votes)
        return ((products.double() @ w[..., None])[..., 0] * w).sum(2)

    own = errors(some.errors, some.strange).sum(1).clamp(min=FLOOR)
    left = errors(some.left, some.strange_left).detach()
    left = capped(left, (some.left != 0).any(3).any(2).double().sum(1)).sum(1)
    expected = left.clamp(min=FLOOR) * weighing.shift.exp()
    simple = [which.index(k) for k in map(known.index, BASELINES) if k in which]
    best = some.errors.sum(1).diagonal(dim1=1, dim2=2)[:, simple].min(1).values
    return own, best.double().clamp(min=FLOOR), expected
