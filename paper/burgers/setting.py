"""What the parts of the Burgers experiment share: how much is measured, by which regressors, on
which operators.

An operator of condition (amplitude, t) maps v = s(., 0) to u = s(., t), with a viscosity drawn from
U[0.1, 0.5]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from transduce.baselines import Fno, LocalRidge, baseline
from transduce.baselines.fno import periodic_fno
from transduce.families import Burgers2d
from transduce.random_fields import generator_for
from transduce.settings import Json
from transduce.transducer import Transducer
from transduce.types import ExampleSet, Regressor

from ..baselines import FamilyWide
from ..lab import Lab
from ..names import describe, weights_of

BEST = "burgers"
MODELS = (BEST, "burgers-softmax")
INSTANT = ("identity", "kernel-ridge")
FITTED = ("fno-periodic", "local-kernel-ridge")
FAMILY_WIDE = "fno of the family"
FAMILY_EPOCHS = 10
AMPLITUDES = (0.1, 0.3)
TIMES = (5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    Attributes:
        operators: unseen operators, for regressors in context.
        fitted: unseen operators, for regressors that are fitted to each of them.
        few: unseen operators, for curves.
        table_n: number of examples in the table.
        sizes: numbers of examples of the curve.
        queries: of each operator.
        viscosities: of a curve.
        of_each_viscosity: operators of each viscosity.
        family_operators: operators that the family-wide baseline is fitted to.
        family_examples: examples of each of these.
        datasets: of the search for outliers.
        curve_datasets: of each point of its curves.
        regressions: of each search.
        gaps: differences of viscosity, of a curve.
        shares: of outliers, of a curve.
        band_operators: operators whose bands are measured.
        band_sizes: numbers of examples of the bands.
        stored: operators and examples of the training data.
        steps: of each training of the ablations.
    """

    quick: bool = False
    seed: int = 0
    operators: int = 100
    fitted: int = 10
    few: int = 20
    table_n: int = 100
    sizes: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200)
    queries: int = 20
    viscosities: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
    of_each_viscosity: int = 3
    family_operators: int = 200
    family_examples: int = 10
    datasets: int = 50
    curve_datasets: int = 10
    regressions: int = 5000
    gaps: tuple[float, ...] = (0.02, 0.03, 0.05, 0.1, 0.2)
    shares: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
    band_operators: int = 10
    band_sizes: tuple[int, ...] = (50, 100)
    stored: tuple[int, int] = (400, 40)
    steps: int = 400


FULL = Scale()
QUICK = Scale(
    quick=True,
    operators=2,
    fitted=1,
    few=2,
    table_n=12,
    sizes=(2, 12),
    queries=4,
    viscosities=(0.1, 1.0),
    of_each_viscosity=1,
    family_operators=2,
    family_examples=4,
    datasets=2,
    curve_datasets=1,
    regressions=100,
    gaps=(0.2,),
    shares=(0.1,),
    band_operators=1,
    band_sizes=(12,),
    stored=(4, 74),
    steps=3,
)


def family_of(amplitude: float, t: float) -> Burgers2d:
    """The operators of one condition."""
    return Burgers2d(amplitude=amplitude, increment=t)


def regressor(lab: Lab, name: str) -> Regressor:
    """A bundled model or a baseline, by name; one that is fitted is hardly so where things go
    quickly."""
    if name in MODELS:
        return Transducer.from_pretrained(name)
    return hurried(baseline(name)) if lab.scale.quick else baseline(name)


def hurried(R: Any) -> Any:
    if isinstance(R, Fno):
        return replace(R, fitting=replace(R.fitting, epochs=2, steps=0))
    return (
        replace(R, points=200, centres=50, spacings=(2,), gammas=(0.3,))
        if isinstance(R, LocalRidge)
        else R
    )


def family_wide(lab: Lab, amplitude: float, t: float) -> FamilyWide:
    """One FNO for all viscosities, which sees no examples."""
    scale, family = lab.scale, family_of(amplitude, t)
    fno = replace(periodic_fno(), fitting=replace(periodic_fno().fitting, epochs=FAMILY_EPOCHS))

    def examples() -> Iterator[ExampleSet]:
        for operator in range(scale.family_operators):
            yield family.sample_task(
                scale.family_examples, 1, generator_for("train", scale.seed, operator)
            ).examples

    return FamilyWide(hurried(fno) if scale.quick else fno, examples)


def identity(name: str) -> Json:
    """What a measurement of this regressor holds for: the weights of a bundled model, the settings
    of a baseline."""
    if name == FAMILY_WIDE:
        return {"regressor": describe(periodic_fno()), "epochs": FAMILY_EPOCHS}
    return weights_of(name) if name in MODELS else describe(baseline(name))


def identities() -> dict[str, Json]:
    """Of all regressors that the experiment measures."""
    return {name: identity(name) for name in (*MODELS, *INSTANT, *FITTED, FAMILY_WIDE)}
