"""The answers that the general model weighs, between any two spaces.

Each answer has a name. Between curves all of them take part; between plain numbers or fields only
those that need no grid. Names in `CORRECTED` are answers of one kernel plus a kernel on its
residuals.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from torch import Tensor

from ..spaces import Sampled, Space, WithParameters
from ..types import TransduceError
from .comparison import Comparison
from .curve_readout import CurveReadout
from .kappa import Answer, Kappa
from .metrics import MATRICES, Metric
from .of_functions import OfFunctions
from .scaled import MOST_BLOCKS, ScaledRidge, Scales, block_sizes
from .simple import Constant, Deviation, Gain
from .stack import Stack, StackFit
from .trust import Trust
from .tuned import TunedRidge
from .window import WindowRidge

MOST_CHANNELS = 3  # of v, that the read-out takes


TUNED: dict[str, tuple[str, str]] = {  # metric, profile
    "linear": ("values", "linear"),
    "rbf": ("values", "gaussian"),
    "matern": ("values", "matern"),
    "linear of columns": ("columns", "linear"),
    "rbf of columns": ("columns", "gaussian"),
    "linear of integrals": ("integrals", "linear"),
    "rbf of integrals": ("integrals", "gaussian"),
    "linear of double integrals": ("double integrals", "linear"),
    "powers": ("scales", "powers"),
    "products of powers": ("scales", "products of powers"),
}
SCALED: dict[str, tuple[str, int]] = {  # profile, principal components with scales of their own
    "length scales": ("product", 0),
    "length scales by component": ("product", 8),
    "additive": ("additive", 0),
}
CURVES = ("mean", *TUNED, "identity", "deviation", "window", "far window", "readout")
CORRECTED: dict[str, tuple[str, str, str]] = {  # the corrected answer; metric, profile
    "identity, then linear of slopes": ("identity", "slopes", "linear"),
    "identity, then rbf": ("identity", "values", "gaussian"),
    "window, then rbf": ("window", "values", "gaussian"),
    "far window, then rbf": ("far window", "values", "gaussian"),
    "readout, then rbf": ("readout", "values", "gaussian"),
}
ANSWERS = (*CURVES, *SCALED, *CORRECTED)
KNOWN_AS = {  # to the trust, which was fitted to curves
    "linear of columns": "linear",
    "rbf of columns": "rbf",
    "length scales": "rbf",
    "length scales by component": "matern",
    "additive": "rbf of integrals",
}
KNOWN = tuple(name for name in ANSWERS if name not in KNOWN_AS)
ALIKE = {  # both extrapolate by the same powers, or have scales of the same kind
    "products of powers": "powers",
    "length scales by component": "length scales",
}
BASELINES = ("mean", "identity", "linear", "rbf", "window")


def origin_of(answer: str) -> str:
    """Answers of one origin do not vote for each other."""
    return CORRECTED[answer][0] if answer in CORRECTED else ALIKE.get(answer, answer)


def answers_between(
    V: Space, U: Space, readout: CurveReadout, without: Collection[str]
) -> tuple[list[str], list[Kappa], list[str], list[Kappa]]:
    """The kernels between two spaces with their names, and the corrections with theirs."""
    unknown = [name for name in without if name not in ANSWERS]
    if unknown or "mean" in without:
        raise TransduceError(
            f"without={list(without)}; expected names among {', '.join(ANSWERS[1:])}. Name these."
        )
    shared, curves = SharedComparisons(V), _functions_of(V)
    kernels: dict[str, Kappa] = {"mean": Constant()}
    for name, (kind, profile) in TUNED.items():
        if shared.has(kind):
            kernels[name] = TunedRidge(shared.get(kind, profile))
    if has_length_scales(V):
        kernels |= _scaled(V)
    if isinstance(curves, Sampled) and isinstance(U, Sampled):
        found = _between_curves(curves, U, readout)
        kernels |= found if curves is V else {k: OfFunctions(f, curves) for k, f in found.items()}
    names = [name for name in kernels if name not in without]
    corrected = [
        name for name, (base, *_) in CORRECTED.items() if base in names and name not in without
    ]
    corrections: list[Kappa] = [TunedRidge(shared.get(*CORRECTED[k][1:])) for k in corrected]
    return names, [kernels[name] for name in names], corrected, corrections


def has_length_scales(V: Space) -> bool:
    """Whether numbers are among the inputs, few enough for a length scale of each."""
    return not isinstance(V, Sampled) and len(block_sizes(V)) <= MOST_BLOCKS


def _scaled(V: Space) -> dict[str, Kappa]:
    scales = {profile: Scales(V, profile) for profile, _ in SCALED.values()}
    return {name: ScaledRidge(scales[profile], own) for name, (profile, own) in SCALED.items()}


def _functions_of(V: Space) -> Space:
    """The space without parameters."""
    return V.functions if isinstance(V, WithParameters) else V


class SharedComparisons:
    """One comparison for each metric and profile on a space."""

    def __init__(self, V: Space):
        self.V = V
        self.made: dict[tuple[str, str], Comparison] = {}

    def has(self, kind: str) -> bool:
        """Whether the space has this metric. Columns of one curve have the same unit."""
        curves = _functions_of(self.V)
        if kind == "columns":
            return not isinstance(self.V, Sampled) or self.V.channels > 1
        if kind == "scales":  # powers of values in one unit
            return isinstance(self.V, Sampled)
        return kind not in MATRICES or isinstance(curves, Sampled)

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


class GeneralStack(Stack):
    """The stack of the general model. It can be moved to any two spaces.

    Args:
        V: space of the inputs.
        U: space of the outputs.
        readout: whose network and ridges are used; made for any two spaces of curves.
        trust: weighs the answers in `KNOWN`.
        without: names of answers to leave out.
    """

    def __init__(
        self,
        V: Space,
        U: Space,
        readout: CurveReadout,
        trust: Trust,
        without: Sequence[str] = (),
    ):
        names, kernels, corrected, corrections = answers_between(V, U, readout, without)
        bases = [names.index(CORRECTED[name][0]) for name in corrected]
        answers = (*names, *corrected)
        which = [KNOWN.index(KNOWN_AS.get(name, name)) for name in answers]
        origins = list(map(origin_of, answers))
        super().__init__(kernels, bases, corrections, trust, which, origins, block_sizes(V))
        self.names = answers
        self.V, self.U, self.without = V, U, tuple(without)
        self.readout = readout

    def named_answers(self, fit: StackFit) -> dict[str, Answer]:
        weights, residuals = fit.weights[0].mean(0).tolist(), fit.residuals[0].unbind()
        return dict(zip(self.names, map(Answer, weights, residuals), strict=True))

    def answers_by_name(self, fit: StackFit, v: Tensor) -> dict[str, Tensor]:
        return dict(zip(self.names, self.answers(fit, v).unbind(1), strict=True))

    def between(self, V: Space, U: Space) -> GeneralStack:
        return GeneralStack(V, U, self.readout, self.trust, self.without)
