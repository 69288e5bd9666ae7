"""Arrays within JSON, both ways: {"shape": [...], "data": base64 of the bytes of 32-bit floats,
little-endian}."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field

from ..types import Array, TransduceError

FLOAT = np.dtype("<f4")
SIDES = 4  # the most axes of an array


class Packed(BaseModel):
    """An array as the page sends it."""

    shape: Annotated[
        list[Annotated[int, Field(ge=1, le=10_000)]], Field(min_length=1, max_length=SIDES)
    ]
    data: str

    def unpacked(self, name: str) -> np.ndarray:
        """The array, of finite numbers; `name` is for error messages."""
        try:
            content = base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise TransduceError(
                f"{name} is not base64; expected the bytes of 32-bit floats in it."
            ) from None
        if len(content) != FLOAT.itemsize * math.prod(self.shape):
            raise TransduceError(
                f"{name} holds {len(content)} bytes; expected {FLOAT.itemsize} for each number of "
                f"shape {self.shape}."
            )
        array = np.frombuffer(content, FLOAT).reshape(self.shape)
        if not np.isfinite(array).all():
            raise TransduceError(f"{name} holds values that are not finite; expected numbers.")
        return array.astype(np.float32)


def packed(array: Array) -> dict[str, object]:
    """An array as the page reads it."""
    values = np.asarray(array, dtype=FLOAT)
    return {"shape": list(values.shape), "data": base64.b64encode(values.tobytes()).decode()}
