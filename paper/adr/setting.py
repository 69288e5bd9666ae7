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
REGRESSORS = (*MODELS, *(name for name in BASELINES if name not in PERIODIC))


@dataclass(frozen=True)
class Scale:
    """How much is measured. operators: unseen ones, for regressors that answer at once; fitted: for
    those that are fitted to each. fitted_elsewhere: for those out of distribution. sizes: numbers
    of examples; the fitted ones go to `fitted_most`; table_n: of table 1; repeats: of its timings.
    readout: training operators that layers are read with. ablated: unseen operators for the
    ablations, each trained for `steps`; depths, training_operators: what they vary. stored:
    operators and examples of the training data. paper_steps: of the paper's own configuration."""

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
