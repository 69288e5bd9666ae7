"""The answers that the general model weighs, between any two spaces.

Each answer has a name. Between curves all of them take part; between plain numbers or fields only
those that need no grid. Names in `CORRECTED` are answers of one kernel plus a kernel on its
residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..spaces import Sampled, Space
from ..types import TransduceError
from .curve_readout import CurveReadout
from .kappa import Kappa
from .metrics import Metric
from .simple import Constant, Gain
from .stack import Stack
from .trust import Trust
from .tuned import TunedRidge
from .window import WindowRidge

MOST_CHANNELS = 3  # of v, that the read-out takes


def _tuned(kind: str, profile: str, by_direction: bool = False) -> Callable[[Space], Kappa]:
    return lambda V: TunedRidge(Metric(V, kind), profile, by_direction)


ANYWHERE: dict[str, Callable[[Space], Kappa]] = {  # between any spaces
    "mean": lambda V: Constant(),
    "linear": _tuned("values", "linear"),
    "rbf": _tuned("values", "gaussian"),
    "matern": _tuned("values", "matern"),
    "quadratic": _tuned("values", "quadratic"),
    "linear by direction": _tuned("values", "linear", True),
    "rbf by direction": _tuned("values", "gaussian", True),
    "linear of columns": _tuned("columns", "linear"),
    "rbf of columns": _tuned("columns", "gaussian"),
}
OF_CURVES: dict[str, Callable[[Space], Kappa]] = {  # of curves to anything
    "linear of slopes": _tuned("slopes", "linear"),
    "rbf of slopes": _tuned("slopes", "gaussian"),
    "linear of integrals": _tuned("integrals", "linear"),
    "linear of integrals by direction": _tuned("integrals", "linear", True),
    "rbf of integrals": _tuned("integrals", "gaussian"),
    "quadratic of integrals": _tuned("integrals", "quadratic"),
    "linear of double integrals": _tuned("double integrals", "linear"),
    "rbf of double integrals": _tuned("double integrals", "gaussian"),
}
BETWEEN_CURVES = ("identity", "window", "far window", "readout")
CORRECTED: dict[str, tuple[str, Callable[[Space], Kappa]]] = {
    "identity, then linear": ("identity", _tuned("values", "linear")),
    "identity, then linear of slopes": ("identity", _tuned("slopes", "linear")),
    "identity, then rbf": ("identity", _tuned("values", "gaussian")),
    "window, then linear": ("window", _tuned("values", "linear")),
    "window, then rbf": ("window", _tuned("values", "gaussian")),
    "far window, then rbf": ("far window", _tuned("values", "gaussian")),
    "readout, then linear": ("readout", _tuned("values", "linear")),
    "readout, then rbf": ("readout", _tuned("values", "gaussian")),
    "readout, then rbf of integrals": ("readout", _tuned("integrals", "gaussian")),
}
ANSWERS = (*ANYWHERE, *OF_CURVES, *BETWEEN_CURVES, *CORRECTED)
BASELINES = ("mean", "identity", "linear", "rbf", "window")


def general_stack(
    V: Space,
    U: Space,
    readout: CurveReadout,
    trust: Trust,
    without: Collection[str] = (),
) -> Stack:
    """The general model's kernel between two spaces.

    Args:
        V: space of the inputs.
        U: space of the outputs.
        readout: whose network and ridges are used.
        trust: weighs the answers in `ANSWERS`.
        without: names of answers to leave out.
    """
    unknown = [name for name in without if name not in ANSWERS]
    if unknown or "mean" in without:
        raise TransduceError(
            f"without={list(without)}; expected names among {', '.join(ANSWERS[1:])}. Name these."
        )
    kernels = {name: make(V) for name, make in ANYWHERE.items()}
    if isinstance(V, Sampled):
        kernels |= {name: make(V) for name, make in OF_CURVES.items()}
        if isinstance(U, Sampled):
            kernels |= _between_curves(V, U, readout)
    names = [name for name in kernels if name not in without]
    corrected = [
        name for name, (base, _) in CORRECTED.items() if base in names and name not in without
    ]
    return Stack(
        [kernels[name] for name in names],
        [names.index(CORRECTED[name][0]) for name in corrected],
        [CORRECTED[name][1](V) for name in corrected],
        trust,
        [ANSWERS.index(name) for name in (*names, *corrected)],
    )


def _between_curves(V: Sampled, U: Sampled, readout: CurveReadout) -> dict[str, Kappa]:
    found: dict[str, Kappa] = {
        "window": WindowRidge(V, U),
        "far window": WindowRidge(V, U, far=True),
    }
    if V.channels == U.channels:
        found["identity"] = Gain(V, U)
    if V.channels <= MOST_CHANNELS:
        found["readout"] = readout.between(V, U)
    return found
