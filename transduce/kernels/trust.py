"""How far to trust each of several answers, learned once from leave-one-out residuals.

    w_j = softmax_j(a_j - t_j g_j),                         g_j = log (e_j / min_k e_k) / 2
    w_j(v) = softmax_j(a_j - t_j g_j - c_j s_j(v))
    s_j(v) = sum_k w_k log(1 + d_jk(v) / D_jk) / sum_k w_k,     k of another origin than j

r_j are the leave-one-out residuals of answer j and e_j = <r_j, r_j>. d_jk(v) is the squared
distance between answers j and k at a query, and D_jk its mean over the examples, each left out. An
answer that is further from the others than at the examples is trusted less at this query: s_j is
its strangeness. Answers that correct the same answer have one origin and do not vote for each
other.

    log error = log (sum_i |sum_j w_j(v_i) r_ij|^2 / e_0) + b

is the expected error in units of that of the mean of the examples, the first answer. In that sum an
example counts at most ten times the mean of the others. Leaving out the end of a trajectory asks
for extrapolation, which new queries rarely do.

a, t, c and b come from a small network that compares all answers with each other. It reads only
quantities that units and offsets of u leave alone: ratios and correlations of residuals, how errors
are spread over examples, and the number of examples.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..configs import Part

FLOOR = 1e-12  # of errors relative to the mean's; there is nothing to choose below it
TRUST, CAUTION = 3.98, 1.85  # softplus of these: t and c before training
LARGEST_SHIFT = math.log(4)
MOST_OF_ONE = 10.0  # error of an example in units of the mean of the others
OF_ANSWER, OF_TASK = 8, 6  # numbers that describe an answer, and a task


class Attend(nn.Module):
    """Self-attention among the answers, with a bias by the correlation of their residuals."""

    def __init__(self, width: int, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.bias = nn.Linear(1, heads)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width)
        )

    def forward(
        self, h: Float[Tensor, "b j w"], correlation: Float[Tensor, "b j j"]
    ) -> Float[Tensor, "b j w"]:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.query_key_value(self.norm(h)).chunk(3, -1)
        )
        logits = q @ k.mT / q.shape[-1] ** 0.5 + self.bias(correlation[..., None]).movedim(-1, 1)
        h = h + self.out((logits.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return h + self.feed(h)


class Weighing(NamedTuple):
    """How answers are weighed.

    Attributes:
        logits: a_j - t_j g_j.
        caution: c.
        shift: b.
    """

    logits: Float[Tensor, "b j"]
    caution: Float[Tensor, "b j"]
    shift: Float[Tensor, " b"]


class Trust(Part):
    """How several answers are weighed.

    Args:
        answers: how many there are; the first is the mean of the examples.
        width: of the network that compares them.
        layers: of that network.
    """

    def __init__(self, answers: int, width: int = 48, layers: int = 2):
        super().__init__()
        self.answers, self.width, self.layers = answers, width, layers
        self.known = nn.Parameter(0.1 * torch.randn(answers, width))
        self.lift = nn.Linear(OF_ANSWER + OF_TASK, width)
        self.steps = nn.ModuleList(Attend(width) for _ in range(layers))
        self.out = nn.Linear(width, 3)
        self.preference = nn.Parameter(torch.zeros(answers))
        self.error = nn.Linear(width, 1)
        for layer in (self.out, self.error):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(
        self,
        residuals: Float[Tensor, "b j n q"],
        there: Float[Tensor, "b n"],
        which: Sequence[int],
    ) -> Weighing:
        """How these answers are weighed.

        Args:
            residuals: leave-one-out residuals of each answer.
            there: 1 for examples that count, 0 for others.
            which: the numbers of these answers among all that the trust knows.
        """
        return self.weigh(*describe(residuals, there), which)

    def weigh(
        self,
        gram: Float[Tensor, "b j j"],
        of_answer: Float[Tensor, "b j k"],
        of_task: Float[Tensor, "b l"],
        which: Sequence[int],
    ) -> Weighing:
        """The same from what `describe` returns."""
        size = gram.diagonal(dim1=1, dim2=2).sqrt()
        correlation = gram / (size[:, None] * size[:, :, None])
        both = torch.cat([of_answer, of_task[:, None].expand(-1, len(which), -1)], -1)
        h = self.lift(both.to(self.known)) + self.known[list(which)]
        for step in self.steps:
            h = step(h, correlation.to(h))
        preference, trust, caution = self.out(h).double().unbind(-1)
        gap = of_answer[..., 1].double()
        scale = nn.functional.softplus(trust + TRUST)
        logits = self.preference.double()[list(which)] + preference - scale * gap
        single = of_task[:, :1].double() <= 0.1  # one example
        logits = torch.where(single, only_first(logits), logits)
        shift = self.error((h * logits.softmax(-1)[..., None].to(h)).sum(1))[:, 0].double()
        shift = LARGEST_SHIFT * torch.tanh(shift / LARGEST_SHIFT)
        return Weighing(logits, nn.functional.softplus(caution + CAUTION), shift)


def weights_at(
    weighing: Weighing,
    strange: Float[Tensor, "b m j j"],
    votes: Float[Tensor, "j j"],
) -> Float[Tensor, "b m j"]:
    """w_j(v). An answer whose voters weigh less than 1e-9 together is hardly judged by them.

    Args:
        weighing: of the answers.
        strange: log(1 + d_jk / D_jk) at each query.
        votes: 1 for answers of different origin, 0 for others.
    """
    w = weighing.logits.softmax(-1)[:, None] * votes  # (b, j, k)
    w = w / w.sum(-1, keepdim=True).clamp(min=1e-9)
    s = (strange * w[:, None]).sum(-1)
    return (weighing.logits[:, None] - weighing.caution[:, None] * s).softmax(-1)


def votes_between(origins: Sequence[Hashable]) -> Float[Tensor, "j j"]:
    """1 for answers of different origin, 0 for others."""
    return torch.tensor([[float(a != b) for b in origins] for a in origins]).double()


def capped(errors: Float[Tensor, "b n"], n: Float[Tensor, " b"]) -> Float[Tensor, "b n"]:
    """Squared errors of examples, each at most `MOST_OF_ONE` times the mean of the others.

    Args:
        errors: of the examples; zero for those that do not count.
        n: how many count.
    """
    others = (errors.sum(1, keepdim=True) - errors) / (n - 1).clamp(min=1)[:, None]
    return torch.where((n > 2)[:, None], torch.minimum(errors, MOST_OF_ONE * others), errors)


def squared_distances_between(answers: Float[Tensor, "*b j q"]) -> Float[Tensor, "*b j j"]:
    """Squared distances between answers."""
    gram = answers @ answers.mT
    own = gram.diagonal(dim1=-2, dim2=-1)
    return (own[..., None] + own[..., None, :] - 2 * gram).clamp(min=0)


def only_first(logits: Float[Tensor, "b j"]) -> Float[Tensor, "b j"]:
    """Logits that put all weight on the first answer."""
    first = torch.arange(logits.shape[1], device=logits.device) == 0
    return torch.where(first, 0.0, -1e4).to(logits).expand_as(logits)


def describe(
    residuals: Float[Tensor, "b j n q"], there: Float[Tensor, "b n"]
) -> tuple[Float[Tensor, "b j j"], Float[Tensor, "b j k"], Float[Tensor, "b l"]]:
    """Products of residuals in units of the mean's, and what else describes answers and tasks."""
    r = residuals.double() * there[:, None, :, None]
    n = there.sum(1).clamp(min=1)
    flat = r.flatten(2)
    gram = flat @ flat.mT
    largest = gram.diagonal(dim1=1, dim2=2).max(1).values[:, None, None]
    unit = torch.maximum(gram[:, :1, :1], 1e-24 * largest).clamp(min=1e-300)  # 0 if u is constant
    floor = FLOOR * torch.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
    gram = gram / unit + floor
    errors = r.square().sum(-1) / unit  # (b, j, n)
    total = gram.diagonal(dim1=1, dim2=2)
    logs = total.log() / 2
    best = logs.argmin(1)
    gap = logs - logs.min(1, keepdim=True).values
    pick = best[:, None, None].expand(-1, 1, errors.shape[2])
    excess = errors - errors.gather(1, pick)
    noise = excess.square().sum(-1) - excess.sum(-1).square() / n[:, None]
    noise = noise.clamp(min=1e-60).sqrt()  # a root has no derivative at 0
    significance = excess.sum(-1) / (noise + 1e-9 * total + 1e-30)
    size = total.sqrt()
    with_best = gram.gather(2, best[:, None, None].expand(-1, gram.shape[1], 1))[..., 0]
    with_best = with_best / (size * size.gather(1, best[:, None]))
    with_mean = gram[:, 0] / (size * size[:, :1])
    peak = errors.max(-1).values / total
    median = (_median(errors, there) * n[:, None] / total).clamp(min=1e-6).log()
    of_answer = torch.stack(
        [
            logs.clamp(min=-12) / 4,
            gap,
            torch.log1p(gap.clamp(min=0)),
            (significance / 3).clamp(-3, 3),
            with_best,
            with_mean,
            peak,
            median / 3,
        ],
        -1,
    )
    return gram, of_answer, _of_task(r, gram, logs, best, n)


def _median(errors: Float[Tensor, "b j n"], there: Float[Tensor, "b n"]) -> Float[Tensor, "b j"]:
    """The lower median over the examples that are there."""
    ordered = errors.masked_fill(there[:, None] == 0, torch.inf).sort(-1).values
    middle = ((there.sum(1).long() - 1) // 2).clamp(min=0)
    return ordered.gather(2, middle[:, None, None].expand(-1, errors.shape[1], 1))[..., 0]


def _of_task(
    r: Tensor, gram: Tensor, logs: Tensor, best: Tensor, n: Float[Tensor, " b"]
) -> Float[Tensor, "b l"]:
    """The number of examples, the least error, how smooth residuals are, and in how many
    directions u varies."""
    chosen = r.gather(1, best[:, None, None, None].expand(-1, 1, *r.shape[2:]))[:, 0]
    rough = []
    for f in (chosen, r[:, 0]):
        step = (f[..., 1:] - f[..., :-1]).square().sum((1, 2))
        rough.append((step / (2 * f.square().sum((1, 2)) + 1e-300)).clamp(1e-6, 2).log() / 4)
    C = r[:, 0] @ r[:, 0].mT
    rank = C.diagonal(dim1=1, dim2=2).sum(1).square() / (C.square().sum((1, 2)) + 1e-300)
    even = (gram.diagonal(dim1=1, dim2=2).log().mean(1)) / 8
    parts = [n.log() / 2, logs.min(1).values / 4, *rough, rank.clamp(min=1).log() / 2, even]
    return torch.stack(parts, -1)
