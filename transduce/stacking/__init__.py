"""Learning how far to trust each answer of a stack, from tasks whose true answers are known."""

from .fitting import TrustTraining as TrustTraining
from .fitting import fit_trust as fit_trust
from .fitting import ratio_to_best as ratio_to_best
from .grids import OnCurveGrids as OnCurveGrids
from .grids import OnFieldGrids as OnFieldGrids
from .records import Records as Records
from .records import collect as collect
