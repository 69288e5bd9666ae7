"""Models that only the paper's experiments use, and how they start.

Importing this package adds its builders to `transduce.models.BUILDERS`.
"""

from .builders import descent_softmax as descent_softmax
from .builders import mirrored_rbf as mirrored_rbf
from .builders import patches as patches
from .builders import spectral_representer as spectral_representer
from .memory import remember as remember
