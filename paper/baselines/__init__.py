"""Baselines of the paper's experiments alone: of climate, fitted once and blind to examples
(`INDUCTIVE`); of images, meta-trained (`META_LEARNERS`); and one operator for a whole family."""

from collections.abc import Callable
from functools import partial

from transduce.types import TransduceError

from .family_wide import FamilyWide as FamilyWide
from .inductive import CHOSEN, Climatology, KernelRidgeDays, NearestDay, RidgeDays
from .inductive import Inductive as Inductive
from .meta_learners import Gpicl as Gpicl
from .meta_learners import Maml as Maml
from .meta_learners import MetaLearner as MetaLearner
from .vit import Fno2d, ViT

META_LEARNERS: dict[str, type[MetaLearner]] = {"maml": Maml, "gpicl": Gpicl}
INDUCTIVE: dict[str, Callable[..., Inductive]] = {
    "climatology": Climatology,
    "nearest-day": NearestDay,
    "ridge": RidgeDays,
    "kernel-ridge": KernelRidgeDays,
    "vit": partial(ViT, positions=True),
    "vit-without-positions": partial(ViT, positions=False),
    "vit-positions-removed": partial(ViT, positions=False),
    "fno": Fno2d,
}


def inductive_baseline(name: str) -> Inductive:
    """The climate baseline of this name, with the settings that were chosen for it.

    >>> fitted = inductive_baseline("ridge").fit(fields.select(slice("2000", "2006")))
    >>> u_hat = fitted.answers(fields.select("2007"))
    """
    if name not in INDUCTIVE:
        raise TransduceError(
            f"there is no inductive baseline {name!r}; expected one of {', '.join(INDUCTIVE)}."
        )
    return INDUCTIVE[name](**CHOSEN[name])
