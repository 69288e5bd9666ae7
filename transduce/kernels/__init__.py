"""kappa by name: exp_dot, rbf and l2 average the examples, as in the paper; representer and convolutional solve for
their coefficients."""

from ..types import TransduceError
from .attention import L2, ExpDot, Rbf
from .attention import Attention as Attention
from .convolutional import Convolutional as Convolutional
from .descent import left_by_lines as left_by_lines
from .descent import start_with_descent as start_with_descent
from .kappa import Kappa as Kappa
from .kappa import Known as Known
from .patchwise import Patchwise as Patchwise
from .prior import Prior as Prior
from .prior import prior_of as prior_of
from .representer import Representer as Representer

KERNELS: dict[str, type[Kappa]] = {"exp_dot": ExpDot, "rbf": Rbf, "l2": L2, "representer": Representer, "convolutional": Convolutional}


def kernel(name: str) -> type[Kappa]:
    """The kernel class of this name."""
    if name not in KERNELS:
        raise TransduceError(f"kappa={name!r} is not a kernel; expected one of {', '.join(KERNELS)}.")
    return KERNELS[name]
