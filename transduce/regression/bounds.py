"""How large values may be."""

from __future__ import annotations

import numpy as np

from ..inputs import Pairs
from ..types import TransduceError

LARGEST, LEAST = 1e140, 1e-140  # values whose squares are numbers


def check_squares(pairs: Pairs) -> None:
    """Raise if squares of values could overflow, or vanish."""
    arrays = {"v": pairs.v.array, "u": pairs.u.array, "parameters": pairs.parameters}
    for name, values in arrays.items():
        if values is None:
            continue
        largest = np.abs(values).max()
        if 0 < largest < LEAST:
            raise TransduceError(
                f"{name} is at most {largest:.1g}; expected {LEAST:g} or more, so that squares do "
                f"not vanish. Give {name} in smaller units."
            )
        if largest > LARGEST:
            raise TransduceError(
                f"{name} is up to {largest:.1g}; expected at most {LARGEST:g}, so that squares do "
                f"not overflow. Give {name} in larger units."
            )
