"""Models whose cards name the domain of their data."""

from __future__ import annotations

from ..layer import Layer
from ..spaces import Space
from ..transducer import Transducer


def of_domain(domain: str, V: Space, U: Space, layer: Layer) -> Transducer:
    """A model whose card names its domain."""
    T = Transducer(V, U, [layer])
    T.card["domain"] = domain
    return T
