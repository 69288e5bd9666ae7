"""The source repository around this package, if there is one: its `paper` package holds the
experiments, their recipes and the weights that only readers of the paper need.

`transduce` never imports `paper` by name. It asks here, at run time, and only the `paper` folder
next to this `transduce` folder counts: an unrelated package of that name is not taken for it."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from .types import TransduceError

ROOT = Path(__file__).parents[1]
EXPERIMENTS = ("adr", "burgers", "climate", "images")
RECIPES = ("adr-softmax", "burgers-softmax", "images-softmax", "climate-europe")
WEIGHTS = ("adr-softmax", "burgers-softmax", "images-softmax")


def folder() -> Path | None:
    """The folder of the `paper` package, or None without the source repository."""
    found = ROOT / "paper"
    return found if (found / "__init__.py").is_file() else None


def module(name: str, needed_for: str) -> ModuleType:
    """A module of the `paper` package.

    Args:
        name: such as "recipes"; "" for the package itself.
        needed_for: what an error says is missing without the repository.
    """
    home = folder()
    if home is None:
        raise missing(needed_for)
    imported = sys.modules.get("paper")
    if imported is None and not _is_at(find_spec("paper"), home):
        _load(home)
    if imported is not None and not _is_at(imported.__spec__, home):
        raise TransduceError(
            f"{needed_for} needs the package paper in {home}, but another package of that name is "
            f"imported already, from {imported.__file__}. Start a process that does not import it."
        )
    return import_module(f"paper.{name}" if name else "paper")


def missing(what: str, part: str = "paper") -> TransduceError:
    """The error that something needs a folder of the source repository."""
    return TransduceError(
        f"{what} is not part of the installed package, but of the source repository, in its folder "
        f"{part}/. Clone the repository of transduce and run `pip install -e .` in it."
    )


def _is_at(spec: ModuleSpec | None, home: Path) -> bool:
    return spec is not None and spec.origin is not None and Path(spec.origin).parent == home


def _load(home: Path) -> None:
    """Import the package from its folder, which is not on the path or comes after another."""
    spec = spec_from_file_location(
        "paper", home / "__init__.py", submodule_search_locations=[str(home)]
    )
    assert spec is not None and spec.loader is not None
    sys.modules["paper"] = loaded = module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except BaseException:
        del sys.modules["paper"]
        raise
