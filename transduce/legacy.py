"""Model cards of earlier versions, converted in memory.

Earlier cards describe a model by the options of one constructor: kappa, depth, heads, prior and so
on. This file alone knows these options. `config` turns them into the layers that they meant, and
`tensors` renames the parameters. The files do not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from .spaces import space_from_config
from .types import Json, TransduceError

Config = dict[str, Json]  # a space, a part or a model as JSON


@dataclass(frozen=True)
class OldModel:
    """The options of a model in earlier versions, with their defaults."""

    V: Config
    U: Config
    depth: int = 8
    heads: int = 8
    width: int = 32
    hidden: int = 256
    kappa: str = "exp_dot"
    tau: float = 1.0
    learn_tau: bool = True
    bias: bool = False
    feature_layers: int = 5
    ridges: int = 2
    universal: bool = True
    convolutions: Sequence[int] = (32, 64, 96)
    signal: float = 60.0
    F: bool | None = None
    G: bool | None = None
    shared: bool = False
    tied: bool = False
    gain: float = 1.0
    init: str = "xavier"
    memory: int = 0
    neighbours: int = 0
    prior: Config | None = None


IMAGE_PIXELS, IMAGE_CLASSES = 784, 10
IMAGE_RECIPES = ("images", "images-softmax")
UNSUPPORTED = ("bias", "shared", "neighbours")
AVERAGING = {"exp_dot": "ExpDot", "rbf": "Rbf", "l2": "L2"}
# These numbers are those of the versions that wrote the cards; they do not follow the library's.
PLAIN_WIDTHS = [0.001, 0.003, 0.008, 0.02, 0.05, 0.02, 0.004, 0.015]
NETWORK = ("channels", "layers", "modes", "summary")  # options of a prior that its network has

# Where a kernel keeps the parameters that earlier versions kept in one place.
RENAMED = {
    "representer": {
        **dict.fromkeys(("features", "log_width", "metric", "plain"), "candidates.gram."),
        **dict.fromkeys(("log_ridge", "log_odds"), "candidates."),
        **dict.fromkeys(("preference", "log_trust", "growth"), "mixer."),
    },
    "convolutional": {
        **dict.fromkeys(("features", "log_width"), "candidates.gram."),
        "log_ridge": "candidates.",
        **dict.fromkeys(("preference", "log_trust", "growth"), "mixer."),
    },
    "metric": {
        "log_gain": "candidates.gram.",
        **dict.fromkeys(("log_signal", "log_lines"), "candidates."),
    },
    "network": {
        **dict.fromkeys(("lift", "scale", "unit"), "network."),
        "layers": "network.steps.",
        "summary": "network.summarise.",
    },
}


def is_old(model: Mapping[str, object]) -> bool:
    """Whether a card's model is described by options instead of layers."""
    return "layers" not in model


def config(model: Config) -> Config:
    """The config of a model, whichever version described it."""
    if not is_old(model):
        return dict(model)
    old = _options(model)
    V, U = old.V, old.U
    d_v, d_u = (_size(space) + old.memory for space in (V, U))
    layers: list[Json] = []
    if old.prior is not None:
        layers.append(_layer(_prior(old, old.prior, d_v, d_u)))
    first = len(_parts(layers))
    for i in range(old.depth):
        layers.append({"again": first} if old.tied and i else _transformed(old, d_v, d_u))
    if old.memory:
        V, U = _padded(V, old.memory), _padded(U, old.memory)
    return {"V": V, "U": U, "layers": layers}


def tensors(model: Config, found: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The parameters of a model by their present names, whichever version wrote them."""
    if not is_old(model):
        return dict(found)
    old = _options(model)
    renamed = {_renamed(old, name): value for name, value in found.items()}
    if old.memory:
        renamed["spread"] = torch.nn.functional.pad(renamed["spread"], (0, old.memory), value=1.0)
        for name in [name for name in renamed if name.startswith(("V.", "U."))]:
            renamed[f"{name[:2]}of.{name[2:]}"] = renamed.pop(name)
    if old.kappa == "l2":
        renamed = {name: value for name, value in renamed.items() if not name.endswith("log_tau")}
    return renamed


def domain_of(card: Mapping[str, Any]) -> str:
    """The domain of a model whose card names none: "functions", "images" or "climate".

    Args:
        card: the model card. card["model"] has the configuration of the spaces V and U.
    """
    model = card.get("model", {})
    V, U = model.get("V", {}), model.get("U", {})
    if V.get("space") == U.get("space") == "Region":
        return "climate"
    recipe = card.get("recipe")
    trained_on_images = isinstance(recipe, Mapping) and recipe.get("name") in IMAGE_RECIPES
    of_images = trained_on_images or model.get("kappa") == "convolutional"
    vectors = V.get("space") == U.get("space") == "Euclidean"
    sizes = (V.get("size"), U.get("size"))
    if of_images and vectors and sizes == (IMAGE_PIXELS, IMAGE_CLASSES):
        return "images"
    return "functions"


def _options(model: Mapping[str, Any]) -> OldModel:
    known = [option.name for option in fields(OldModel)]
    unknown = [name for name in model if name not in known]
    refused = [name for name in UNSUPPORTED if model.get(name)]
    if unknown or refused:
        raise TransduceError(
            f"the model has options {', '.join(unknown + refused)}, which this version does not "
            "support. Use the version of transduce that wrote it."
        )
    return OldModel(**model)


def _padded(space: Config, extra: int) -> Config:
    return {"space": "Padded", "of": space, "extra": extra}


def _size(space: Config) -> int:
    return space_from_config(space).size


def _layer(kappa: Config, F: Json = None, G: Json = None) -> Config:
    return {"part": "Layer", "kappa": kappa, "F": F, "G": G}


def _parts(config: Json) -> list[Json]:
    """All parts in a config."""
    if isinstance(config, list):
        return [part for item in config for part in _parts(item)]
    if not isinstance(config, dict):
        return []
    inside = _parts(list(config.values()))
    return [config, *inside] if "part" in config else inside


def _transformed(old: OldModel, d_v: int, d_u: int) -> Config:
    """A layer with F and G, which averaging kernels had unless options said otherwise."""
    networks: list[Json] = []
    for wanted, d in ((old.F, d_v), (old.G, d_u)):
        wanted = old.kappa in AVERAGING if wanted is None else wanted
        networks.append({"part": "Feedforward", "d": d, "hidden": old.hidden} if wanted else None)
    kappa = _kernel(old, d_v, d_u)
    if old.V["space"] == "Patches":
        kappa = {"part": "AtPlaces", "of": kappa, "places": {"part": "PatchGrid"}}
    return _layer(_local(kappa, old.V), *networks)


def _local(kappa: Config, V: Config) -> Config:
    """The kernel at each place, if V is a region with a reach."""
    if V["space"] != "Region" or not V.get("reach"):
        return kappa
    return {"part": "AtPlaces", "of": kappa, "places": {"part": "Neighbourhoods", "region": V}}


def _kernel(old: OldModel, d_v: int, d_u: int) -> Config:
    if old.kappa in AVERAGING:
        kernel: Config = {"part": AVERAGING[old.kappa], "d_v": d_v, "d_u": d_u}
        kernel |= {"heads": old.heads, "width": old.width}
        return kernel if old.kappa == "l2" else kernel | {"tau": old.tau}
    if old.kappa == "metric":
        return _metric(old.signal)
    if old.kappa == "convolutional":
        return _convolutional(old, d_v)
    if old.kappa == "representer":
        return _representer(old, d_v, d_u)
    raise TransduceError(f"the model has kappa={old.kappa!r}, which no version of transduce had.")


def _convolutional(old: OldModel, d_v: int) -> Config:
    gram: Config = {"part": "ConvolutionGram", "d_v": d_v, "channels": [*old.convolutions]}
    gram |= {"width": old.width, "widths": old.ridges}
    answers = (len(old.convolutions) + 2) * old.ridges
    mixer: Config = {"part": "Mixer", "answers": answers, "start": [0.0, 2.5]}
    candidates: Config = {"part": "LayerCandidates", "gram": gram}
    return {"part": "Ridge", "candidates": candidates, "mixer": mixer, "exact": 4096}


def _representer(old: OldModel, d_v: int, d_u: int) -> Config:
    learned, fixed = (old.ridges, PLAIN_WIDTHS) if old.universal else (0, [])
    gram: Config = {"part": "FeatureGram", "d_v": d_v, "heads": old.heads, "width": old.width}
    gram |= {"hidden": old.hidden, "layers": old.feature_layers}
    gram |= {"learned": learned, "fixed": [*fixed]}
    candidates: Config = {"part": "FeatureCandidates", "gram": gram, "ridges": old.ridges}
    answers = old.heads * old.ridges + len(fixed)
    mixer: Config = {"part": "Mixer", "answers": answers, "preferences": d_u}
    kernel: Config = {"part": "Ridge", "candidates": candidates, "mixer": mixer}
    return kernel | {"exact": 1024, "landmarks": 512}


def _metric(signal: float) -> Config:
    gram: Config = {"part": "MaternGram"}
    return {"part": "Ridge", "candidates": {"part": "NoiseUnits", "gram": gram, "signal": signal}}


def _prior(old: OldModel, prior: Config, d_v: int, d_u: int) -> Config:
    """A prior of pairs that are remembered, or of a spectral network."""
    if "pairs" in prior:
        kernel = _local(_metric(60.0), old.V)
        return {"part": "Mean", "kernel": kernel, "pairs": prior["pairs"], "d_v": d_v, "d_u": d_u}
    network: Config = {"part": "SpectralNetwork", "V": old.V, "U": old.U}
    network |= {name: prior[name] for name in NETWORK if name in prior}
    network |= {"points": prior["grid"]} if "grid" in prior else {}
    return {"part": "Readout", "network": network, "readout": prior.get("readout", True)}


def _renamed(old: OldModel, name: str) -> str:
    """The present name of a parameter."""
    prior = old.prior
    if prior is not None and name.startswith("prior.kappa."):
        rest = name.removeprefix("prior.kappa.")
        if "pairs" in prior:
            head, _, own = rest.partition(".")
            return "layers.0.kappa." + (f"kernel.{_inner(own, 'metric')}" if own else head)
        return f"layers.0.kappa.{_inner(rest, 'network')}"
    if not name.startswith("layers."):
        return name
    _, number, part, own = name.split(".", 3)
    place = f"layers.{int(number) + (prior is not None)}.{part}."
    return place + (_inner(own, old.kappa) if part == "kappa" else own)


def _inner(name: str, kind: str) -> str:
    """The present name of a parameter inside a kernel, which may be one at each place."""
    if name.startswith("of."):
        return f"of.{_inner(name.removeprefix('of.'), kind)}"
    head, _, rest = name.partition(".")
    prefix = RENAMED.get(kind, {}).get(head)
    if prefix is None:
        return name
    if prefix.endswith((".steps.", ".summarise.")):
        return prefix + rest
    return prefix + name
