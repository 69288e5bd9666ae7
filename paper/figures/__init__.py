"""The figures of the paper and of the documentation, with those that users draw. Nothing here
touches a model."""

from transduce.figures import COLOURS as COLOURS
from transduce.figures import answers_with_band as answers_with_band
from transduce.figures import drawing as drawing
from transduce.figures import error_against_n as error_against_n
from transduce.figures import prediction_over_truth as prediction_over_truth

from .classes import accuracy_against_n as accuracy_against_n
from .classes import attended as attended
from .classes import reliability as reliability
from .climate import drift as drift
from .climate import error_against as error_against
from .climate import maps as maps
from .curves import PAPER_ERROR as PAPER_ERROR
from .curves import accuracy_against_time as accuracy_against_time
from .curves import error_over_training as error_over_training
from .curves import operators_needed as operators_needed
from .curves import sweep as sweep
from .curves import training_curves as training_curves
from .fields import coefficient_samples as coefficient_samples
from .fields import evolution_to as evolution_to
from .fields import jacobians as jacobians
from .fields import length_scales as length_scales
from .fields import meta_test_rows as meta_test_rows
from .fields import rows_of_predictions as rows_of_predictions
from .fields import state_evolution as state_evolution
from .planes import planes as planes
from .planes import quadrants as quadrants
from .regressions import bands_about as bands_about
from .regressions import errors_of_examples as errors_of_examples
from .regressions import estimate_against_exact as estimate_against_exact
from .regressions import precision_and_recall as precision_and_recall
