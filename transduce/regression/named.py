"""Regressors by name: a baseline, a bundled model, or the model in a file."""

from __future__ import annotations

from functools import lru_cache

from .. import weights
from ..baselines import BASELINES, baseline
from ..transducer import Transducer
from ..types import Regressor, TransduceError


@lru_cache(maxsize=8)
def pretrained(name: str) -> Transducer:
    """A bundled model, loaded once."""
    return Transducer.from_pretrained(name)


def regressor_for(name: str) -> Regressor:
    """A baseline, a bundled model, or the model in a file."""
    if name in BASELINES:
        return baseline(name)
    if name.endswith(".safetensors"):
        return Transducer.from_pretrained(name)
    if name not in weights.names():
        raise TransduceError(
            f"no model is called {name!r}; expected one of {', '.join(weights.names())}, a "
            f".safetensors file, or a baseline: {', '.join(BASELINES)}."
        )
    return pretrained(name)
