"""Section 5.1 of the paper and its supplement: advection-diffusion-reaction operators, one file a
table or figure."""

from . import (
    costs,
    depth,
    discretisation,
    extrapolation,
    fields,
    kernels,
    operators,
    resolution,
    samples,
    sizes,
    spectrum,
)
from .setting import FULL as FULL
from .setting import QUICK as QUICK
from .setting import identities as identities

PARTS = (
    samples.PART,
    sizes.PART,
    costs.PART,
    fields.PART,
    extrapolation.PART,
    resolution.PART,
    spectrum.PART,
    depth.PART,
    kernels.PART,
    discretisation.PART,
    operators.PART,
    discretisation.PAPERS_OWN_PART,
)
