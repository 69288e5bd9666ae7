"""Model cards of earlier versions, converted in memory.

Earlier cards describe a model by the options of one constructor: kappa, depth, heads, prior and so
on. This file alone knows these options. `config` turns them into the layers that they meant, and
`tensors` renames the parameters. The files themselves stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .spaces import space_from_config
from .types import TransduceError

DEFAULTS: dict[str, Any] = {
    "depth": 8,
    "heads": 8,
    "width": 32,
    "hidden": 256,
    "kappa": "exp_dot",
    "tau": 1.0,
    "learn_tau": True,
    "bias": False,
    "feature_layers": 5,
    "ridges": 2,
    "universal": True,
    "convolutions": [32, 64, 96],
    "signal": 60.0,
    "F": None,
    "G": None,
    "shared": False,
    "tied": False,
    "gain": 1.0,
    "init": "xavier",
    "memory": 0,
    "neighbours": 0,
    "prior": None,
}
IMAGE_PIXELS, IMAGE_CLASSES = 784, 10
IMAGE_RECIPES = ("images", "images-softmax")
UNSUPPORTED = ("bias", "shared", "neighbours")
AVERAGING = {"exp_dot": "ExpDot", "rbf": "Rbf", "l2": "L2"}
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


def is_old(model: Mapping[str, Any]) -> bool:
    """Whether a card's model is described by options instead of layers."""
    return "layers" not in model


def config(model: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a model, whichever version described it."""
    if not is_old(model):
        return dict(model)
    old = _options(model)
    V, U = ({**old[name]} for name in ("V", "U"))
    d_v, d_u = (_size(space) + old["memory"] for space in (V, U))
    layers = [] if old["prior"] is None else [_layer(_prior(old, V, U, d_v, d_u))]
    if old["tied"] and old["depth"]:
        first = len(_parts(layers))
        own = [_transformed(old, V, d_v, d_u)] + [{"again": first}] * (old["depth"] - 1)
    else:
        own = [_transformed(old, V, d_v, d_u) for _ in range(old["depth"])]
    if old["memory"]:
        V, U = ({"space": "Padded", "of": space, "extra": old["memory"]} for space in (V, U))
    return {"V": V, "U": U, "layers": layers + own}


def tensors(model: Mapping[str, Any], found: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The parameters of a model by their present names, whichever version wrote them."""
    if not is_old(model):
        return dict(found)
    old = _options(model)
    renamed = {_renamed(old, name): value for name, value in found.items()}
    if old["memory"]:
        renamed["spread"] = torch.nn.functional.pad(
            renamed["spread"], (0, old["memory"]), value=1.0
        )
        for name in [name for name in renamed if name.startswith(("V.", "U."))]:
            renamed[f"{name[:2]}of.{name[2:]}"] = renamed.pop(name)
    if old["kappa"] == "l2":
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


def _options(model: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [name for name in model if name not in DEFAULTS and name not in ("V", "U")]
    refused = [name for name in UNSUPPORTED if model.get(name)]
    if unknown or refused:
        raise TransduceError(
            f"the model has options {', '.join(unknown + refused)}, which this version does not "
            "support. Use the version of transduce that wrote it."
        )
    return {**DEFAULTS, **model}


def _size(space: Mapping[str, Any]) -> int:
    return space_from_config(space).size


def _layer(kappa: dict[str, Any], F: Any = None, G: Any = None) -> dict[str, Any]:
    return {"part": "Layer", "kappa": kappa, "F": F, "G": G}


def _parts(config: Any) -> list[Any]:
    """All parts in a config."""
    if isinstance(config, list):
        return [part for item in config for part in _parts(item)]
    if not isinstance(config, dict):
        return []
    return [config] * ("part" in config) + _parts(list(config.values()))


def _transformed(old: dict[str, Any], V: dict[str, Any], d_v: int, d_u: int) -> dict[str, Any]:
    """A layer with F and G, which averaging kernels had unless options said otherwise."""
    averaging = old["kappa"] in AVERAGING
    networks = [
        {"part": "Feedforward", "d": d, "hidden": old["hidden"]}
        if (averaging if old[name] is None else old[name])
        else None
        for name, d in (("F", d_v), ("G", d_u))
    ]
    kappa = _kernel(old, d_v, d_u)
    if V["space"] == "Patches":
        kappa = {"part": "AtPlaces", "of": kappa, "places": {"part": "PatchGrid"}}
    return _layer(_local(kappa, V), *networks)


def _local(kappa: dict[str, Any], V: dict[str, Any]) -> dict[str, Any]:
    """The kernel at each place, if V is a region with a reach."""
    if V["space"] != "Region" or not V.get("reach"):
        return kappa
    return {"part": "AtPlaces", "of": kappa, "places": {"part": "Neighbourhoods", "region": V}}


def _kernel(old: dict[str, Any], d_v: int, d_u: int) -> dict[str, Any]:
    kappa = old["kappa"]
    if kappa in AVERAGING:
        sizes = {"d_v": d_v, "d_u": d_u, "heads": old["heads"], "width": old["width"]}
        tau = {} if kappa == "l2" else {"tau": old["tau"]}
        return {"part": AVERAGING[kappa], **sizes, **tau}
    if kappa == "metric":
        return _metric(old["signal"])
    if kappa == "convolutional":
        widths = {"width": old["width"], "widths": old["ridges"]}
        channels = list(old["convolutions"])
        gram = {"part": "ConvolutionGram", "d_v": d_v, "channels": channels, **widths}
        answers = (len(channels) + 2) * old["ridges"]
        mixer = {"part": "Mixer", "answers": answers, "preferences": 1, "start": [0.0, 2.5]}
        candidates = {"part": "LayerCandidates", "gram": gram}
        return {"part": "Ridge", "candidates": candidates, "mixer": mixer, "exact": 4096}
    if kappa != "representer":
        raise TransduceError(f"the model has kappa={kappa!r}, which no version of transduce had.")
    universal, ridges = old["universal"], old["ridges"]
    fixed = PLAIN_WIDTHS if universal else []
    gram = {
        "part": "FeatureGram",
        **{"d_v": d_v, "heads": old["heads"], "width": old["width"], "hidden": old["hidden"]},
        **{"layers": old["feature_layers"], "learned": ridges * universal, "fixed": fixed},
    }
    candidates = {"part": "FeatureCandidates", "gram": gram, "ridges": ridges}
    answers = old["heads"] * ridges + len(fixed)
    mixer = {"part": "Mixer", "answers": answers, "preferences": d_u}
    limits = {"exact": 1024, "landmarks": 512}
    return {"part": "Ridge", "candidates": candidates, "mixer": mixer, **limits}


def _metric(signal: float) -> dict[str, Any]:
    gram = {"part": "MaternGram"}
    return {"part": "Ridge", "candidates": {"part": "NoiseUnits", "gram": gram, "signal": signal}}


def _prior(
    old: dict[str, Any], V: dict[str, Any], U: dict[str, Any], d_v: int, d_u: int
) -> dict[str, Any]:
    """A prior of pairs that are remembered, or of a spectral network."""
    prior = old["prior"]
    if "pairs" in prior:
        kernel, sizes = _local(_metric(60.0), V), {"d_v": d_v, "d_u": d_u}
        return {"part": "Mean", "kernel": kernel, "pairs": prior["pairs"], **sizes}
    network = {"part": "SpectralNetwork", "V": V, "U": U}
    network |= {name: prior[name] for name in NETWORK if name in prior}
    network |= {"points": prior["grid"]} if "grid" in prior else {}
    return {"part": "Readout", "network": network, "readout": prior.get("readout", True)}


def _renamed(old: dict[str, Any], name: str) -> str:
    """The present name of a parameter."""
    prior = old["prior"]
    if name.startswith("prior.kappa."):
        rest = name.removeprefix("prior.kappa.")
        if "pairs" in prior:
            head, _, own = rest.partition(".")
            return "layers.0.kappa." + (f"kernel.{_inner(own, 'metric')}" if own else head)
        return f"layers.0.kappa.{_inner(rest, 'network')}"
    if not name.startswith("layers."):
        return name
    _, number, part, own = name.split(".", 3)
    place = f"layers.{int(number) + (prior is not None)}.{part}."
    return place + (_inner(own, old["kappa"]) if part == "kappa" else own)


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
