"""What the parts of the ADR experiment share: how much is measured, by which regressors, on which
operators.

Errors are over operators drawn with seeds ("test", 0, i), the same for every regressor, with the
largest number of examples drawn once and its first n given."""

from __future__ import annotations

from dataclasses import dataclass, replace

from transduce.baselines import BASELINES, DeepOnet, Fno, baseline
from transduce.settings import Json
from transduce.transducer import Transducer
from transduce.types import Regressor

from ..lab import Lab
from ..names import describe, weights_of

MODELS = ("adr", "adr-softmax")
IN_TABLE_1 = ("fno-paper", "fno-stopped", "deeponet-paper")  # measured at its n alone
# Seconds to minutes for each operator.
FITTED = (
    *IN_TABLE_1,
    "fno",
    "deeponet",
    "gaussian-process",
    "decision-tree",
)
# Baselines for periodic functions, which these are not.
PERIODIC = (
    "local-kernel-ridge",
    "fno-periodic",
)
# Baselines of benchmarks/wild.py, which came after these results.
LATER = (
    "linear",
    "rbf",
    "window",
    "partial-least-squares",
    "piecewise-direct-standardisation",
)
REGRESSORS = (*MODELS, *(name for name in BASELINES if name not in PERIODIC + LATER))


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    Attributes:
        operators: unseen operators, for regressors in context.
        fitted: unseen operators, for regressors that are fitted to each of them.
        fitted_elsewhere: the same, out of distribution.
        sizes: numbers of examples.
        fitted_most: the largest number of examples for regressors that are fitted.
        table_n: number of examples in table 1.
        queries: of each operator.
        repeats: of the timings in table 1.
        readout: training operators that layers are read with.
        steps: of each training of the ablations.
        ablated: unseen operators for the ablations.
        depths: what the ablation of depth varies.
        stored: operators and examples of the training data.
        paper_steps: training steps of the paper's own configuration.
        training_operators: what the ablation of the training data varies.
    """

    quick: bool = False
    seed: int = 0
    operators: int = 100
    fitted: int = 20
    fitted_elsewhere: int = 4
    sizes: tuple[int, ...] = (5, 10, 20, 50, 100, 200, 500, 1000)
    fitted_most: int = 200
    table_n: int = 50
    queries: int = 50
    repeats: int = 15
    readout: int = 200
    steps: int = 1_500
    ablated: int = 50
    depths: tuple[int, ...] = (1, 2, 4, 8, 16)
    stored: tuple[int, int] = (5_000, 250)
    paper_steps: int = 10_000
    training_operators: tuple[int, ...] = (50, 200, 1_000, 5_000)


FULL = Scale()
QUICK = Scale(
    quick=True,
    operators=4,
    fitted=1,
    fitted_elsewhere=1,
    sizes=(5, 20, 50),
    fitted_most=20,
    table_n=20,
    queries=10,
    repeats=2,
    readout=24,
    steps=20,
    ablated=4,
    depths=(1, 2),
    stored=(24, 180),
    paper_steps=50,
    training_operators=(6, 24),
)


def regressor(lab: Lab, name: str) -> Regressor:
    """A bundled model or a baseline, by name. Quick runs hardly fit a network."""
    if name not in BASELINES:
        return Transducer.from_pretrained(name)
    R = baseline(name)
    if lab.scale.quick and isinstance(R, Fno | DeepOnet):
        return replace(R, fitting=replace(R.fitting, epochs=10, steps=0))
    return R


def identity(name: str) -> Json:
    """What a measurement of this regressor holds for: the weights of a bundled model, the settings
    of a baseline."""
    return describe(baseline(name)) if name in BASELINES else weights_of(name)


def identities() -> dict[str, Json]:
    """Of all regressors that the experiment measures."""
    return {name: identity(name) for name in REGRESSORS}
