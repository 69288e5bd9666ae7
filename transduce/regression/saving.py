"""Regressions in files: the examples and the model's name, in safetensors. No pickle is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise

from ..files import PathLike, replacing
from ..inputs import Pairs, read_pairs
from ..storage import check_writable
from ..types import TransduceError
from .engines import as_tensor

if TYPE_CHECKING:
    from .operator import RegressedOperator

KIND = "transduce.regression"


def save(O: RegressedOperator, path: Path, force: bool) -> None:
    """Write a regression atomically."""
    check_writable(path, force, (".safetensors",))
    pairs = O.pairs
    arrays: dict[str, torch.Tensor] = {
        name: as_tensor(getattr(pairs, name).values).detach().contiguous() for name in ("v", "u")
    }
    for name in ("parameters", "groups"):
        value = getattr(pairs, name)
        if value is not None:
            arrays[name] = torch.from_numpy(np.ascontiguousarray(value))
    about: dict[str, object] = {"model": O.model, "notes": list(pairs.notes)}
    for name in ("v", "u"):
        layout = getattr(pairs, name).layout
        about[name] = {"shape": list(layout.shape), "channels": layout.channels}
        if layout.grid is not None:
            arrays[f"x_{name}"] = torch.from_numpy(np.ascontiguousarray(np.sort(layout.grid.unit)))
            about[name] |= {  # type: ignore[operator]
                "origin": _number(layout.grid.origin),
                "span": float(layout.grid.span),
                "flipped": bool(layout.grid.flipped),
            }
    with replacing(path) as temporary:
        temporary.write_bytes(serialise(arrays, {KIND: json.dumps(about)}))


def _number(origin: object) -> float:
    """The first position; 0 for dates, whose positions are then seconds since the first."""
    return float(origin) if isinstance(origin, int | float | np.number) else 0.0


def load(path: PathLike) -> RegressedOperator:
    """The regression in a .safetensors file that `O.save` wrote."""
    from .operator import RegressedOperator

    path = Path(path)
    if not path.exists():
        raise TransduceError(f"there is no file {path}; expected one that O.save wrote.")
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get(KIND, "null"))
            arrays = {key: file.get_tensor(key).numpy() for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise TransduceError(
            f"{path} is not a safetensors file, or is truncated ({error}). Give one that O.save "
            "wrote."
        ) from None
    if not isinstance(about, dict) or not {"v", "u"} <= set(arrays):
        raise TransduceError(
            f"{path} holds no regression. Give a file that O.save wrote; weights load with "
            "Transducer.from_pretrained."
        )
    return RegressedOperator(_pairs(arrays, about), about["model"])


def _pairs(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Pairs:
    """The examples as they were read."""
    given: dict[str, np.ndarray] = {}
    for name in ("v", "u"):
        described, values = about[name], arrays[name]
        if f"x_{name}" in arrays:
            x = described["origin"] + described["span"] * arrays[f"x_{name}"]
            if described["flipped"]:
                values, x = values[..., ::-1], x[::-1]
            given[f"x_{name}"] = x
        given[name] = values.reshape(len(values), *map(int, described["shape"]))
    several = any(about[name]["channels"] > 1 for name in ("v", "u"))
    pairs = read_pairs(
        given["v"],
        given["u"],
        x_v=given.get("x_v"),
        x_u=given.get("x_u"),
        channels=True if several else None,
        parameters=arrays.get("parameters"),
        groups=arrays.get("groups"),
    )
    return replace(pairs, notes=tuple(about["notes"]))
