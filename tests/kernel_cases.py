"""The kernels that tests/test_kernels.py tests, and the properties that hold for each.

A new kernel joins with one line in `CASES`: a name, a function that builds it with example data,
and the set of its properties. `EVERY` holds for most kernels; write `EVERY - {...}` for exceptions.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from transduce.kernels import (
    L2,
    PLAIN_WIDTHS,
    AtPlaces,
    ConvolutionGram,
    CurveNetwork,
    CurveReadout,
    ExpDot,
    FeatureCandidates,
    FeatureGram,
    FieldNetwork,
    FieldReadout,
    FieldStack,
    GeneralStack,
    Kappa,
    LayerCandidates,
    MaternGram,
    Mean,
    Mixer,
    Mixture,
    Neighbourhoods,
    NoiseUnits,
    PatchGrid,
    Rbf,
    Readout,
    Ridge,
    SpectralNetwork,
    Stack,
    Trust,
)
from transduce.kernels.comparison import Comparison
from transduce.kernels.field_window import FieldWindow
from transduce.kernels.general import CURVES as CATALOGUE
from transduce.kernels.general_fields import FIELDS as OF_FIELDS
from transduce.kernels.implicit import ImplicitLaw
from transduce.kernels.metrics import Metric
from transduce.kernels.of_functions import OfFunctions
from transduce.kernels.periodic import PerhapsPeriodic
from transduce.kernels.scaled import ScaledRidge, Scales
from transduce.kernels.simple import Constant, Deviation, Gain
from transduce.kernels.tuned import TunedRidge
from transduce.kernels.window import WindowRidge
from transduce.kernels.window_features import CurveWindow
from transduce.layer import Feedforward, Layer
from transduce.spaces import (
    Euclidean,
    FourierModes,
    Gridded,
    Patches,
    Region,
    Sampled,
    SampledFields,
    SineModes,
    Space,
    Values,
    WithParameters,
)
from transduce.transducer import Transducer

EVERY = {
    "masking",  # masked examples do not count
    "permutation",  # the order of the examples does not matter
    "batch",  # several tasks at once are the same as one after the other
    "many",  # many regressions are the same as one after the other
    "update",  # examples more or less are the same as a new fit
    "saving",  # a saved and loaded model answers the same
    "export",  # ONNX Runtime answers the same
    "weights",  # `weights` are the derivatives of the answers with respect to the examples' u
    "memory",  # the fit says how many bytes it holds
    "gradients",  # gradients reach every trainable parameter
}
IN_U = {
    "linear",  # in the examples' u
    "affine",  # in the examples' u
    "homogeneous",  # scaling u by c scales the answer by c
    "positively homogeneous",  # the same for c > 0
}
RESIDUALS = {
    "no residuals",  # and one error says so
    "true residuals",  # leave-one-out residuals are those of refitting
    "fixed residuals",  # they are those of refitting with the choices of the fit held fixed
    "honest residuals",  # they also leave the example out of the choices
    "larger residuals",  # answers of refits are bounded by the other examples, these are not
    "nested residuals",  # they are so up to the residuals that a kernel corrects, which stay
}
PROPERTIES = EVERY | IN_U | RESIDUALS
EXACT = EVERY | {"affine", "true residuals"}
CHOOSING = EVERY | {"homogeneous", "fixed residuals"}
AVERAGING = EVERY | {"linear", "no residuals"}

N, M, TASKS = 7, 3, 2
EUROPE = {"lat": (55.0, 50.0, 45.0), "lon": (0.0, 5.0, 10.0, 15.0)}


@dataclass
class Problem:
    """A kernel, the layer and the spaces that it is used with, and examples of two tasks.

    at: grid of functions in V and U, unless these are vectors.
    patches: numbers of patches along both axes, if any.
    v, u, query: in coefficients, of shape (tasks, functions, *patches, size).
    """

    kappa: Kappa
    V: Space
    U: Space
    F: torch.nn.Module | None = None
    G: torch.nn.Module | None = None
    at: tuple[int, ...] = (20,)
    patches: tuple[int, ...] = ()

    def __post_init__(self):
        """Move parameters away from their start, so that every part acts."""
        self.layer = Layer(self.kappa, self.F, self.G)
        self.kappa.standardised(torch.linspace(1.5, 0.5, self.V.size), torch.tensor(1.3))
        for parameter in self.layer.parameters():
            if parameter.requires_grad:
                parameter.data += 0.1 * torch.randn_like(parameter)
        self.layer.double().eval()
        v = torch.randn(TASKS, N + M, *self.patches, self.V.size, dtype=torch.float64)
        mixing = torch.randn(self.V.size, self.U.size, dtype=torch.float64) / self.V.size**0.5
        u = torch.tanh(v @ mixing) + 0.1 * torch.randn_like(v @ mixing)
        self.v, self.u, self.query = v[:, :N], u[:, :N], v[:, N:]

    def grid(self, space: Space) -> tuple[int, ...]:
        """The grid of functions in V or U."""
        if isinstance(space, Gridded):
            return space.grid
        own = isinstance(space, Euclidean | WithParameters)
        return (space.size,) if own else self.at

    def transducer(self, depth: int = 1) -> Transducer:
        """The kernel in a model, used in `depth` layers."""
        return Transducer(self.V, self.U, [self.layer] * depth).eval()


@dataclass(frozen=True)
class Case:
    """A kernel by name, how to build it, and the properties that hold for it."""

    name: str
    make: Callable[[], Problem]
    properties: frozenset[str]

    def __post_init__(self):
        unknown = self.properties - PROPERTIES
        if not self.properties or unknown or len(self.properties & RESIDUALS) != 1:
            raise ValueError(
                f"the kernel {self.name!r} declares {sorted(self.properties)}; expected some of "
                f"{sorted(PROPERTIES)}, and one of {sorted(RESIDUALS)}."
            )

    def problem(self) -> Problem:
        torch.manual_seed(0)
        return self.make()


def vectors(kappa: Kappa, F: bool = False, G: bool = False) -> Problem:
    """A problem between vectors of lengths 5 and 3."""
    own = (Feedforward(size, 6) if used else None for size, used in ((5, F), (3, G)))
    V, U = Euclidean(5), Euclidean(3)
    return Problem(kappa, V, U, *own)


def features(
    universal: bool = True, heads: int = 2, ridges: int = 2, width: int = 4
) -> FeatureCandidates:
    learned, fixed = (ridges, PLAIN_WIDTHS) if universal else (0, ())
    return FeatureCandidates(FeatureGram(5, heads, width, 6, 2, learned, fixed), ridges)


def matern() -> Ridge:
    return Ridge(NoiseUnits(MaternGram()))


def mixed(candidates, preferences: int = 1, **limits: int) -> Ridge:
    return Ridge(candidates, Mixer(candidates.count, preferences), **limits)


def spanned() -> Ridge:
    """With fewer features and landmarks than examples."""
    return mixed(features(width=2), exact=5, landmarks=2)


def images() -> Problem:
    kappa = mixed(LayerCandidates(ConvolutionGram(16, (2, 3), 4, 1)))
    return Problem(kappa, Euclidean(16), Euclidean(3))


def line_readout(**options) -> Readout:
    readout = options.pop("readout", True)
    network = SpectralNetwork(SineModes(5), SineModes(3), 2, 2, 3, 12, **options)
    return Readout(network, readout)


def line(kappa: Kappa, G: bool = False) -> Problem:
    """A problem between functions of one variable."""
    return Problem(kappa, SineModes(5), SineModes(3), G=Feedforward(3, 6) if G else None)


def plane() -> Problem:
    V, U = (FourierModes((2, 2), channels=2) for _ in range(2))
    return Problem(Readout(SpectralNetwork(V, U, 2, 1, 2, 6)), V, U, at=(6, 6))


def mean(kernel: Kappa, d_v: int, d_u: int) -> Mean:
    """B of four random pairs."""
    kappa = Mean(kernel, 4, d_v, d_u)
    for parameter in (kappa.points, kappa.coefficients):
        parameter.data.normal_()
    return kappa


def region(of: Kappa, whole: Callable[[Kappa], Kappa] = lambda kappa: kappa) -> Problem:
    """A problem between fields, with a kernel at places that hold different numbers of points."""
    V = Region(**EUROPE, slopes=True, reach=10.0, block=2)
    kappa = whole(AtPlaces(of, Neighbourhoods(V)))
    return Problem(kappa, V, Region(**EUROPE), at=(3, 4))


def patches(of: Kappa) -> Problem:
    """A problem between fields in 1 x 2 patches."""
    V, U = Patches(2, 5), Patches(2, 3)
    return Problem(AtPlaces(of, PatchGrid()), V, U, at=(2, 4), patches=(1, 2))


def page(*kernels: str) -> list[type]:
    """Classes that docs/extending.md defines."""
    text = (Path(__file__).parent.parent / "docs" / "extending.md").read_text()
    known = {"__name__": "extending"}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M):
        if re.search(r"^class \w+\((Fit|Kappa|Gram|Candidates)\)", block, re.M):
            exec(block, known)
    return [known[name] for name in kernels]


InverseDistance, CosineGram, OneCandidate = page("InverseDistance", "CosineGram", "OneCandidate")


def mixture() -> Mixture:
    kernels = [matern(), mixed(features(), 3), Ridge(OneCandidate(CosineGram()))]
    return Mixture(kernels, Mixer(3, 3))


def readout_mixture() -> Mixture:
    return Mixture([matern(), line_readout(summary=2)], Mixer(2))


CURVES = Sampled(9), Sampled(7)
WITH_NUMBERS = WithParameters(CURVES[0], 2)


def curves(kappa: Kappa, V: Space = CURVES[0]) -> Problem:
    """A problem between functions at 9 and at 7 positions."""
    return Problem(kappa, V, CURVES[1])


def tuned(kind: str, profile: str, V: Space = CURVES[0]) -> TunedRidge:
    return TunedRidge(Comparison(Metric(V, kind), profile))


def scaled(own: int = 0) -> ScaledRidge:
    return ScaledRidge(Scales(Values(4)), own)


def numbers(kappa: Kappa) -> Problem:
    """A problem between four numbers and functions."""
    return Problem(kappa, Values(4), CURVES[1])


def curve_readout() -> CurveReadout:
    return CurveReadout(*CURVES, CurveNetwork(4, 1, 3, 3, 12, 4), 2)


def stack() -> Stack:
    """Two answers, without corrections."""
    kernels = [Constant(), tuned("values", "gaussian"), Gain(*CURVES)]
    return Stack(kernels, (), (), Trust(3, 8, 1), (0, 1, 2), range(3))


FIELDS = SampledFields(5, 6), SampledFields(4, 5)
VECTOR_FIELDS = SampledFields(4, 5, 2), SampledFields(5, 4, 2)


def fields(kappa: Kappa, V: Space = FIELDS[0], U: Space = FIELDS[1]) -> Problem:
    """A problem between fields on two grids."""
    return Problem(kappa, V, U)


def field_window(V: SampledFields, U: SampledFields, carried: bool = False) -> WindowRidge:
    return WindowRidge(V, U, FieldWindow(U, V.channels, carried))


def around(V: SampledFields, U: SampledFields) -> WindowRidge:
    return WindowRidge(V, U, FieldWindow(U, V.channels, periodic=True))


def field_readout(V: SampledFields, U: SampledFields) -> FieldReadout:
    return FieldReadout(V, U, FieldNetwork(4, 1, 2, 6, 4), 1)


def field_stack() -> FieldStack:
    return FieldStack(*FIELDS, field_readout(*FIELDS), Trust(len(OF_FIELDS.known), 8, 1))


def general(V: Space = CURVES[0]) -> GeneralStack:
    return GeneralStack(V, CURVES[1], curve_readout(), Trust(len(CATALOGUE.known), 8, 1))


# Landmarks depend on the examples' order, and refuse masks and many regressions.
SPANNED = CHOOSING - {"masking", "permutation", "many"}
ONE_HEAD = CHOOSING | {"affine"}
WITH_G = EVERY | {"affine", "no residuals"}
SUMMARISED = EVERY | {"fixed residuals"}
FIXED = EXACT - {"gradients"}  # Mean has no trainable parameters
HONEST = EVERY | {"homogeneous", "honest residuals"}
TUNED = HONEST - {"gradients"}  # these kernels have no trainable parameters
SUMMARISING = EVERY | {"positively homogeneous", "honest residuals"}
# Their answers are not affine in u, whose differences of size 1 are then not derivatives.
NESTED = (EVERY - {"weights"}) | {"positively homogeneous", "nested residuals"}
# Powers are bounded by the examples, and so by the one that a refit leaves out.
BOUNDED = (TUNED - {"honest residuals", "export"}) | {"larger residuals"}
SCALED = CHOOSING - {"gradients"}
COMPONENTS = SCALED - {"weights"}
# Chosen by u, exact to first order alone, and solved by a library that ONNX does not have.
IMPLICIT = (EVERY - {"weights", "gradients", "export"}) | {"larger residuals"}
SLOW = {"export"}  # takes two seconds: variants of a kernel that is exported leave it out

CASES = [
    Case(name, make, frozenset(properties))
    for name, make, properties in [
        ("ExpDot", lambda: vectors(ExpDot(5, 3, 2, 4)), AVERAGING - SLOW),
        ("ExpDot with F and G", lambda: vectors(ExpDot(5, 3, 2, 4), F=True, G=True), AVERAGING),
        ("Rbf", lambda: vectors(Rbf(5, 3, 2, 4)), AVERAGING),
        ("L2", lambda: vectors(L2(5, 3, 2, 4)), AVERAGING),
        ("Ridge, Matern", lambda: vectors(matern()), EXACT),
        ("Ridge with F, Matern", lambda: vectors(matern(), F=True), EXACT - SLOW),
        ("Ridge with G, Matern", lambda: vectors(matern(), G=True), WITH_G - SLOW),
        ("Ridge, features", lambda: vectors(mixed(features(), 3)), CHOOSING),
        ("Ridge, not universal", lambda: vectors(mixed(features(False), 3)), CHOOSING - SLOW),
        ("Ridge, one head", lambda: vectors(Ridge(features(False, 1, 1))), ONE_HEAD - SLOW),
        ("Ridge, convolutions", images, CHOOSING),
        ("Ridge, landmarks", lambda: vectors(spanned()), SPANNED),
        ("Readout", lambda: line(line_readout()), EXACT),
        ("Readout, plane", plane, EXACT - SLOW),
        ("Readout with G", lambda: line(line_readout(), G=True), WITH_G - SLOW),
        ("Readout, summary", lambda: line(line_readout(summary=2)), SUMMARISED - SLOW),
        ("Readout, learned once", lambda: line(line_readout(readout=False)), EXACT - SLOW),
        ("Mean", lambda: vectors(mean(matern(), 5, 3)), FIXED),
        ("Mean, places", lambda: region(matern(), lambda k: mean(k, 29, 12)), FIXED - SLOW),
        ("Mixture", lambda: vectors(mixture()), CHOOSING),
        ("Mixture, Readout", lambda: line(readout_mixture()), SUMMARISED),
        ("AtPlaces, ExpDot", lambda: region(ExpDot(29, 4, 2, 4)), AVERAGING - SLOW),
        ("AtPlaces, Matern", lambda: region(matern()), EXACT),
        ("patches, ExpDot", lambda: patches(ExpDot(5, 3, 2, 4)), AVERAGING),
        ("patches, Matern", lambda: patches(matern()), EXACT - SLOW),
        ("patches, features", lambda: patches(mixed(features())), CHOOSING - SLOW),
        ("patches, Readout", lambda: patches(line_readout()), EXACT - SLOW),
        ("patches, Mean", lambda: patches(mean(matern(), 5, 3)), FIXED - SLOW),
        ("Constant", lambda: curves(Constant()), FIXED | {"linear"}),
        ("Gain", lambda: curves(Gain(*CURVES)), FIXED | {"linear"}),
        ("Deviation", lambda: curves(Deviation(*CURVES)), FIXED | {"linear"}),
        ("TunedRidge, linear", lambda: curves(tuned("values", "linear")), TUNED),
        ("TunedRidge, gaussian", lambda: curves(tuned("columns", "gaussian")), TUNED - SLOW),
        ("TunedRidge, matern", lambda: curves(tuned("slopes", "matern")), TUNED - SLOW),
        ("TunedRidge, powers", lambda: curves(tuned("scales", "powers")), BOUNDED),
        ("ScaledRidge", lambda: numbers(scaled()), SCALED),
        ("ScaledRidge, components", lambda: numbers(scaled(2)), COMPONENTS - SLOW),
        ("WindowRidge", lambda: curves(WindowRidge(*CURVES, CurveWindow(CURVES[1], 1))), TUNED),
        (
            "WindowRidge, far",
            lambda: curves(WindowRidge(*CURVES, CurveWindow(CURVES[1], 1, far=True))),
            TUNED - SLOW,
        ),
        ("CurveReadout", lambda: curves(curve_readout()), SUMMARISING),
        ("OfFunctions", lambda: curves(OfFunctions(Gain(*CURVES), CURVES[0]), WITH_NUMBERS), FIXED),
        ("Gain, fields", lambda: fields(Gain(*FIELDS)), (FIXED | {"linear"}) - SLOW),
        (
            "TunedRidge, fields",
            lambda: fields(tuned("smooth", "gaussian", FIELDS[0])),
            TUNED - SLOW,
        ),
        ("WindowRidge, fields", lambda: fields(field_window(*FIELDS)), TUNED - SLOW),
        (
            "WindowRidge, carried fields",
            lambda: fields(field_window(*VECTOR_FIELDS, carried=True), *VECTOR_FIELDS),
            TUNED - SLOW,
        ),
        ("ImplicitLaw", lambda: fields(ImplicitLaw(*FIELDS)), IMPLICIT),
        (
            "PerhapsPeriodic",
            lambda: fields(PerhapsPeriodic(*FIELDS, field_window(*FIELDS), around(*FIELDS))),
            TUNED,
        ),
        (
            "FieldReadout",
            lambda: fields(field_readout(*VECTOR_FIELDS), *VECTOR_FIELDS),
            SUMMARISING,
        ),
        ("FieldStack", lambda: fields(field_stack()), NESTED - SLOW),
        ("FieldStack, exportable", lambda: fields(field_stack().exportable()), NESTED),
        ("Stack", lambda: curves(stack()), HONEST - {"weights"}),
        ("GeneralStack", lambda: curves(general()), NESTED),
        (
            "GeneralStack, parameters",
            lambda: curves(general(WITH_NUMBERS), WITH_NUMBERS),
            NESTED - SLOW,
        ),
        ("docs: InverseDistance", lambda: vectors(InverseDistance(), F=True), AVERAGING),
        ("docs: CosineGram", lambda: vectors(Ridge(OneCandidate(CosineGram()))), EXACT),
    ]
]
