"""Settings under stable names: what a committed result holds for, as JSON.

    describe(value) = {"kind": name, setting: value, ...}

with only the settings that differ from the defaults that the kind had when it was registered. So
a new field with a default changes no description, a default that changes does, and the repr of a
class is never part of one. A kind is registered once, by the package whose results name it:

>>> register("fno", Fno, modes=16, width=64)
>>> describe(Fno(width=32))
{'kind': 'fno', 'width': 32}
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path

import numpy as np

from .types import TransduceError

Json = None | bool | int | float | str | Sequence[object] | Mapping[str, object]


@dataclass(frozen=True)
class Kind:
    """What `register` was given."""

    name: str
    defaults: Mapping[str, object]
    values: Callable[[object], Mapping[str, object]]


_KINDS: dict[type, Kind] = {}


def register(
    name: str,
    kind: type,
    values: Callable[..., Mapping[str, object]] | None = None,
    /,
    **defaults: object,
) -> None:
    """Give a class its stable name.

    Args:
        name: what descriptions call it, whatever the class is called.
        kind: the class. Subclasses need a name of their own.
        values: gives the settings of an instance; default: the fields of a dataclass.
        defaults: settings that descriptions leave out when they have these values. A field that
            is not among them is left out when it has the default of the dataclass.
    """
    if values is None and not is_dataclass(kind):
        raise TransduceError(
            f"{kind.__name__} is no dataclass; expected `values`, a function of an instance that "
            "gives its settings."
        )
    own = dict(_field_defaults(kind)) if values is None else {}
    _KINDS[kind] = Kind(name, own | defaults, values or _field_values)


def describe(value: object) -> Json:
    """A value as JSON, registered classes by name with the settings that differ from their
    defaults."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if type(value) in _KINDS:
        return _of_kind(value, _KINDS[type(value)])
    if hasattr(value, "get_params"):
        return _of_estimator(value)
    raise TransduceError(
        f"{type(value).__name__} has no stable name, so no result can say that it holds for it; "
        "expected JSON values or registered classes. Call settings.register(name, "
        f"{type(value).__name__})."
    )


def weights_identity(sha256: str) -> Json:
    """What a result of trained weights holds for: the SHA-256 of their file."""
    return {"kind": "weights", "sha256": sha256}


def _of_kind(value: object, kind: Kind) -> Json:
    found: dict[str, Json] = {"kind": kind.name}
    for name, item in kind.values(value).items():
        described = describe(item)
        if name not in kind.defaults or not _equal(described, describe(kind.defaults[name])):
            found[name] = described
    return found


def _of_estimator(value: object) -> Json:
    """An estimator or kernel of scikit-learn by its public name, with the parameters that are
    set."""
    signature = inspect.signature(type(value)).parameters
    found: dict[str, Json] = {"kind": type(value).__name__}
    for name, item in sorted(value.get_params(deep=False).items()):  # type: ignore[attr-defined]
        described, default = describe(item), signature[name].default
        if default is inspect.Parameter.empty or not _equal(described, describe(default)):
            found[name] = described
    return found


def _equal(one: Json, other: Json) -> bool:
    """Whether two values are the same in JSON, where NaN is NaN."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _field_defaults(kind: type) -> Iterator[tuple[str, object]]:
    for field in fields(kind):
        if field.default is not MISSING:
            yield field.name, field.default
        elif field.default_factory is not MISSING:
            yield field.name, field.default_factory()


def _field_values(value: object) -> dict[str, object]:
    """The fields of a dataclass that make two instances differ."""
    return {
        field.name: getattr(value, field.name)
        for field in fields(value)  # type: ignore[arg-type]
        if field.init and field.compare
    }
