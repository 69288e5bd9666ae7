"""Weights by name: safetensors files, bundled in `pretrained/`, each with its card inside.

A card is a JSON object in the file's header: the model's config, and how it was made (recipe, seed,
versions, commit, validation error). `pretrained/checksums.json` holds the SHA-256 of each bundled
file. Nothing is fetched and no pickle is read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise

from .files import replacing
from .types import TransduceError

PRETRAINED = Path(__file__).parent / "pretrained"


def checksums() -> dict[str, str]:
    """File name -> SHA-256 of the bundled files."""
    return json.loads((PRETRAINED / "checksums.json").read_text())


def names() -> list[str]:
    """The names that `load` knows."""
    return sorted(Path(file).stem for file in checksums())


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load(name: str | Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors and the card of a bundled model, or of a .safetensors file."""
    path = Path(name)
    if path.suffix != ".safetensors":
        if str(name) not in names():
            raise TransduceError(
                f"no model is called {str(name)!r}; known: {', '.join(names())}. Or give the path "
                "of a .safetensors file."
            )
        path = PRETRAINED / f"{name}.safetensors"
        if not path.exists() or sha256(path) != checksums()[path.name]:
            raise TransduceError(
                f"the bundled weights {path.name} do not match their checksum: the file is "
                "damaged. Reinstall transduce."
            )
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


def save(path: str | Path, tensors: dict[str, torch.Tensor], card: dict[str, Any]) -> None:
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
    save(PRETRAINED / path.name, tensors, card)
    known = checksums() | {path.name: sha256(PRETRAINED / path.name)}
    (PRETRAINED / "checksums.json").write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
