"""Maps from a state to the next one that are applied repeatedly: the operator, single answers of
the general model, and a law of evolution.

The operator's weights follow from errors of single steps at examples that are left out one by one.
In a trajectory the neighbours in time of such an example stay, so every smooth answer looks
accurate, and errors of repeated steps may still grow. Therefore answers are compared by

    sum_t |s_hat(t) - s(t)|^2 / sum_t |s(t) - mean|^2

over trajectories in the later part of the examples, regressed from the earlier part alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..inputs import Pairs, Query
from ..kernels.comparison import evenly
from ..kernels.evolution import MOST_CHANNELS, Evolution
from ..kernels.law_fitting import USELESS, fitted
from ..types import Regressor
from .chains import Chains
from .engines import Engine, GeneralEngine, engine_for
from .groups import parts_of
from .shapes import as_tensor

WHOLE, LAW = "answer", "law"
SHARES = (0.5, 0.75)  # of each chain, from which the rest is predicted
FEWEST, SHORTEST = 8, 4  # pairs to regress from; pairs in a chain
HORIZON, STARTS = 20, 24  # steps that are compared, and starts
MOST = 6  # answers that are compared, those of least error in one step
BETTER = 0.8  # factor in the error by which an answer must be better than the operator
LARGEST = 1e3  # deviation in units of the examples' spread; larger ones count as this
EXACT = 1e-4  # error of a law for which no answer is compared
LAW_FEWEST = 4  # pairs that a law is fitted to

States = Float[Tensor, "m c p"]
Parameters = np.ndarray | None
Step = Callable[[States, Parameters], States]


def query_of(pairs: Pairs, states: States, parameters: Parameters) -> Query:
    """States as inputs on the grid of the examples."""
    template = pairs.v.template.numbered(len(states))
    return Query(replace(pairs.v, values=states.numpy(), template=template), parameters)


@dataclass(frozen=True, eq=False)
class Part:
    """A regression from some of the examples, and trajectories among the others.

    Attributes:
        engine: of the regression.
        law: of evolution, or None.
        rows: at which the trajectories start.
        truth: their states; NaN after the end of a chain.
    """

    engine: Engine
    law: Evolution | None
    rows: Int[np.ndarray, " s"]
    truth: Float[Tensor, "s t c p"]

    def step(self, name: str) -> Step:
        """The map of this name."""
        return step_of(self.engine, self.law, name)

    def start(self, pairs: Pairs) -> tuple[States, Parameters]:
        """The states at which the trajectories start, with parameters."""
        own = pairs.parameters
        return as_tensor(pairs.v.array[self.rows]), None if own is None else own[self.rows]


def step_of(engine: Engine, law: Evolution | None, name: str) -> Step:
    """The operator, its law, or one of its answers, as a map of states."""
    if name == LAW and law is not None:
        return lambda states, _: law(states)
    if name == WHOLE or not isinstance(engine, GeneralEngine):
        return lambda states, p: engine.answer(query_of(engine.pairs, states, p), None)
    return lambda states, p: engine.answers_at(query_of(engine.pairs, states, p), {name})[name]


def law_of(pairs: Pairs, known: Evolution | None = None) -> Evolution | None:
    """The law of evolution of states on a uniform grid. known: that of some of the pairs."""
    grid, layout = pairs.v.grid, pairs.v.layout
    if grid is None or not grid.uniform or pairs.parameters is not None:
        return None
    if layout.channels > MOST_CHANNELS or len(pairs) < LAW_FEWEST:
        return None
    v, u = (as_tensor(f.array) for f in (pairs.v, pairs.u))
    law = fitted(v, u, known)
    return law if law.error <= USELESS else None


def parts_in_time(pairs: Pairs, chains: Chains, regressor: Regressor, model: str) -> list[Part]:
    """Regressions from earlier parts of the trajectories, or from some of the groups."""
    kept = [chains.before(share) for share in SHARES]
    if pairs.groups is not None and pairs.groups.several:
        held = parts_of(pairs.groups)
        halves = np.array_split(np.arange(len(held)), 2)
        kept = [~np.logical_or.reduce([held[k] for k in half]) for half in halves]
    found: list[Part] = []
    for some in kept:
        law = found[-1].law if found else None
        part = _part(pairs, chains, some, (regressor, model, law))
        found += [] if part is None else [part]
    return found


def _part(
    pairs: Pairs,
    chains: Chains,
    kept: np.ndarray,
    by: tuple[Regressor, str, Evolution | None],
) -> Part | None:
    """The regression from these pairs, if there are enough, and trajectories among the others.
    by: the regressor, its name, and the law of fewer pairs."""
    regressor, model, law = by
    others = np.flatnonzero(~kept)
    left = (chains.length - chains.age)[others]
    if kept.sum() < FEWEST or not len(others):
        return None
    long = others[left >= min(HORIZON, left.max())]
    rows = long[evenly(len(long), STARTS).numpy()]
    steps = int(min(HORIZON, left.max()))
    truth = as_tensor(chains.truth(rows, pairs.u.array, steps))
    known = pairs.take(np.flatnonzero(kept))
    engine = engine_for(regressor, replace(known, groups=None), model)
    law = law_of(known, law) if isinstance(engine, GeneralEngine) else None
    return Part(engine, law, rows, truth)


def chosen(pairs: Pairs, parts: Sequence[Part]) -> str:
    """The name of the map of least error over the trajectories of all parts."""
    if not parts or not isinstance(parts[0].engine, GeneralEngine):
        return WHOLE
    with torch.no_grad():
        if _is_exact(pairs, parts):
            return LAW
        names = _likely(pairs, parts)
        errors = sum(_errors(pairs, part, names) for part in parts)
    best = int(errors.argmin())  # type: ignore[union-attr]
    own = errors[names.index(WHOLE)]  # type: ignore[index]
    return names[best] if errors[best] < BETTER * own else WHOLE  # type: ignore[index]


def _is_exact(pairs: Pairs, parts: Sequence[Part]) -> bool:
    """Whether the law is so accurate that no answer need be compared with it."""
    if any(part.law is None for part in parts):
        return False
    return float(sum(_errors(pairs, part, [LAW]) for part in parts)) < EXACT


def _likely(pairs: Pairs, parts: Sequence[Part]) -> list[str]:
    """The operator, the law, and the answers of least error in the first step."""
    total: dict[str, float] = {}
    for part in parts:
        states, p = part.start(pairs)
        assert isinstance(part.engine, GeneralEngine)
        answers = part.engine.answers_at(query_of(pairs, states, p))
        for name, u in answers.items():
            error = float((u - part.truth[:, 0]).square().sum())
            total[name] = total.get(name, 0.0) + error
    names = sorted(total, key=total.__getitem__)[:MOST]
    laws = [LAW] if all(part.law is not None for part in parts) else []
    return list(dict.fromkeys([WHOLE, *laws, *names, *({"mean", "identity"} & set(total))]))


def _errors(pairs: Pairs, part: Part, names: Sequence[str]) -> Float[Tensor, " k"]:
    """The error of each map over the trajectories of a part."""
    u = as_tensor(pairs.u.array)
    known = part.truth.isfinite()
    unit = torch.where(known, part.truth - u.mean(0), 0.0).square().sum().clamp(min=1e-300)
    states, parameters = part.start(pairs)
    found = []
    for name in names:
        made = repeated(part.step(name), states, parameters, part.truth.shape[1], bounds_of(pairs))
        found.append(torch.where(known, made - part.truth, 0.0).square().sum() / unit)
    return torch.stack(found)


def bounds_of(pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Values that states of a comparison may not leave."""
    u = as_tensor(pairs.u.array)
    spread = (u - u.mean(0)).square().mean().sqrt()
    return u.mean(0) - LARGEST * spread, u.mean(0) + LARGEST * spread


def repeated(
    step: Step, states: States, p: Parameters, steps: int, bounds: tuple[Tensor, Tensor]
) -> Float[Tensor, "m t c p"]:
    """The states after each step, within bounds."""
    found = []
    for _ in range(steps):
        states = within(step(states, p), bounds)
        found.append(states)
    return torch.stack(found, 1)


def within(states: States, bounds: tuple[Tensor, Tensor], added: Tensor | float = 0.0) -> States:
    """States, with something added, moved into bounds; values that are not finite to the upper."""
    known = torch.nan_to_num(states, nan=float("inf"), neginf=float("inf")) + added
    return torch.minimum(torch.maximum(known, bounds[0]), bounds[1])
