"""Baselines: each is a Regressor, by name in `BASELINES`; those that classify images are in
`CLASSIFIERS`.

Those of scikit-learn import it when they are first used: pip install 'transduce[baselines]'."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..files import pip_install
from ..types import Regressor, TransduceError
from .classical import Identity as Identity
from .classical import KernelRidge as KernelRidge
from .classical import MeanOfExamples as MeanOfExamples
from .deeponet import DeepOnet as DeepOnet
from .deeponet import paper_deeponet
from .fitting import Fitting as Fitting
from .fno import Fno as Fno
from .fno import paper_fno, periodic_fno, stopped_fno
from .local import LocalRidge as LocalRidge
from .ridges import LinearRidge as LinearRidge
from .ridges import RbfRidge as RbfRidge
from .standardisation import PiecewiseDirectStandardisation as PiecewiseDirectStandardisation
from .window import WindowRidge as WindowRidge

if TYPE_CHECKING:
    from .classifiers import ScikitClassifier as ScikitClassifier
    from .scikit import Scikit as Scikit
    from .scikit import nearest_example as nearest_example

# Public names that are imported when first used.
OF_SCIKIT_LEARN = {
    "Scikit": "scikit",
    "ScikitClassifier": "classifiers",
    "nearest_example": "scikit",
}


def _imported(module: str, name: str) -> Any:
    """A name of a module that needs scikit-learn."""
    try:
        return getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise TransduceError(
            "this baseline is scikit-learn's, which is not installed. Install it: "
            f"{pip_install('sklearn')}"
        ) from None


def _made_by(module: str, name: str) -> Callable[[], Regressor]:
    """A function that imports what makes a baseline, and makes it."""
    return lambda: _imported(module, name)()


def __getattr__(name: str) -> Any:
    if name in OF_SCIKIT_LEARN:
        return _imported(OF_SCIKIT_LEARN[name], name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


BASELINES: dict[str, Callable[[], Regressor]] = {
    "mean": MeanOfExamples,
    "identity": Identity,
    "linear": LinearRidge,
    "rbf": RbfRidge,
    "window": WindowRidge,
    "partial-least-squares": _made_by("partial_least_squares", "partial_least_squares"),
    "piecewise-direct-standardisation": PiecewiseDirectStandardisation,
    "nearest-neighbours": _made_by("scikit", "nearest_neighbours"),
    "decision-tree": _made_by("scikit", "decision_tree"),
    "linear-ridge": _made_by("scikit", "linear_ridge"),
    "kernel-ridge-paper": _made_by("scikit", "paper_kernel_ridge"),
    "kernel-ridge": KernelRidge,
    "local-kernel-ridge": LocalRidge,
    "gaussian-process": _made_by("scikit", "gaussian_process"),
    "fno-paper": paper_fno,
    "fno": Fno,
    "fno-stopped": stopped_fno,
    "fno-periodic": periodic_fno,
    "deeponet-paper": paper_deeponet,
    "deeponet": DeepOnet,
}
CLASSIFIERS: dict[str, Callable[[], Regressor]] = {
    "nearest-neighbours": _made_by("classifiers", "neighbours_classifier"),
    "logistic-regression": _made_by("classifiers", "logistic_regression"),
    "support-vectors": _made_by("classifiers", "support_vectors"),
    "kernel-ridge": _made_by("classifiers", "pixel_kernel_ridge"),
}


def baseline(name: str) -> Regressor:
    """The baseline of this name.

    >>> O = baseline("kernel-ridge").regress(ExampleSet(v, u))
    """
    if name not in BASELINES:
        raise TransduceError(
            f"there is no baseline {name!r}; expected one of {', '.join(BASELINES)}."
        )
    return BASELINES[name]()
