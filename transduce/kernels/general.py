"""The general model: the answers of a catalogue between any two spaces, weighed by a trust.

Between curves all answers of `CURVES` take part; between plain numbers, or where only one of v and
u are curves, only those that need no grid.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, cast

from torch import Tensor

from ..spaces import Gridded, Sampled, Space
from .catalogue import Catalogue
from .comparison import Comparison
from .kappa import Answer, Kappa
from .metrics import Metric, functions_of, has_metric
from .of_functions import OfFunctions
from .scaled import MOST_BLOCKS, ScaledRidge, Scales, block_sizes
from .simple import Constant, Deviation, Gain
from .stack import Stack, StackFit
from .trust import Trust
from .tuned import TunedRidge
from .window import WindowRidge
from .window_features import CurveWindow

MOST_CHANNELS = 3  # of v, that the read-out takes
MOST_IN_WINDOWS = 8  # channels of v: the products of a window grow with their square

ON_VALUES = {  # metric and profile of kernels between any two spaces
    "linear": ("values", "linear"),
    "rbf": ("values", "gaussian"),
    "matern": ("values", "matern"),
    "linear of columns": ("columns", "linear"),
    "rbf of columns": ("columns", "gaussian"),
}
KERNELS = {
    **ON_VALUES,
    "linear of integrals": ("integrals", "linear"),
    "rbf of integrals": ("integrals", "gaussian"),
    "linear of double integrals": ("double integrals", "linear"),
    "powers": ("scales", "powers"),
    "products of powers": ("scales", "products of powers"),
}
SCALED = {"length scales": 0, "length scales by component": 8}
ALIKE = {  # both extrapolate by the same powers, or have scales of the same kind
    "products of powers": "powers",
    "length scales by component": "length scales",
}
CURVES = Catalogue(
    kernels={**KERNELS, "linear of slopes": ("slopes", "linear")},
    tuned=tuple(KERNELS),
    local=("identity", "deviation", "window", "far window", "readout"),
    scaled=SCALED,
    corrected={
        "identity, then linear of slopes": ("identity", "linear of slopes"),
        "identity, then rbf": ("identity", "rbf"),
        "window, then rbf": ("window", "rbf"),
        "far window, then rbf": ("far window", "rbf"),
        "readout, then rbf": ("readout", "rbf"),
    },
    known_as={
        "linear of columns": "linear",
        "rbf of columns": "rbf",
        "length scales": "rbf",
        "length scales by component": "matern",
    },
    alike=ALIKE,
)


def has_length_scales(V: Space) -> bool:
    """Whether numbers are among the inputs, few enough for a length scale of each."""
    return not isinstance(V, Gridded) and len(block_sizes(V)) <= MOST_BLOCKS


class SharedComparisons:
    """One comparison for each metric and profile on a space."""

    def __init__(self, V: Space):
        self.V = V
        self.made: dict[tuple[str, str], Comparison] = {}

    def get(self, kind: str, profile: str) -> Comparison:
        if (kind, profile) not in self.made:
            self.made[kind, profile] = Comparison(Metric(self.V, kind), profile)
        return self.made[kind, profile]


class GeneralStack(Stack):
    """The stack of the general model. It can be moved to any two spaces.

    Args:
        V: space of the inputs.
        U: space of the outputs.
        readout: whose network and ridges are used; made for any two spaces of its kind.
        trust: weighs the known answers of the catalogue.
        without: names of answers to leave out.

    Attributes:
        catalogue: of the answers.
    """

    catalogue: ClassVar[Catalogue] = CURVES

    def __init__(
        self,
        V: Space,
        U: Space,
        readout: Kappa,
        trust: Trust,
        without: Sequence[str] = (),
    ):
        book = self.catalogue
        book.check(without)
        shared, known = SharedComparisons(V), self.kernels_between(V, U, readout)
        known |= {name: TunedRidge(shared.get(*book.kernels[name]))
                  for name in book.tuned if has_metric(V, book.kernels[name][0])}  # fmt: skip
        names = [name for name in book.answers if name in known and name not in without]
        corrected = [
            name
            for name, (base, _) in book.corrected.items()
            if base in names and name not in without
        ]
        corrections = [
            known[by] if by in book.local else TunedRidge(shared.get(*book.kernels[by]))
            for _, by in (book.corrected[name] for name in corrected)
        ]
        answers = (*names, *corrected)
        super().__init__(
            [known[name] for name in names],
            [names.index(book.corrected[name][0]) for name in corrected],
            corrections,
            trust,
            [book.number(name) for name in answers],
            [book.origin_of(name) for name in answers],
            block_sizes(V),
        )
        self.names = answers
        self.V, self.U, self.without = V, U, tuple(without)
        self.readout = readout

    def kernels_between(self, V: Space, U: Space, readout: Kappa) -> dict[str, Kappa]:
        """The answers that no kernel ridge regression of the catalogue gives."""
        found: dict[str, Kappa] = {"mean": Constant()}
        if has_length_scales(V):
            scales = Scales(V)
            found |= {name: ScaledRidge(scales, own) for name, own in self.catalogue.scaled.items()}
        functions = functions_of(V)
        local = self.local_between(functions, U, readout)
        if functions is not V:
            local = {name: OfFunctions(kernel, functions) for name, kernel in local.items()}
        return found | local

    def local_between(self, V: Space, U: Space, readout: Kappa) -> dict[str, Kappa]:
        """The answers that need the grids of functions."""
        if not (isinstance(V, Sampled) and isinstance(U, Sampled)):
            return {}
        found: dict[str, Kappa] = {}
        if V.channels <= MOST_IN_WINDOWS:
            found["window"] = WindowRidge(V, U, CurveWindow(U, V.channels))
            found["far window"] = WindowRidge(V, U, CurveWindow(U, V.channels, far=True))
        if V.channels == U.channels:
            found |= {"identity": Gain(V, U), "deviation": Deviation(V, U)}
        if V.channels <= MOST_CHANNELS:
            found["readout"] = readout.between(V, U)
        return found

    def named_answers(self, fit: StackFit) -> dict[str, Answer]:
        weights, residuals = fit.weights[0].mean(0).tolist(), fit.residuals[0].unbind()
        return dict(zip(self.names, map(Answer, weights, residuals), strict=True))

    def answers_by_name(
        self, fit: StackFit, v: Tensor, names: Collection[str] | None = None
    ) -> dict[str, Tensor]:
        wanted = [name for name in self.names if names is None or name in names]
        found = self.answers(fit, v, [self.names.index(name) for name in wanted])
        return dict(zip(wanted, found.unbind(1), strict=True))

    @property
    def shared(self) -> list[str]:
        """The answers that are one law for all points."""
        return [name for name, kernel in self._named_kernels() if kernel.is_shared]

    def differentiable(self) -> GeneralStack:
        named = self._named_kernels()
        return self._without([name for name, kernel in named if not kernel.has_exact_gradients])

    def exportable(self) -> GeneralStack:
        named = self._named_kernels()
        return self._without([name for name, kernel in named if not kernel.exports])

    def _named_kernels(self) -> list[tuple[str, Kappa]]:
        """All answers but the corrected ones."""
        kernels = [cast(Kappa, kernel) for kernel in self.kernels]
        return list(zip(self.names[: len(kernels)], kernels, strict=True))

    def _without(self, names: Sequence[str]) -> GeneralStack:
        """Without these answers, and those that correct them."""
        if not names:
            return self
        return type(self)(self.V, self.U, self.readout, self.trust, (*self.without, *names))

    def between(self, V: Space, U: Space) -> GeneralStack:
        return type(self)(V, U, self.readout, self.trust, self.without)
