"""Section 5.3 of the paper: pressure from temperature, conditioned on the days of a context."""

from transduce.settings import Json

from . import accuracy, contexts, costs, drift, lags, maps, places, regions, setting
from .setting import FULL as FULL
from .setting import QUICK as QUICK

PARTS = (
    accuracy.PART,
    contexts.PART,
    contexts.SIZES_PART,
    lags.PART,
    regions.PART,
    maps.PART,
    drift.PART,
    costs.PART,
)


def identities() -> dict[str, Json]:
    """Of all regressors that the experiment measures."""
    return setting.identities() | places.identities()
