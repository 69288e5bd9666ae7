"""Section 5.4 of the paper: functions from images to ten classes, regressed from a hundred labelled
examples."""

from . import accuracy, attention, calibration, costs, parts
from .setting import FULL as FULL
from .setting import QUICK as QUICK
from .setting import identities as identities

PARTS = (
    accuracy.PART,
    accuracy.SIZES_PART,
    calibration.PART,
    costs.PART,
    parts.PART,
    attention.PART,
)
