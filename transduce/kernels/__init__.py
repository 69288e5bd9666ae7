"""Kernels kappa between functions.

Averaging: `ExpDot`, `Rbf` and `L2`, the paper's. Solving in closed form: `Ridge` over a `Gram`, and
`Readout` over a network's channels. `Mean` is a fixed mean function. `Mixture` and `AtPlaces`
combine kernels.
"""

from .attention import ATTENTION as ATTENTION
from .attention import L2 as L2
from .attention import Attention as Attention
from .attention import ExpDot as ExpDot
from .attention import Rbf as Rbf
from .candidate_kinds import PLAIN_WIDTHS as PLAIN_WIDTHS
from .candidate_kinds import FeatureCandidates as FeatureCandidates
from .candidate_kinds import LayerCandidates as LayerCandidates
from .candidate_kinds import NoiseUnits as NoiseUnits
from .candidates import Candidates as Candidates
from .curve_network import CurveNetwork as CurveNetwork
from .curve_readout import CurveReadout as CurveReadout
from .field_network import FieldNetwork as FieldNetwork
from .field_readout import FieldReadout as FieldReadout
from .general import GeneralStack as GeneralStack
from .general_fields import FieldStack as FieldStack
from .grams import ConvolutionGram as ConvolutionGram
from .grams import FeatureGram as FeatureGram
from .grams import Gram as Gram
from .grams import MaternGram as MaternGram
from .grams import Points as Points
from .grams import ProductGram as ProductGram
from .kappa import Answer as Answer
from .kappa import Fit as Fit
from .kappa import Kappa as Kappa
from .kappa import Reading as Reading
from .mean import Mean as Mean
from .mixer import Mixer as Mixer
from .mixture import Mixture as Mixture
from .network import SpectralNetwork as SpectralNetwork
from .places import AtPlaces as AtPlaces
from .places import Neighbourhoods as Neighbourhoods
from .places import PatchGrid as PatchGrid
from .places import Places as Places
from .readout import Readout as Readout
from .ridge import Ridge as Ridge
from .stack import Stack as Stack
from .trust import Trust as Trust
