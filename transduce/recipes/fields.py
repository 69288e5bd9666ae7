"""The recipe of the general model of fields."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..families import RandomFieldOperators
from ..families.random_field_operators import HELD_OUT, VariedFields
from ..metatraining import Training
from ..stacking import OnFieldGrids
from ..storage import StoredFamily
from ..types import OperatorFamily
from .general import GeneralRecipe

SEEN = OnFieldGrids(RandomFieldOperators(noisy=0.5))
UNSEEN = OnFieldGrids(RandomFieldOperators(HELD_OUT, noisy=0.5))
OWN = {"space": "SampledFields", "x": 32, "y": 32, "channels": 2}


@dataclass(frozen=True)
class FieldsRecipe(GeneralRecipe):
    """The same between fields."""

    seen: Any = SEEN
    unseen: Any = UNSEEN
    records: int = 600
    validation_records: int = 100
    sizes: tuple[int, int] = (2, 200)

    def tasks(self, path: Path) -> OperatorFamily:
        """Stored operators with the symmetries of the square, on grids of 10 to 24 points."""
        return OnFieldGrids(VariedFields(StoredFamily(path)), (10, 24))


GENERAL_FIELDS = FieldsRecipe(
    name="general-fields",
    domain="curves",
    model={"model": "fields", "V": OWN, "U": OWN, "channels": 32},
    family=RandomFieldOperators(),
    validation=RandomFieldOperators(mechanisms=HELD_OUT),
    training=Training(
        steps=9_000,
        lr=2e-3,
        muon_lr=0.0,
        tasks=3,
        n=(2, 32),
        queries=4,
        warmup=100,
        loss="log_about_mean",
        standardise=False,
        validate_every=250,
        checkpoint_every=50,
        validation_tasks=24,
    ),
    operators=3_000,
    examples=44,
)
