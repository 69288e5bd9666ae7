"""The answers that the general model weighs, between any two spaces.

Each answer has a name. Between curves all of them take part; between plain numbers or fields only
those that need no grid. Names in `CORRECTED` are answers of one kernel plus a kernel on its
residuals.
"""

from __future__ import annotations

from collections.abc import Collection

from ..spaces import Sampled, Space
from ..types import TransduceError
from .comparison import Comparison
from .curve_readout import CurveReadout
from .kappa import Kappa
from .metrics import MATRICES, Metric
from .simple import Constant, Deviation, Gain
from .stack import Stack
from .trust import Trust
from .tuned import TunedRidge
from .window import WindowRidge

MOST_CHANNELS = 3  # of v, that the read-out takes


TUNED: dict[str, tuple[str, str, bool]] = {  # metric, profile, a ridge for each direction of u
    "linear": ("values", "linear", False),
    "rbf": ("values", "gaussian", False),
    "matern": ("values", "matern", False),
    "quadratic": ("values", "quadratic", False),
    "linear by direction": ("values", "linear", True),
    "rbf by direction": ("values", "gaussian", True),
    "linear of columns": ("columns", "linear", False),
    "rbf of columns": ("columns", "gaussian", False),
    "linear of slopes": ("slopes", "linear", False),
    "rbf of slopes": ("slopes", "gaussian", False),
    "linear of integrals": ("integrals", "linear", False),
    "linear of integrals by direction": ("integrals", "linear", True),
    "rbf of integrals": ("integrals", "gaussian", False),
    "quadratic of integrals": ("integrals", "quadratic", False),
    "linear of double integrals": ("double integrals", "linear", False),
    "rbf of double integrals": ("double integrals", "gaussian", False),
}
CURVES = ("mean", *TUNED, "identity", "deviation", "window", "far window", "readout")
CORRECTED: dict[str, tuple[str, str, str]] = {  # the corrected answer; metric, profile
    "identity, then linear": ("identity", "values", "linear"),
    "identity, then linear of slopes": ("identity", "slopes", "linear"),
    "identity, then rbf": ("identity", "values", "gaussian"),
    "window, then linear": ("window", "values", "linear"),
    "window, then rbf": ("window", "values", "gaussian"),
    "far window, then rbf": ("far window", "values", "gaussian"),
    "readout, then linear": ("readout", "values", "linear"),
    "readout, then rbf": ("readout", "values", "gaussian"),
    "readout, then rbf of integrals": ("readout", "integrals", "gaussian"),
}
ANSWERS = (*CURVES, *CORRECTED)
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
    shared = SharedComparisons(V)
    kernels: dict[str, Kappa] = {"mean": Constant()}
    for name, (kind, profile, by_direction) in TUNED.items():
        if shared.has(kind):
            kernels[name] = TunedRidge(shared.get(kind, profile), by_direction)
    if isinstance(V, Sampled) and isinstance(U, Sampled):
        kernels |= _between_curves(V, U, readout)
    names = [name for name in kernels if name not in without]
    corrected = [
        name for name, (base, *_) in CORRECTED.items() if base in names and name not in without
    ]
    return Stack(
        [kernels[name] for name in names],
        [names.index(CORRECTED[name][0]) for name in corrected],
        [TunedRidge(shared.get(*CORRECTED[name][1:])) for name in corrected],
        trust,
        [ANSWERS.index(name) for name in (*names, *corrected)],
    )


class SharedComparisons:
    """One comparison for each metric and profile on a space."""

    def __init__(self, V: Space):
        self.V = V
        self.made: dict[tuple[str, str], Comparison] = {}

    def has(self, kind: str) -> bool:
        """Whether the space has this metric."""
        return kind not in MATRICES or isinstance(self.V, Sampled)

    def get(self, kind: str, profile: str) -> Comparison:
        if (kind, profile) not in self.made:
            self.made[kind, profile] = Comparison(Metric(self.V, kind), profile)
        return self.made[kind, profile]


def _between_curves(V: Sampled, U: Sampled, readout: CurveReadout) -> dict[str, Kappa]:
    found: dict[str, Kappa] = {
        "window": WindowRidge(V, U),
        "far window": WindowRidge(V, U, far=True),
    }
    if V.channels == U.channels:
        found |= {"identity": Gain(V, U), "deviation": Deviation(V, U)}
    if V.channels <= MOST_CHANNELS:
        found["readout"] = readout.between(V, U)
    return found
