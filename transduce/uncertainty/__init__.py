"""What an instant regressor is good for: to regress thousands of times."""

from .bootstrap import bootstrap as bootstrap
from .classes import class_probabilities as class_probabilities
from .conformal import conformal as conformal
from .datasets import DatasetPosterior as DatasetPosterior
from .datasets import dataset_posterior as dataset_posterior
from .influence import influence as influence
from .inversion import GaussianPrior as GaussianPrior
from .inversion import Inversion as Inversion
from .inversion import errors_of as errors_of
from .inversion import invert as invert
from .many import Regressions as Regressions
from .many import half_splits as half_splits
from .many import many_regressions as many_regressions
from .outliers import Outliers as Outliers
from .outliers import outlier_scores as outlier_scores
