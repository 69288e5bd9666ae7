"""Regressors by name: a baseline, a bundled model, or the model in a file."""

from __future__ import annotations

from functools import lru_cache

from .. import weights
from ..baselines import BASELINES, baseline
from ..inputs import Pairs
from ..transducer import Transducer
from ..types import Regressor, TransduceError

GENERAL, FIELDS = "general", "general-fields"


@lru_cache(maxsize=8)
def pretrained(name: str) -> Transducer:
    """A bundled model, loaded once."""
    return Transducer.from_pretrained(name)


def weights_for(model: str, pairs: Pairs) -> str:
    """The name of the weights of a model: "general" is the general model for the shapes given."""
    fields = bool(pairs.v.layout.axes and pairs.u.layout.axes)
    return FIELDS if model == GENERAL and fields and FIELDS in weights.names() else model


def suited(name: str, regressor: Regressor, pairs: Pairs) -> Regressor:
    """The regressor, or the general model for the shapes given if that is meant and another one."""
    own = weights_for(name, pairs)
    return regressor if own == name else pretrained(own)


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
