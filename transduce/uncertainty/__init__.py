"""What an instant regressor is good for: to regress thousands of times."""

from .bootstrap import bootstrap as bootstrap
from .conformal import conformal as conformal
from .influence import influence as influence
from .many import Regressions as Regressions
from .many import half_splits as half_splits
from .many import many_regressions as many_regressions
from .outliers import Outliers as Outliers
from .outliers import outlier_scores as outlier_scores
