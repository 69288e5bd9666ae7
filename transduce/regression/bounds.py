"""How large values may be."""

from __future__ import annotations

import numpy as np

from ..inputs import Pairs
from ..types import TransduceError

LARGEST = 1e140  # values


def check_squares(pairs: Pairs) -> None:
    """Raise if squares of values could overflow."""
    arrays = {"v": pairs.v.array, "u": pairs.u.array, "parameters": pairs.parameters}
    for name, values in arrays.items():
        if values is not None and (largest := np.abs(values).max()) > LARGEST:
            raise TransduceError(
                f"{name} is up to {largest:.1g}; expected at most {LARGEST:g}, so that squares do "
                f"not overflow. Give {name} in larger units."
            )
