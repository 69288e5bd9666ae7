"""What a recipe is, and one training of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..families import AdvectionDiffusionReaction
from ..metatraining import Training, described, metatrain
from ..storage import StoredFamily
from ..transducer import Transducer
from ..types import OperatorFamily


@dataclass(frozen=True)
class Run:
    """One training of a recipe.

    Attributes:
        training: the recipe's, with what this run changes.
        family: the tasks to train on.
        validation: the tasks to validate on.
        out: the folder of checkpoints and log.
        fabric: the processes that train together.
        until: stop as soon as the validation error is this small; 0 for never.
        pairs: how many pairs of each operator the user's own data holds; None without such data.
        started: whether T comes from earlier weights.
    """

    training: Training
    family: OperatorFamily
    validation: OperatorFamily
    out: Path
    fabric: Any
    until: float = 0.0
    pairs: int | None = None
    started: bool = False


@dataclass(frozen=True)
class Recipe:
    """A trained model: what it is, what it learns from, and how.

    Attributes:
        name: of the model and its weights.
        model: its builder in `transduce.models`, spaces and options, for `models.build`.
        training: the options of `metatrain`.
        operators: of the dataset that is generated once and drawn from; 0 to draw each task from
            the family.
        examples: pairs of each of these operators.
        family: the operators to learn.
        validation: the operators to validate on; None for those of `family`.
        domain: of the data, which the model's card names.
    """

    name: str
    model: dict[str, Any]
    training: Training
    operators: int = 0
    examples: int = 0
    family: Any = field(default_factory=AdvectionDiffusionReaction)
    validation: Any = None
    domain: str = "functions"

    def tasks(self, path: Path) -> OperatorFamily:
        """The family of a generated dataset. Subclasses may change what is drawn from it."""
        return StoredFamily(path)

    def learn(self, T: Transducer, run: Run) -> tuple[Transducer, float | None]:
        """Train T; the trained model and its validation error. Subclasses may do more."""
        how: dict[str, Any] = {"out": run.out, "fabric": run.fabric, "until": run.until}
        return T, metatrain(T, run.family, run.training, validation=run.validation, **how)

    def record(self, run: Run) -> dict[str, Any]:
        """What a card says of the recipe, as this run used it."""
        families = {
            name: described(family)
            for name in ("family", "validation")
            if (family := getattr(self, name)) is not None
        }
        used = replace(self, training=run.training, family=None, validation=None)
        return {**asdict(used), **families}
