"""The general model of fields: the answers of a catalogue of their own."""

from __future__ import annotations

from typing import ClassVar

from ..spaces import SampledFields, Space
from .catalogue import Catalogue
from .field_network import CHANNELS
from .field_window import FieldWindow
from .general import ALIKE, MOST_IN_WINDOWS, ON_VALUES, SCALED, GeneralStack
from .kappa import Kappa
from .simple import Deviation, Gain
from .window import WindowRidge

VECTOR = 2  # channels of a field that can carry itself

KERNELS = {
    **ON_VALUES,
    "linear of means nearby": ("smooth", "linear"),
    "rbf of means nearby": ("smooth", "gaussian"),
    "powers": ("scales", "powers"),
    "products of powers": ("scales", "products of powers"),
}
FIELDS = Catalogue(
    kernels=KERNELS,
    tuned=tuple(KERNELS),
    local=("identity", "deviation", "window", "carried window", "readout"),
    scaled=SCALED,
    corrected={
        "identity, then rbf": ("identity", "rbf"),
        "window, then rbf": ("window", "rbf"),
        "carried window, then rbf": ("carried window", "rbf"),
        "readout, then rbf": ("readout", "rbf"),
        "readout, then window": ("readout", "window"),
    },
    known_as={
        "length scales": "rbf",
        "length scales by component": "matern",
    },
    alike=ALIKE,
)


class FieldStack(GeneralStack):
    """The stack of the general model of fields."""

    catalogue: ClassVar[Catalogue] = FIELDS

    def local_between(self, V: Space, U: Space, readout: Kappa) -> dict[str, Kappa]:
        if not (isinstance(V, SampledFields) and isinstance(U, SampledFields)):
            return {}
        found: dict[str, Kappa] = {}
        if V.channels <= MOST_IN_WINDOWS:
            found["window"] = WindowRidge(V, U, FieldWindow(U, V.channels))
        if V.channels == VECTOR:
            found["carried window"] = WindowRidge(V, U, FieldWindow(U, VECTOR, carried=True))
        if V.channels == U.channels:
            found |= {"identity": Gain(V, U), "deviation": Deviation(V, U)}
        if max(V.channels, U.channels) <= CHANNELS:
            found["readout"] = readout.between(V, U)
        return found
