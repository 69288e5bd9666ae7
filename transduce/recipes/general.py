"""The recipe of the general model: first its read-out, then how far to trust each answer.

The read-out is meta-trained on random operators. Then the whole stack is run on other tasks once,
and the trust is fitted to what comes out. Mechanisms that are held out validate both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ..families import RandomOperators
from ..families.random_operators import HELD_OUT, Varied
from ..kernels import GeneralStack
from ..layer import Layer
from ..metatraining import Training, metatrain
from ..stacking import OnCurveGrids, TrustTraining, collect, fit_trust, ratio_to_best
from ..storage import StoredFamily
from ..transducer import Transducer
from ..types import OperatorFamily
from .base import Recipe, Run

SEEN = OnCurveGrids(RandomOperators(noisy=0.5))
UNSEEN = OnCurveGrids(RandomOperators(HELD_OUT, noisy=0.5))
CURVES = {name: {"space": "Sampled", "x": 80} for name in "VU"}


@dataclass(frozen=True)
class GeneralRecipe(Recipe):
    """A recipe that trains a read-out and fits a trust.

    Attributes:
        trust: how the trust is fitted.
        seen: tasks that it is fitted to.
        unseen: tasks of held-out mechanisms that validate it.
        records: how many of the former.
        validation_records: how many of the latter.
        sizes: least and largest number of their examples.
    """

    trust: TrustTraining = field(default_factory=TrustTraining)
    seen: Any = SEEN
    unseen: Any = UNSEEN
    records: int = 9_000
    validation_records: int = 600
    sizes: tuple[int, int] = (2, 200)

    def tasks(self, path: Path) -> OperatorFamily:
        """Stored operators, mirrored and with signs changed."""
        return Varied(StoredFamily(path))

    def learn(self, T: Transducer, run: Run) -> tuple[Transducer, float | None]:
        """The trained model, and the geometric mean of its error on tasks of held-out mechanisms
        in units of that of the best simple baseline of each."""
        stack = cast(GeneralStack, T.steps[0].kappa)
        self.learn_readout(stack, run)
        T.eval()
        how: dict[str, Any] = {"folder": run.out / "records", "examples": self.sizes}
        records = collect(stack, self.seen, self.records, **how)
        fit_trust(stack.trust, records, stack.catalogue, self.trust)
        how["split"] = "validation"
        validation = collect(stack, self.unseen, self.validation_records, **how)
        return T, math.exp(ratio_to_best(stack.trust, validation, stack.catalogue))

    def learn_readout(self, stack: GeneralStack, run: Run) -> None:
        """Meta-train the read-out alone."""
        metatrain(
            Transducer(stack.V, stack.U, [Layer(stack.readout.between(stack.V, stack.U))]),
            run.family,
            run.training,
            validation=run.validation,
            out=run.out / "readout",
            fabric=run.fabric,
        )


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
