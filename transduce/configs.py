"""Parts of a model as JSON, and back.

A `Part` keeps the arguments of its constructor as attributes of the same names. So its class and
these attributes describe it, and a new kind of part needs no code to be saved and loaded. A part
that is used twice is described once: further uses refer to it by number, which is how tied weights
stay tied.

>>> describe(Feedforward(12, 64))
{'part': 'Feedforward', 'd': 12, 'hidden': 64}
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor, nn

from .spaces import Space, space_from_config
from .types import Json, TransduceError

Config: TypeAlias = dict[str, Json]

PARTS: dict[str, type[Part]] = {}


class Part(nn.Module):
    """A module that can be described. Subclasses register under their name when they are defined,
    and keep every argument of `__init__` as an attribute of the same name."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        known = PARTS.get(cls.__name__, cls)
        if known in cls.__mro__[1:]:  # torch.export wraps parts in subclasses of the same name
            return
        if known.__module__ != cls.__module__:
            raise TransduceError(
                f"{cls.__module__} defines a part {cls.__name__}, which {known.__module__} has "
                "already; expected names of their own. Rename it."
            )
        PARTS[cls.__name__] = cls


def describe(value: object) -> Json:
    """A part, a space, or lists of these, as JSON that `build` reads."""
    return _describe(value, {})


def _describe(value: object, seen: dict[int, int]) -> Json:
    if isinstance(value, Part):
        if id(value) in seen:
            return {"again": seen[id(value)]}
        seen[id(value)] = len(seen)
        names = arguments(type(value))
        missing = [name for name in names if not hasattr(value, name)]
        if missing:
            raise TransduceError(
                f"{type(value).__name__} does not keep its arguments {', '.join(missing)}; "
                "expected attributes of the same names. Assign them in __init__."
            )
        options = {name: _describe(getattr(value, name), seen) for name in names}
        return {"part": type(value).__name__, **options}
    if isinstance(value, Space):
        return _described_space(value)
    if isinstance(value, list | tuple | nn.ModuleList):
        return [_describe(item, seen) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TransduceError(
        f"a model holds a {type(value).__name__}, which cannot be described; expected parts, "
        "spaces, numbers and texts. Derive its class from transduce.configs.Part."
    )


def _described_space(space: Space) -> Json:
    config = space.config()
    if config.get("space") != type(space).__name__:
        raise TransduceError(
            f"a {type(space).__name__} describes itself as {config.get('space')!r}; expected its "
            "own name. Override `config`, and add the class to transduce.spaces.SPACES."
        )
    return config


def arguments(make: Callable[..., object]) -> list[str]:
    """The names of the arguments of a part's constructor, or of a builder."""
    known = inspect.signature(make).parameters.values()
    return [option.name for option in known if option.kind is option.POSITIONAL_OR_KEYWORD]


def build(config: Json) -> object:
    """What `describe` described, with new weights. Lists come back as tuples."""
    return _build(config, [])


def _build(config: Json, built: list[Part | None]) -> object:
    if isinstance(config, list):
        return tuple(_build(item, built) for item in config)
    if not isinstance(config, dict):
        return config
    if "space" in config:
        return space_from_config(config)
    if "again" in config:
        return _built_before(config["again"], built)
    name, place = config.get("part"), len(built)
    if not isinstance(name, str) or name not in PARTS:
        raise TransduceError(
            f"the model has a part {name!r}, which is not defined; expected one of "
            f"{', '.join(sorted(PARTS))}. Import the module that defines it first."
        )
    built.append(None)
    options = {key: _build(value, built) for key, value in config.items() if key != "part"}
    check_options(PARTS[name], f"the part {name}", options)
    part = PARTS[name](**options)
    built[place] = part
    return part


def check_options(make: Callable[..., object], name: str, options: Mapping[str, object]) -> None:
    """Raise if a constructor or builder does not take these options."""
    try:
        inspect.signature(make).bind(**options)
    except TypeError as error:
        raise TransduceError(
            f"{name} has other options: {error}; expected {', '.join(arguments(make)) or 'none'}. "
            "Give those."
        ) from None


def _built_before(again: Json, built: list[Part | None]) -> Part:
    """The part of this number, which must be complete."""
    part = built[again] if isinstance(again, int) and 0 <= again < len(built) else None
    if part is None:
        raise TransduceError(
            f"a part refers to part {again}; expected one of {len(built)} before it."
        )
    return part


def load_tensors(module: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Copy tensors into the parameters of a module, which must match them in names and shapes."""
    parameters = dict(module.named_parameters())
    shapes = ({key: value.shape for key, value in of.items()} for of in (parameters, tensors))
    if next(shapes) != next(shapes):
        raise TransduceError(
            f"the tensors in {source} are not those of the model on its card. Give weights that "
            "transduce wrote."
        )
    with torch.no_grad():
        for key, value in parameters.items():
            value.copy_(tensors[key])
