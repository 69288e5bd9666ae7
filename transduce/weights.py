"""Weights by name: safetensors files in `pretrained/`, each with its card inside.

A card is a JSON object in the file's header: the model's config, and how it was made (recipe, seed,
versions, commit, validation error). `pretrained/checksums.json` holds the SHA-256 of each file.
Weights that only readers of the paper need are in `paper/pretrained/` of the source repository.
Nothing is downloaded and no pickle is read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise

from . import repository
from .files import PathLike, replacing
from .types import TransduceError

PRETRAINED = Path(__file__).parent / "pretrained"


def folders() -> list[Path]:
    """The folders that hold weights by name: the package's, then the source repository's."""
    paper = repository.folder()
    return [PRETRAINED] if paper is None else [PRETRAINED, paper / "pretrained"]


def checksums() -> dict[str, str]:
    """File name -> SHA-256 of the weights that have a name."""
    found: dict[str, str] = {}
    for folder in reversed(folders()):
        found |= _listed(folder)
    return found


def names() -> list[str]:
    """The names that `load` knows."""
    return sorted(Path(file).stem for file in checksums())


def _listed(folder: Path) -> dict[str, str]:
    """The checksums of one folder."""
    path = folder / "checksums.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _path(name: str) -> Path | None:
    """The file of a name, if one of the folders has it."""
    paths = (folder / f"{name}.safetensors" for folder in folders())
    return next((path for path in paths if path.exists()), None)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load(name: PathLike) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors and the card of a bundled model, or of a .safetensors file."""
    path = Path(name) if Path(name).suffix == ".safetensors" else _named(str(name))
    if not path.exists():
        raise TransduceError(
            f"there is no file {path}; expected weights in safetensors format. Check the path."
        )
    try:
        with safe_open(path, framework="pt") as file:
            card = json.loads((file.metadata() or {}).get("transduce", "null"))
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise TransduceError(
            f"{path} is not a safetensors file, or is truncated ({error}). Give weights that "
            "transduce wrote."
        ) from None
    if not isinstance(card, dict) or "model" not in card:
        raise TransduceError(
            f"{path} holds tensors but no transduce model card. Give weights that transduce wrote."
        )
    return tensors, card


def _named(name: str) -> Path:
    """The file of a name, which is as it was published."""
    if name not in names():
        if name in repository.WEIGHTS:
            raise repository.missing(f"the model {name!r}", "paper/pretrained")
        raise TransduceError(
            f"no model is called {name!r}; known: {', '.join(names())}. Or give the path of a "
            ".safetensors file."
        )
    path = _path(name)
    if path is None or sha256(path) != checksums()[path.name]:
        raise TransduceError(
            f"the bundled weights {name}.safetensors do not match their checksum: the file is "
            "damaged. Reinstall transduce."
        )
    return path


def save(path: PathLike, tensors: dict[str, torch.Tensor], card: dict[str, Any]) -> None:
    """Write a weight file atomically."""
    content = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
    with replacing(path) as temporary:
        temporary.write_bytes(serialise(content, {"transduce": json.dumps(card)}))


def bundle(path: str | Path, half: bool = False) -> None:
    """Put a trained file among the bundled ones, under its own name, in the place of the one
    before. half: in half precision."""
    path = Path(path)
    tensors, card = load(path)
    if half:
        tensors, card = (
            {key: tensor.half() for key, tensor in tensors.items()},
            {**card, "precision": "half"},
        )
    known = _path(path.stem)
    folder = PRETRAINED if known is None else known.parent
    save(folder / path.name, tensors, card)
    listed = _listed(folder) | {path.name: sha256(folder / path.name)}
    (folder / "checksums.json").write_text(json.dumps(listed, indent=1, sort_keys=True) + "\n")
