"""The bundled models, each loaded once."""

from __future__ import annotations

from functools import cache

from ..transducer import Transducer


@cache
def model(name: str) -> Transducer:
    return Transducer.from_pretrained(name)
