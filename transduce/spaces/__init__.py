"""How a function becomes a vector, and back: encode: f -> c, decode: c -> f.

A function of one channel has shape (..., *grid), one of several (..., channels, *grid),
coefficients (..., size)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..types import TransduceError
from .base import Space as Space
from .fourier import FourierModes as FourierModes
from .gridded import Gridded as Gridded
from .gridded import Resample as Resample
from .modes import Modes as Modes
from .padded import Padded as Padded
from .patches import Patches as Patches
from .region import Region as Region
from .region import regions as regions
from .sampled import Sampled as Sampled
from .sampled import Values as Values
from .sampled import WithParameters as WithParameters
from .sampled_fields import SampledFields as SampledFields
from .sine import SineModes as SineModes
from .values import BranchTrunk as BranchTrunk
from .values import Euclidean as Euclidean

SPACES: dict[str, type[Space]] = {
    space.__name__: space
    for space in (
        SineModes,
        FourierModes,
        BranchTrunk,
        Euclidean,
        Patches,
        Region,
        Padded,
        Sampled,
        SampledFields,
        Values,
        WithParameters,
    )
}


def space_from_config(config: Mapping[str, Any]) -> Space:
    """The space that `config` describes; spaces inside it are described likewise."""
    options = {
        key: space_from_config(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if key != "space"
    }
    if config.get("space") not in SPACES:
        raise TransduceError(
            f"the space {config.get('space')!r} is not known; expected one of "
            f"{', '.join(SPACES)}. Add your own to transduce.spaces.SPACES."
        )
    return SPACES[config["space"]](**options)
