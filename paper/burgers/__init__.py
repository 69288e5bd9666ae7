"""Section 5.2 of the paper and its supplement: Burgers' equation in two dimensions, and what
thousands of regressions find."""

from . import accuracy, bands, fields, outliers, parts, resolution, sizes, viscosity
from .setting import FULL as FULL
from .setting import QUICK as QUICK
from .setting import identities as identities

PARTS = (
    accuracy.PART,
    accuracy.FITTED_PART,
    sizes.PART,
    viscosity.PART,
    resolution.PART,
    fields.PART,
    parts.PART,
    outliers.PART,
    bands.PART,
)
