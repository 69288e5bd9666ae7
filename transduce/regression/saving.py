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
from ..inputs import Functions, Grid, Groups, Layout, Pairs
from ..inputs.dates import from_json, to_json
from ..inputs.templates import Template
from ..storage import check_writable
from ..types import TransduceError
from .shapes import as_tensor

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
    about: dict[str, object] = {
        "model": O.model,
        "notes": list(pairs.notes),
        "channels": pairs.channels,
        "units": pairs.units,
        "parameter_names": pairs.parameter_names,
        "levels": dict(pairs.levels),
        "stated": dict(pairs.stated),
    }
    others = {"parameters": pairs.parameters}
    if pairs.groups is not None:
        others["groups"], about["labels"] = pairs.groups.codes, pairs.groups.labels
    for name in ("v", "u"):
        layout = getattr(pairs, name).layout
        about[name] = _described(layout)
        if layout.grid is not None:
            others[f"x_{name}"] = layout.grid.unit
    for name, value in others.items():
        if value is not None:
            arrays[name] = torch.from_numpy(np.ascontiguousarray(value))
    with replacing(path) as temporary:
        temporary.write_bytes(serialise(arrays, {KIND: json.dumps(about)}))


def _described(layout: Layout) -> dict[str, object]:
    """A layout as JSON."""
    names = ("kind", "shape", "channels", "points", "names", "axes")
    about: dict[str, object] = {name: getattr(layout, name) for name in names}
    grid = layout.grid
    if grid is not None:
        dates = to_json(grid.x)
        numeric = grid.x.dtype.kind in "fi"
        origin = float(grid.x[-1 if grid.flipped else 0]) if numeric else 0.0
        about |= {"origin": origin, "span": grid.span, "flipped": grid.flipped, "given": grid.given}
        about |= {} if dates is None else {"dates": dates}
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
    groups, codes = None, arrays.get("groups")
    if codes is not None:
        groups = Groups(codes, tuple(about.get("labels", range(int(codes.max()) + 1))))
    return Pairs(
        v,
        u,
        parameters=arrays.get("parameters"),
        groups=groups,
        rows=np.arange(len(v)),
        notes=tuple(about["notes"]),
        channels=about["channels"],
        units=tuple(about.get("units", (1.0, 1.0))),
        parameter_names=tuple(about.get("parameter_names", ())),
        levels={name: tuple(levels) for name, levels in about.get("levels", {}).items()},
        stated=about.get("stated", {}),
    )


def _functions(values: np.ndarray, unit: np.ndarray | None, about: dict[str, Any]) -> Functions:
    shape, names = tuple(about["shape"]), tuple(about.get("names", ()))
    axes = tuple(about.get("axes", ()))
    layout = Layout(
        about["kind"], shape, about["channels"], about["points"], axes=axes, names=names
    )
    if unit is not None:
        origin, span, flipped = about["origin"], about["span"], about["flipped"]
        x = origin + span * (unit[::-1] if flipped else unit)
        if "dates" in about:
            x = from_json(about["dates"])
            origin = x[-1 if flipped else 0]
        layout = replace(layout, grid=Grid(x, unit, flipped, origin, span, about["given"]))
    return Functions(values, layout, Template())
