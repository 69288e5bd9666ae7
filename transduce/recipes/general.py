"""The recipe of the general model: first its read-out, then how far to trust each answer.

The read-out is meta-trained on random operators. Then the whole stack is run on other tasks once,
and the trust is fitted to what comes out. Mechanisms that are held out validate both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from ..families import RandomOperators
from ..families.random_operators import HELD_OUT, Varied
from ..kernels import GeneralStack
from ..layer import Layer
from ..metatraining import Training, metatrain
from ..stacking import TrustTraining, collect, fit_trust, ratio_to_best
from ..storage import StoredFamily
from ..transducer import Transducer
from ..types import OperatorFamily
from .base import Recipe, Run

CURVES = {name: {"space": "Sampled", "x": 80} for name in "VU"}


@dataclass(frozen=True)
class GeneralRecipe(Recipe):
    """A recipe that trains a read-out and fits a trust.

    Attributes:
        trust: how the trust is fitted.
        records: tasks that it is fitted to.
        validation_records: tasks of held-out mechanisms that validate it.
        noisy: share of these tasks with noise.
    """

    trust: TrustTraining = field(default_factory=TrustTraining)
    records: int = 9_000
    validation_records: int = 600
    noisy: float = 0.5

    def tasks(self, path: Path) -> OperatorFamily:
        """Stored operators, mirrored and with signs changed."""
        return Varied(StoredFamily(path))

    def learn(self, T: Transducer, run: Run) -> tuple[Transducer, float | None]:
        """The trained model, and the geometric mean of its error on tasks of held-out mechanisms
        in units of that of the best simple baseline of each."""
        stack = cast(GeneralStack, T.steps[0].kappa)
        readout = stack.readout
        alone = Transducer(readout.V, readout.U, [Layer(readout)])
        metatrain(
            alone,
            run.family,
            run.training,
            validation=run.validation,
            out=run.out / "readout",
            fabric=run.fabric,
        )
        T.eval()
        family = RandomOperators(noisy=self.noisy)
        records = collect(readout, family, self.records, run.out / "records")
        fit_trust(stack.trust, records, self.trust)
        held_out = replace(family, mechanisms=HELD_OUT)
        folder = run.out / "records"
        validation = collect(readout, held_out, self.validation_records, folder, "validation")
        return T, math.exp(ratio_to_best(stack.trust, validation))


GENERAL = GeneralRecipe(
    name="general",
    domain="curves",
    model={"model": "general", **CURVES, "channels": 32, "modes": 16, "width": 32},
    family=RandomOperators(),
    validation=RandomOperators(mechanisms=HELD_OUT),
    training=Training(
        steps=12_000,
        lr=1.5e-3,
        muon_lr=0.0,
        tasks=6,
        n=(2, 60),
        queries=12,
        warmup=150,
        loss="log_about_mean",
        standardise=False,
        validate_every=250,
        checkpoint_every=50,
        validation_tasks=64,
    ),
    operators=14_000,
    examples=80,
)
