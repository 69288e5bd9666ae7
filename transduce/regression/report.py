"""What leave-one-out says about a regression.

    error = sum_i |u_i - answer without i|^2 / sum_i |u_i - mean without i|^2

The mean of the examples scores 1. The expected error of the general model is corrected for what it
has chosen by leave-one-out; with groups, whole groups are left out and nothing is corrected.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..inputs import Groups, Pairs, Query
from ..kernels.catalogue import BASELINES
from ..kernels.comparison import evenly
from .engines import Engine, FamilyEngine, GeneralEngine, engine_for
from .groups import ONE_GROUP, is_one_group, parts_of
from .named import regressor_for
from .outliers import outliers_of
from .shapes import as_tensor

if TYPE_CHECKING:
    from .operator import RegressedOperator

FEW = 5  # examples below which leave-one-out says little
OWN = "answer"  # the name of the answer among those of baselines
NO_BETTER, WEAK = 0.95, 0.5  # errors from which the mean is as good, or may be
NO_DOUBT = 0.1  # error below which few examples do not agree by chance
FEW_TO_JUDGE, EXCHANGES = 20, 9  # examples up to which it may be at any error; pairings to compare
MOST_EXCHANGED = 100  # examples in a pairing
COMPARED = ("mean", "kernel-ridge")  # with models of families


@dataclass(frozen=True)
class Report:
    """The errors of a regression and of baselines, each in units of the mean's.

    Attributes:
        n: number of examples.
        reading: how inputs and outputs were read.
        error: expected squared error of the answer for new queries.
        leave_one_out: its squared error at examples that are left out.
        baselines: the same for each baseline.
        weights: of the answers in the mixture, the largest first.
        left_out: what is left out of the examples for these errors.
        noise: standard deviation of the white noise in u, in units of the variation of u.
        outliers: numbers of examples that do not fit the others.
        warnings: sentences for the user.
    """

    n: int
    reading: str
    error: float
    leave_one_out: float
    baselines: dict[str, float]
    weights: dict[str, float]
    noise: float
    left_out: str = "one"
    outliers: tuple[int, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        how = f"leave-{self.left_out}-out"
        lines = [
            f"{self.n} examples: {self.reading}",
            f"expected error {self.error:.3g} of the variation of u about its mean "
            f"({how} {self.leave_one_out:.3g}; the mean of the examples scores 1)",
            f"baselines, {how}: "
            + ", ".join(f"{name} {value:.3g}" for name, value in self.baselines.items()),
        ]
        if self.weights:
            shown = [f"{name} {w:.0%}" for name, w in self.weights.items() if w >= 0.05]
            lines.append(f"weights: {', '.join(shown)}")
        lines.append(f"noise in u: about {self.noise:.2g} of its variation")
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def report_of(O: RegressedOperator) -> Report:
    """The report of a regression."""
    engine, u = O.engine, as_tensor(O.pairs.u.values).detach()
    residuals, n = engine.residuals.detach(), len(u)
    mean = (u - u.mean(0)) * n / (n - 1) if n > 1 else u
    unit = torch.maximum(mean.square().sum(), 1e-24 * u.square().sum()).clamp(min=1e-300)
    own = float(residuals.square().sum() / unit)
    baselines, weights, error = _of_engine(O, engine, unit, own)
    groups = O.pairs.groups
    grouped = groups is not None and groups.several
    if groups is not None and grouped:
        error, baselines = _by_groups(O, groups, baselines)
        own = error
    outliers = outliers_of(O, O._surroundings.remoteness, float(unit) / n)
    return Report(
        n=n,
        reading=f"{_reading(O.pairs)} to {O.pairs.u.layout.described}, model {O.model!r}",
        error=error,
        leave_one_out=own,
        baselines=baselines,
        weights=weights,
        noise=_noise(residuals, mean),
        left_out="group" if grouped else "one",
        outliers=outliers,
        warnings=(
            *O.pairs.notes,
            *_warnings(n, error, baselines, outliers, O),
            *_weakness(O, error, own),
        ),
    )


def _reading(pairs: Pairs) -> str:
    """How the inputs were read."""
    more = "" if pairs.parameters is None else f" with {pairs.parameters.shape[1]} parameters"
    return pairs.v.layout.described + more


def _of_engine(
    O: RegressedOperator, engine: Engine, unit: Tensor, own: float
) -> tuple[dict[str, float], dict[str, float], float]:
    """Leave-one-out errors of baselines, weights, and the expected error."""
    if isinstance(engine, GeneralEngine):
        answers = engine.answers
        ordered = sorted(answers, key=lambda name: -answers[name].weight)
        weights = {name: answers[name].weight for name in ordered}
        known = [name for name in BASELINES if name in answers]
        errors = {name: float(answers[name].residual.square().sum() / unit) for name in known}
        return errors, weights, engine.error
    others = {name: engine_for(regressor_for(name), O.pairs, name).residuals for name in COMPARED}
    return {name: float(r.square().sum() / unit) for name, r in others.items()}, {}, own


def _by_groups(
    O: RegressedOperator, groups: Groups, baselines: Collection[str]
) -> tuple[float, dict[str, float]]:
    """Errors of the answer and of baselines when whole groups are left out."""
    u, variation = as_tensor(O.pairs.u.values).detach(), 0.0
    total = dict.fromkeys((OWN, *baselines), 0.0)
    for held in parts_of(groups):
        rest, asked = O.pairs.take(np.flatnonzero(~held)), O.pairs.take(np.flatnonzero(held))
        for name, answer in _answers(O, rest, Query(asked.v, asked.parameters), baselines).items():
            total[name] += float((answer.detach() - u[held]).square().sum())
        variation += float((u[held] - u[~held].mean(0)).square().sum())
    errors = {name: value / max(variation, 1e-300) for name, value in total.items()}
    return errors.pop(OWN), errors


def _answers(
    O: RegressedOperator, pairs: Pairs, query: Query, baselines: Collection[str]
) -> dict[str, Tensor]:
    """The answers of the model, under the name `OWN`, and of baselines, from these pairs."""
    engine = engine_for(O.regressor, pairs, O.model)
    found = {OWN: engine.answer(query, None)}
    if isinstance(engine, GeneralEngine):
        return found | engine.answers_at(query, baselines)
    others = {name: engine_for(regressor_for(name), pairs, name) for name in baselines}
    return found | {name: other.answer(query, None) for name, other in others.items()}


def _noise(residuals: Tensor, mean: Tensor) -> float:
    """The standard deviation of white noise, from second differences of the residuals."""
    if residuals.shape[-1] < 3:
        return float("nan")
    second = residuals[..., 2:] - 2 * residuals[..., 1:-1] + residuals[..., :-2]
    size = mean.square().mean()
    return float((second.square().mean() / 6 / size).sqrt()) if size > 0 else float("nan")


def _warnings(
    n: int,
    error: float,
    baselines: dict[str, float],
    outliers: tuple[int, ...],
    O: RegressedOperator,
) -> list[str]:
    found = []
    if is_one_group(O.pairs.groups):
        found.append(ONE_GROUP)
    if n < FEW:
        found.append(f"{n} example{'s' * (n > 1)}: leave-one-out says little. Give 5 or more.")
    if outliers:
        shown = ", ".join(map(str, outliers[:8]))
        found.append(f"examples {shown} do not fit the others: check them, or O.drop them.")
    if isinstance(O.engine, FamilyEngine):
        better = {name: value for name, value in baselines.items() if value < error}
        if better:
            name = min(better, key=better.__getitem__)
            found.append(
                f"the model {O.model!r} has a leave-one-out error of {error:.3g}, and {name} "
                f"{better[name]:.3g}. Use model='general'."
            )
    return found


def _weakness(O: RegressedOperator, error: float, own: float) -> list[str]:
    """A warning if the answer is no better than the mean, or if it may be so by chance: if pairs
    whose u are exchanged have as small an error."""
    if error > NO_BETTER:
        return ["v explains next to nothing of u: the mean of the examples is as good."]
    n = len(O)
    doubtful = own > WEAK or (n <= FEW_TO_JUDGE and error > NO_DOUBT)
    if not doubtful or n < FEW or not isinstance(O.engine, GeneralEngine):
        return []
    pairs = O.pairs.take(evenly(n, MOST_EXCHANGED).numpy())
    if len(pairs) < n:
        error = _expected(O, pairs)
    dice, u = np.random.default_rng(0), as_tensor(pairs.u.values).detach()
    for _ in range(EXCHANGES):
        exchanged = replace(pairs.u, values=u[dice.permutation(len(pairs))])
        if _expected(O, replace(pairs, u=exchanged)) <= error:
            return [
                f"v may explain nothing of u: an expected error of {error:.2g} can be chance, as "
                f"one of {EXCHANGES} random pairings of v and u has it too. Compare with the mean "
                "on further pairs."
            ]
    return []


def _expected(O: RegressedOperator, pairs: Pairs) -> float:
    """The expected error of the same model, regressed from other pairs."""
    engine = engine_for(O.regressor, pairs, O.model)
    assert isinstance(engine, GeneralEngine)
    return engine.error
