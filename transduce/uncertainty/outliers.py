"""Examples that come from another operator (section 5.2).

    s_i = mean over half-splits m that leave i out of log |T(D_m)(v_i) - u_i|^2 / |u_i|^2

Regressions from any half of the examples agree on those that belong together, and miss the others,
even though some of these are among what they regress from. Scores s of examples that belong are
taken to be normal. Their mean and deviation start from the shortest interval that holds half of all
scores, which up to half of outliers do not move, and are then measured again without those above

    threshold = mean + z deviation,      n P(Z > z) = false_alarms,

until that no longer changes. No labels are needed, nor the share of outliers.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..transducer import Transducer
from ..types import ExampleSet, TransduceError
from .many import Progress, half_splits, many_regressions

LEAST = 10  # examples from which scores can be distinguished


@dataclass(frozen=True)
class Outliers:
    """scores: of each example, the higher the less it belongs. threshold: above it, an example is
    an outlier. errors: the relative squared error of each example under each regression, NaN where
    it was used."""

    scores: Float[Tensor, " n"]
    threshold: float
    errors: Float[Tensor, "r n"]

    @property
    def flagged(self) -> Bool[Tensor, " n"]:
        """Which examples are outliers."""
        return self.scores > self.threshold


def outlier_scores(
    T: Transducer,
    examples: ExampleSet,
    n_regressions: int = 5000,
    false_alarms: float = 1e-3,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Outliers:
    """How badly each example fits the operator of the others. false_alarms: how many to expect
    where there are no outliers.

    >>> found = outlier_scores(T, examples)
    >>> examples = examples[~found.flagged.numpy()]
    """
    if not 0 < false_alarms < len(examples):
        raise TransduceError(
            f"false_alarms={false_alarms}; expected how many of {len(examples)} examples may be "
            "wrongly flagged, like 1e-3."
        )
    if len(examples) < LEAST:
        raise TransduceError(
            f"{len(examples)} examples; expected at least {LEAST} to tell which do not belong. "
            "Give more."
        )
    masks = half_splits(len(examples), n_regressions, generator or torch.Generator().manual_seed(0))
    never = torch.nonzero(masks.all(0)).flatten()
    if len(never):
        raise TransduceError(
            f"n_regressions={n_regressions} never left example {int(never[0])} out; expected "
            "enough to. Ask for a hundred."
        )
    errors = many_regressions(T, examples, masks, progress=progress).errors()
    scores = errors.double().clamp(min=1e-30).log().nanmean(0)
    return Outliers(scores, threshold_of(scores, false_alarms), errors)


def threshold_of(scores: Float[Tensor, " n"], false_alarms: float) -> float:
    """Above it lie, of n scores that are normal but for some that are too high, these too high ones
    and so many false alarms."""
    normal, n = NormalDist(), len(scores)
    z = normal.inv_cdf(1 - false_alarms / n)
    ordered = scores.sort().values
    widths = ordered[n // 2 :] - ordered[: n - n // 2]
    shortest = int(widths.argmin())
    mean, deviation = (
        ordered[shortest : shortest + n // 2 + 1].mean(),
        widths[shortest] / 2 / normal.inv_cdf(0.75),
    )
    kept = None
    for _ in range(n):
        below = scores <= mean + z * deviation
        if kept is not None and torch.equal(below, kept):
            break
        kept = below
        if kept.sum() < 2:
            break
        mean, deviation = scores[kept].mean(), scores[kept].std()
    return float(mean + z * deviation)
