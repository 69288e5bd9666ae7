"""Rows and arrays -> figures, as .png and .svg. Nothing here touches a model.

Needs matplotlib: pip install 'transduce[figures]'."""

from ..files import pip_install
from ..types import TransduceError

try:
    import matplotlib  # noqa: F401
except ImportError:
    raise TransduceError(
        "figures are drawn by matplotlib, which is not installed. Install it: "
        f"{pip_install('figures')}"
    ) from None

from .curves import error_against_n as error_against_n
from .fields import prediction_over_truth as prediction_over_truth
from .regressed import answers_with_band as answers_with_band
from .sensitivity import sensitivity as sensitivity
from .style import COLOURS as COLOURS
from .style import drawing as drawing
