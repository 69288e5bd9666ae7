"""The general model of fields: the answers of a catalogue of their own."""

from __future__ import annotations

from typing import ClassVar

from ..spaces import SampledFields, Space
from .catalogue import Catalogue
from .field_network import CHANNELS
from .field_window import FieldWindow
from .general import ALIKE, MOST_IN_WINDOWS, ON_VALUES, SCALED, GeneralStack
from .implicit import ImplicitLaw, has_implicit_laws
from .kappa import Kappa
from .periodic import PerhapsPeriodic
from .simple import Deviation, Gain
from .window import WindowRidge

VECTOR = 2  # channels of a field that can carry itself

KERNELS = {
    **ON_VALUES,
    "linear of means nearby": ("smooth", "linear"),
    "rbf of means nearby": ("smooth", "gaussian"),
    "linear with slopes": ("with slopes", "linear"),
    "rbf with slopes": ("with slopes", "gaussian"),
    "matern with slopes": ("with slopes", "matern"),
    "powers": ("scales", "powers"),
    "products of powers": ("scales", "products of powers"),
}
FIELDS = Catalogue(
    kernels=KERNELS,
    tuned=tuple(KERNELS),
    local=(
        "identity",
        "deviation",
        "window",
        "carried window",
        "implicit",
        "rich implicit",
        "readout",
    ),
    scaled=SCALED,
    corrected={
        "identity, then rbf": ("identity", "rbf"),
        "window, then rbf": ("window", "rbf"),
        "window, then rbf with slopes": ("window", "rbf with slopes"),
        "carried window, then rbf": ("carried window", "rbf"),
        "implicit, then rbf": ("implicit", "rbf"),
        "readout, then rbf": ("readout", "rbf"),
        "readout, then rbf with slopes": ("readout", "rbf with slopes"),
        "readout, then window": ("readout", "window"),
    },
    known_as={
        "matern with slopes": "rbf with slopes",
        "window, then rbf with slopes": "readout, then rbf with slopes",
        "length scales": "rbf",
        "length scales by component": "matern",
    },
    alike=ALIKE | {"rich implicit": "implicit"},
)


class FieldStack(GeneralStack):
    """The stack of the general model of fields."""

    catalogue: ClassVar[Catalogue] = FIELDS

    def local_between(self, V: Space, U: Space, readout: Kappa) -> dict[str, Kappa]:
        if not (isinstance(V, SampledFields) and isinstance(U, SampledFields)):
            return {}
        found: dict[str, Kappa] = {}
        if V.channels <= MOST_IN_WINDOWS:
            found["window"] = _windows(V, U)
        if max(V.channels, U.channels) <= CHANNELS and has_implicit_laws(U):
            for name, rich in (("implicit", False), ("rich implicit", True)):
                laws = (ImplicitLaw(V, U, rich, periodic) for periodic in (False, True))
                found[name] = PerhapsPeriodic(V, U, *laws)
        if V.channels == VECTOR:
            found["carried window"] = _windows(V, U, carried=True)
        if V.channels == U.channels:
            found |= {"identity": Gain(V, U), "deviation": Deviation(V, U)}
        if max(V.channels, U.channels) <= CHANNELS:
            found["readout"] = readout.between(V, U)
        return found


def _windows(V: SampledFields, U: SampledFields, carried: bool = False) -> PerhapsPeriodic:
    """A window of fields that may be periodic."""
    plain, around = (
        WindowRidge(V, U, FieldWindow(U, V.channels, carried, periodic))
        for periodic in (False, True)
    )
    return PerhapsPeriodic(V, U, plain, around)
