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
from ..inputs import Functions, Grid, Layout, Pairs
from ..inputs.templates import Template
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
    about: dict[str, object] = {
        "model": O.model,
        "notes": list(pairs.notes),
        "channels": pairs.channels,
        "units": pairs.units,
    }
    for name in ("v", "u"):
        layout = getattr(pairs, name).layout
        about[name] = _described(layout)
        if layout.grid is not None:
            arrays[f"x_{name}"] = torch.from_numpy(np.ascontiguousarray(layout.grid.unit))
    with replacing(path) as temporary:
        temporary.write_bytes(serialise(arrays, {KIND: json.dumps(about)}))


def _described(layout: Layout) -> dict[str, object]:
    """A layout as JSON. Positions of dates are written as seconds since the first."""
    names = ("kind", "shape", "channels", "points")
    about: dict[str, object] = {name: getattr(layout, name) for name in names}
    grid = layout.grid
    if grid is not None:
        first = grid.origin
        origin = float(first) if isinstance(first, int | float | np.number) else 0.0
        about |= {"origin": origin, "span": grid.span, "flipped": grid.flipped, "given": grid.given}
    return about


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
    try:
        pairs = _pairs(arrays, about)
    except (KeyError, TypeError, ValueError) as error:
        raise TransduceError(
            f"{path} holds a regression of another version ({error!r}). Regress again and save."
        ) from None
    return RegressedOperator(pairs, about["model"])


def _pairs(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Pairs:
    """The examples as they were read; they answer in numpy arrays."""
    v, u = (_functions(arrays[name], arrays.get(f"x_{name}"), about[name]) for name in ("v", "u"))
    given = {name: arrays.get(name) for name in ("parameters", "groups")}
    rows, notes = np.arange(len(v)), tuple(about["notes"])
    units = tuple(about.get("units", (1.0, 1.0)))
    return Pairs(v, u, **given, rows=rows, notes=notes, channels=about["channels"], units=units)


def _functions(values: np.ndarray, unit: np.ndarray | None, about: dict[str, Any]) -> Functions:
    layout = Layout(about["kind"], tuple(about["shape"]), about["channels"], about["points"])
    if unit is not None:
        origin, span, flipped = about["origin"], about["span"], about["flipped"]
        x = origin + span * (unit[::-1] if flipped else unit)
        layout = replace(layout, grid=Grid(x, unit, flipped, origin, span, about["given"]))
    return Functions(values, layout, Template())
