"""Domains: one module for each kind of data that models regress.

A domain reads examples and queries from files, checks that they fit a model, and writes the
answers. A model's card names its domain. Code above this package, such as the command line, asks
`of(T)` and names no domain itself.

    T, d = opened("general")
    examples = d.read_examples(T, "pairs.npz")
    queries = d.read_queries(T, "v.npz", examples)
    d.write("u.npz", d.answer(d.regress(T, examples), queries))

Importing this package is cheap: a domain's module is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .base import Domain as Domain
from .base import Queries as Queries
from .base import Request as Request

if TYPE_CHECKING:
    from ..transducer import Transducer
    from ..types import Regressor

# Domains by name. Each is `DOMAIN` in the module of its name; the text says what files it reads.
READS = {
    "curves": "v and u of shape (n, points), (n, channels, points) or (n, numbers) in any "
    "format (.npz, .nc, .h5, .zarr, .csv, .mat, .npy, .parquet, .rda), and, if wanted, positions "
    "x, or x_v and x_u, in any units, and parameters",
    "functions": "v and u of shape (n, *grid) in the same formats",
    "images": "v (n, pixels) from 0 to 1 and u (n, classes) one-hot, in the same formats",
    "climate": "temperature and pressure in NetCDF or Zarr, one file or more, as t.nc,msl.nc",
}


def domain(name: str) -> Domain:
    """The domain of this name."""
    if name not in READS:
        raise _error(f"no domain is called {name!r}; known: {', '.join(READS)}. Name one of these.")
    found: Domain = import_module(f".{name}", __name__).DOMAIN
    return found


def opened(model: str) -> tuple[Regressor, Domain]:
    """The regressor of a name and its domain. Baselines regress curves.

    Args:
        model: a bundled model, a baseline, or a .safetensors file.
    """
    from ..baselines import BASELINES, baseline
    from ..transducer import Transducer

    if model in BASELINES:
        return baseline(model), domain("curves")
    T = Transducer.from_pretrained(model)
    return T, of(T)


def of(T: Transducer) -> Domain:
    """The domain of a model: the one that its card names. Cards of earlier versions name none;
    `legacy.domain_of` infers it from them."""
    from ..legacy import domain_of

    name = T.card.get("domain") or domain_of(T.card)
    if name not in READS:
        raise _error(
            f"the model's card names the domain {name!r}; expected one of {', '.join(READS)}. "
            "Update transduce, or give other weights."
        )
    return domain(name)


def reads() -> str:
    """One line on the files that each domain reads, for help texts."""
    return "; ".join(f"{name}: {what}" for name, what in READS.items()) + "."


def _error(message: str) -> ValueError:
    from ..types import TransduceError

    return TransduceError(message)
