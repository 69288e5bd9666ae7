"""Builders of models that the library has none for."""

from __future__ import annotations

from typing import Any

from paper.models.descent import start_with_descent
from paper.models.mirrored import start_mirrored
from paper.models.neighbours import Neighbours
from transduce import Transducer, models
from transduce.kernels import AtPlaces, PatchGrid, Rbf
from transduce.layer import Feedforward, Layer, start_xavier
from transduce.spaces import Modes, Padded, Patches, Space


def descent_softmax(
    V: Space,
    U: Space,
    memory: int,
    depth: int = 5,
    heads: int = 400,
    width: int = 2,
    hidden: int = 1024,
    kappa: str = "exp_dot",
    gain: float = 0.003,
) -> Transducer:
    """Softmax layers that start as a solver of least squares.

    Args:
        memory: number of zeros that both spaces are padded with.
        depth: number of layers; each starts as one step of gradient descent.
        heads: number of heads, a multiple of four.
        width: number of features of a head.
        hidden: width of F and G.
        kappa: "exp_dot" or "rbf".
        gain: of the weights that are added to those of descent (Xavier).
    """
    padded = Padded(V, memory), Padded(U, memory)
    T = models.softmax(*padded, depth, heads, width, hidden, kappa=kappa, gain=gain)
    start_with_descent(T)
    return T


def mirrored_rbf(
    V: Space,
    U: Space,
    depth: int = 2,
    heads: int = 32,
    width: int = 32,
    hidden: int = 256,
    tau: float = 0.3,
) -> Transducer:
    """Rbf layers that start as smoothers, with F and without G.

    Args:
        depth: number of layers.
        heads: number of heads.
        width: number of features of a head.
        hidden: width of F.
        tau: temperature before training.
    """

    def layer() -> Layer:
        parts = Rbf(V.size, U.size, heads, width, tau), Feedforward(V.size, hidden)
        for part in parts:
            start_xavier(part)
        return Layer(*parts)

    T = Transducer(V, U, [layer() for _ in range(depth)])
    start_mirrored(T)
    return T


def patches(
    V: Patches,
    U: Patches,
    depth: int = 2,
    heads: int = 2,
    width: int = 4,
    hidden: int = 16,
    reach: int = 1,
    kappa: str = "exp_dot",
) -> Transducer:
    """Attention at every patch of a field; G looks at neighbouring patches.

    Args:
        depth: number of layers.
        heads: number of heads of the kernel and of G.
        width: number of features of a head.
        hidden: width of the feedforward networks.
        reach: how many patches away G looks.
        kappa: "exp_dot", "rbf" or "l2".
    """

    def layer() -> Layer:
        kernel = models.attention_kernel(kappa)(V.size, U.size, heads, width)
        F, G = Feedforward(V.size, hidden), Neighbours(U.size, heads, width, hidden, reach)
        for part in (kernel, F, G.feedforward):
            start_xavier(part)
        return Layer(AtPlaces(kernel, PatchGrid()), F, G)

    return Transducer(V, U, [layer() for _ in range(depth)])


def spectral_representer(
    V: Modes, U: Modes, spectral: dict[str, Any], representer: dict[str, Any]
) -> Transducer:
    """A read-out over a spectral network, and kernel ridge regression of its residuals.

    Args:
        spectral: options of `models.spectral`.
        representer: options of `models.representer`.
    """
    first, second = models.spectral(V, U, **spectral), models.representer(V, U, **representer)
    return Transducer(V, U, [*first.steps, *second.steps])


models.BUILDERS |= {
    "softmax-descent": descent_softmax,
    "softmax-mirrored": mirrored_rbf,
    "softmax-patches": patches,
    "spectral-representer": spectral_representer,
}
