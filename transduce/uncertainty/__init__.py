"""What an instant regressor is good for: regress thousands of times."""

from .many import Regressions as Regressions
from .many import half_splits as half_splits
from .many import many_regressions as many_regressions
from .outliers import Outliers as Outliers
from .outliers import outlier_scores as outlier_scores
