"""Models by name: each builder composes layers, and has the options that its users need.

    softmax         the paper's: kernels that average the examples
    representer     kernel ridge regression over learned features
    spectral        a spectral network with a closed-form read-out
    images          kernel ridge regression over a convolutional network
    region          a Gaussian process between fields of a region
    curves          a curve network with a closed-form read-out
    general         that read-out, simple baselines and kernels, weighed by a learned trust
    fields          the same between fields

Compose layers yourself for anything else: [*spectral(V, U).layers, *representer(V, U).layers] is a
read-out followed by a kernel on its residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..configs import build as build_part
from ..configs import check_options
from ..kernels import (
    ATTENTION,
    PLAIN_WIDTHS,
    AtPlaces,
    Attention,
    ConvolutionGram,
    FeatureCandidates,
    FeatureGram,
    LayerCandidates,
    MaternGram,
    Mixer,
    Neighbourhoods,
    NoiseUnits,
    Readout,
    Ridge,
    SpectralNetwork,
)
from ..layer import Feedforward, Layer, start_xavier
from ..spaces import Modes, Region, Space
from ..transducer import Transducer
from ..types import Json, TransduceError
from .general import curves, fields, general
from .labelled import of_domain

EXACT = 1024  # largest number of examples that `representer` compares in pairs
LANDMARKS = 512  # examples that span its kernels beyond that
MOST_IMAGES = 4096  # largest number of examples of `images`
LAYER_TRUST = (0.0, 2.5)  # logarithms of b and b' of the mixer of `images` before training


def softmax(
    V: Space,
    U: Space,
    depth: int = 8,
    heads: int = 8,
    width: int = 32,
    hidden: int = 256,
    kappa: str = "exp_dot",
    tau: float = 1.0,
    gain: float = 1.0,
    tied: bool = False,
) -> Transducer:
    """The paper's Transducer: `depth` layers of attention, with feedforward F and G.

    Args:
        depth: number of layers, L.
        heads: number of heads of each kernel, J.
        width: number of features of a head.
        hidden: width of F and G.
        kappa: "exp_dot", "rbf" or "l2".
        tau: temperature before training; "l2" has none.
        gain: of the initial weights (Xavier).
        tied: use one layer `depth` times.
    """
    if depth < 1 or tau <= 0:
        raise TransduceError(
            f"tau={tau} and depth={depth}; expected a positive temperature and at least one layer."
        )
    kernel = attention_kernel(kappa)
    options = {} if kappa == "l2" else {"tau": tau}

    def layer() -> Layer:
        parts = (
            kernel(V.size, U.size, heads, width, **options),
            Feedforward(V.size, hidden),
            Feedforward(U.size, hidden),
        )
        for part in parts:
            start_xavier(part, gain)
        return Layer(*parts)

    return Transducer(V, U, [layer()] * depth if tied else [layer() for _ in range(depth)])


def attention_kernel(name: str) -> type[Attention]:
    """The paper's kernel of this name."""
    if name not in ATTENTION:
        raise TransduceError(
            f"kappa={name!r} is not a kernel; expected one of {', '.join(ATTENTION)}."
        )
    return ATTENTION[name]


def representer(
    V: Space,
    U: Space,
    depth: int = 1,
    heads: int = 4,
    width: int = 96,
    hidden: int = 256,
    feature_layers: int = 5,
    ridges: int = 2,
    universal: bool = True,
) -> Transducer:
    """Kernel ridge regression over learned features, mixed by leave-one-out error.

    Args:
        depth: number of layers; each regresses the residuals of the one before.
        heads: number of feature maps.
        width: number of features of each.
        hidden: width of the network that computes features.
        feature_layers: number of its hidden layers.
        ridges: number of candidates of each head.
        universal: whether Gaussian kernels join the features, so that error falls with n.
    """
    if min(depth, heads, width, ridges) < 1 or feature_layers < 0:
        raise TransduceError(
            f"depth={depth}, heads={heads}, width={width}, ridges={ridges}, "
            f"feature_layers={feature_layers}; expected at least one of the first four."
        )

    def layer() -> Layer:
        learned, fixed = (ridges, PLAIN_WIDTHS) if universal else (0, ())
        gram = FeatureGram(V.size, heads, width, hidden, feature_layers, learned, fixed)
        candidates = FeatureCandidates(gram, ridges)
        mixer = Mixer(candidates.count, U.size)
        return Layer(Ridge(candidates, mixer, exact=EXACT, landmarks=LANDMARKS))

    return Transducer(V, U, [layer() for _ in range(depth)])


def spectral(
    V: Modes,
    U: Modes,
    channels: int = 32,
    layers: int = 4,
    modes: int = 12,
    grid: int = 32,
    readout: bool = True,
    summary: int = 0,
) -> Transducer:
    """A spectral network whose read-out the examples determine.

    Args:
        channels: number of learned channels.
        layers: number of spectral layers.
        modes: number of frequencies that a layer mixes along each axis.
        grid: number of points along each axis on which the network works.
        readout: whether the examples determine the read-out; if not, it is learned once.
        summary: size of a summary of the examples that modulates the network; 0 for none.
    """
    network = SpectralNetwork(V, U, channels, layers, modes, grid, summary)
    return Transducer(V, U, [Layer(Readout(network, readout))])


def images(
    V: Space,
    U: Space,
    convolutions: Sequence[int] = (32, 64, 96),
    width: int = 256,
    ridges: int = 2,
) -> Transducer:
    """Kernel ridge regression over the layers of a convolutional network.

    Args:
        convolutions: number of channels of each convolution; at least two.
        width: size of the network's last layer.
        ridges: number of candidates of each layer.
    """
    candidates = LayerCandidates(ConvolutionGram(V.size, convolutions, width, ridges))
    mixer = Mixer(candidates.count, 1, LAYER_TRUST)
    return of_domain("images", V, U, Layer(Ridge(candidates, mixer, exact=MOST_IMAGES)))


def region(V: Region, U: Region, signal: float = 60.0) -> Transducer:
    """A Gaussian process between fields of a region; at each of its places, if V has a reach.

    Args:
        signal: variance of the operator in units of the noise, before training.
    """
    ridge = Ridge(NoiseUnits(MaternGram(), signal))
    if not V.reach:
        return of_domain("climate", V, U, Layer(ridge))
    if U.grid != V.grid or U.size != U.points:
        raise TransduceError(
            f"V is a Region with reach={V.reach}, U {U.config()}; expected for U a Region of the "
            "same grid without slopes. Leave reach out, or change U."
        )
    return of_domain("climate", V, U, Layer(AtPlaces(ridge, Neighbourhoods(V))))


BUILDERS: dict[str, Callable[..., Transducer]] = {
    "softmax": softmax,
    "representer": representer,
    "spectral": spectral,
    "images": images,
    "region": region,
    "curves": curves,
    "general": general,
    "fields": fields,
}


def build(model: Mapping[str, Json]) -> Transducer:
    """The untrained model that JSON describes by its builder's name, spaces and options.

    >>> build({"model": "softmax", "V": {"space": "SineModes", "modes": 64},
    ...        "U": {"space": "SineModes", "modes": 64}, "depth": 4})
    """
    options = dict(model)
    name = options.pop("model", None)
    if name not in BUILDERS:
        raise TransduceError(f"no model is called {name!r}; expected one of {', '.join(BUILDERS)}.")
    V, U = (build_part(options.pop(space, None)) for space in ("V", "U"))
    if not (isinstance(V, Space) and isinstance(U, Space)):
        raise TransduceError(
            f"the model {name!r} needs spaces V and U, such as "
            '{"space": "SineModes", "modes": 64}. Give both.'
        )
    check_options(BUILDERS[name], f"the model {name!r}", {"V": V, "U": U, **options})
    return BUILDERS[name](V, U, **options)
