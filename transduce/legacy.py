"""Facts about models whose cards were written by earlier versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

IMAGE_PIXELS, IMAGE_CLASSES = 784, 10
IMAGE_RECIPES = ("images", "images-softmax")


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
