"""How a function becomes a vector, and back: encode: f -> c, decode: c -> f.

A function of one channel has shape (..., *grid), one of several (..., channels, *grid),
coefficients (..., size)."""

from __future__ import annotations

from typing import Any

from .base import Space as Space
from .modes import FourierModes as FourierModes
from .modes import Modes as Modes
from .modes import SineModes as SineModes
from .patches import Patches as Patches
from .region import Region as Region
from .values import BranchTrunk as BranchTrunk
from .values import Euclidean as Euclidean

SPACES: dict[str, type[Space]] = {
    space.__name__: space
    for space in (SineModes, FourierModes, BranchTrunk, Euclidean, Patches, Region)
}


def space_from_config(config: dict[str, Any]) -> Space:
    """The space that `config` describes."""
    options = dict(config)
    return SPACES[options.pop("space")](**options)
