"""kappa by name: exp_dot, rbf and l2 average the examples, as in the paper; representer,
convolutional and metric solve for their coefficients."""

from typing import Any

from ..spaces import Region, Space
from ..types import TransduceError
from .attention import L2, ExpDot, Rbf
from .attention import Attention as Attention
from .convolutional import Convolutional as Convolutional
from .descent import left_by_lines as left_by_lines
from .descent import start_with_descent as start_with_descent
from .kappa import Kappa as Kappa
from .kappa import Known as Known
from .local import Local as Local
from .metric import Metric as Metric
from .patchwise import Patchwise as Patchwise
from .prior import Prior as Prior
from .prior import spectral_prior
from .remembered import Remembered as Remembered
from .representer import Representer as Representer

KERNELS: dict[str, type[Kappa]] = {
    "exp_dot": ExpDot,
    "rbf": Rbf,
    "l2": L2,
    "representer": Representer,
    "convolutional": Convolutional,
    "metric": Metric,
}


def kernel(name: str) -> type[Kappa]:
    """The kernel class of this name."""
    if name not in KERNELS:
        raise TransduceError(
            f"kappa={name!r} is not a kernel; expected one of {', '.join(KERNELS)}."
        )
    return KERNELS[name]


def prior_of(V: Space, U: Space, options: dict[str, Any]) -> Prior | Remembered:
    """The prior that `options` describe: of pairs that are remembered, or of a spectral network."""
    if "pairs" not in options:
        return spectral_prior(V, U, options)
    if options.keys() != {"pairs"}:
        raise TransduceError(
            f"a prior of pairs with options {', '.join(options)}; expected pairs alone. Leave the "
            "others out."
        )
    return Remembered(looking(Metric(V.size, U.size), V, U), V.size, U.size, **options)


def looking(kappa: Kappa, V: Space, U: Space) -> Any:
    """The kernel as it is, or one at every place of a region whose fields are compared near
    places."""
    if not isinstance(V, Region) or not V.reach:
        return kappa
    if (
        not isinstance(kappa, Metric)
        or not isinstance(U, Region)
        or U.grid != V.grid
        or U.size != U.points
    ):
        raise TransduceError(
            f"V is a Region with reach={V.reach}, U {U.config()}, the kernel "
            f"{type(kappa).__name__}; expected kappa='metric', and for U a "
            "Region of the same grid without slopes. Leave reach out, or change the others."
        )
    return Local(kappa, *V.neighbourhoods())
