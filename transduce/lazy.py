"""Packages whose names are imported when they are first used (PEP 562).

    CONTENTS = {"transducer": ["Transducer"]}        # module: its public names
    __getattr__, __dir__, __all__ = lazy.names(__name__, CONTENTS)

The package repeats the table as imports under `if TYPE_CHECKING`, for type checkers and editors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec

Contents = Mapping[str, Sequence[str]]


def names(
    package: str, contents: Contents, modules: Sequence[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    Args:
        package: its name.
        contents: for each module, the public names to import from it.
        modules: modules that are public names themselves. The others can be reached as attributes
            too, but are not listed.
    """
    home = {name: module for module, listed in contents.items() for name in listed}

    def get(name: str) -> object:
        if name in home:
            value = getattr(import_module(f"{package}.{home[name]}"), name)
            setattr(sys.modules[package], name, value)  # so that the next use costs nothing
            return value
        if not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    public = [*modules, *home]
    return get, lambda: sorted({*public, *vars(sys.modules[package])}), public
