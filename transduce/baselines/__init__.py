"""The rivals: every one is a Regressor, by name in `RIVALS`; of classes, in `CLASSIFIERS`, and,
meta-trained, in `META_LEARNERS`. Those of climate that are fitted once and see no examples are in
`INDUCTIVE`."""

from collections.abc import Callable
from functools import partial

from ..types import Regressor, TransduceError
from .classical import Identity as Identity
from .classical import KernelRidge as KernelRidge
from .classical import MeanOfExamples as MeanOfExamples
from .classifiers import (
    logistic_regression,
    neighbours_classifier,
    pixel_kernel_ridge,
    support_vectors,
)
from .deeponet import DeepOnet as DeepOnet
from .deeponet import paper_deeponet
from .family_wide import FamilyWide as FamilyWide
from .fitting import Fitting as Fitting
from .fno import Fno as Fno
from .fno import paper_fno, periodic_fno, stopped_fno
from .inductive import CHOSEN, Climatology, KernelRidgeDays, NearestDay, RidgeDays
from .inductive import Rival as Rival
from .local import LocalRidge as LocalRidge
from .meta_learners import Gpicl as Gpicl
from .meta_learners import Maml as Maml
from .meta_learners import MetaLearner as MetaLearner
from .scikit import Scikit as Scikit
from .scikit import (
    decision_tree,
    gaussian_process,
    linear_ridge,
    nearest_neighbours,
    paper_kernel_ridge,
)
from .scikit import nearest_example as nearest_example
from .vit import Fno2d, ViT

RIVALS: dict[str, Callable[[], Regressor]] = {
    "mean": MeanOfExamples,
    "identity": Identity,
    "nearest-neighbours": nearest_neighbours,
    "decision-tree": decision_tree,
    "linear-ridge": linear_ridge,
    "kernel-ridge-paper": paper_kernel_ridge,
    "kernel-ridge": KernelRidge,
    "local-kernel-ridge": LocalRidge,
    "gaussian-process": gaussian_process,
    "fno-paper": paper_fno,
    "fno": Fno,
    "fno-stopped": stopped_fno,
    "fno-periodic": periodic_fno,
    "deeponet-paper": paper_deeponet,
    "deeponet": DeepOnet,
}
CLASSIFIERS: dict[str, Callable[[], Regressor]] = {
    "nearest-neighbours": neighbours_classifier,
    "logistic-regression": logistic_regression,
    "support-vectors": support_vectors,
    "kernel-ridge": pixel_kernel_ridge,
}
META_LEARNERS: dict[str, type[MetaLearner]] = {"maml": Maml, "gpicl": Gpicl}
INDUCTIVE: dict[str, Callable[..., Rival]] = {
    "climatology": Climatology,
    "nearest-day": NearestDay,
    "ridge": RidgeDays,
    "kernel-ridge": KernelRidgeDays,
    "vit": partial(ViT, positions=True),
    "vit-without-positions": partial(ViT, positions=False),
    "vit-positions-removed": partial(ViT, positions=False),
    "fno": Fno2d,
}


def rival(name: str) -> Regressor:
    """The rival of this name.

    >>> O = rival("kernel-ridge").regress(ExampleSet(v, u))
    """
    if name not in RIVALS:
        raise TransduceError(f"there is no rival {name!r}; expected one of {', '.join(RIVALS)}.")
    return RIVALS[name]()


def inductive_rival(name: str) -> Rival:
    """The rival of this name in climate, with the settings that were chosen for it.

    >>> fitted = inductive_rival("ridge").fit(fields.select(slice("2000", "2006")))
    >>> u_hat = fitted.answers(fields.select("2007"))
    """
    if name not in INDUCTIVE:
        raise TransduceError(
            f"there is no inductive rival {name!r}; expected one of {', '.join(INDUCTIVE)}."
        )
    return INDUCTIVE[name](**CHOSEN[name])
