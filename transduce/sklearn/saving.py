"""Fitted estimators in .safetensors files, without pickle.

A file holds the examples, the parameters and the name of the model. Loading fits the estimator to
the examples again."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from .. import weights
from ..storage import check_writable
from ..transducer import Transducer
from ..types import TransduceError

Estimator = TypeVar("Estimator", bound="Saved")


class Saved:
    """An estimator with a parameter `model`. Once fitted, it has its examples as arrays X_ and
    y_."""

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write the examples and the name of the model to a .safetensors file; no pickle."""
        check_is_fitted(self, "operator_")
        check_writable(path, force, (".safetensors",))
        parameters = self.get_params()  # type: ignore[attr-defined]
        if isinstance(parameters["model"], Transducer):
            raise TransduceError(
                "the model is an object, which has no name to write. Save it with save_pretrained "
                "and give its file."
            )
        card = {
            key: str(value) if key == "model" else bool(value) for key, value in parameters.items()
        }
        tensors = {
            name: torch.from_numpy(np.array(getattr(self, f"{name}_"))) for name in ("X", "y")
        }
        weights.save(
            path,
            tensors,
            {"estimator": type(self).__name__, **card, **self._more(), "sha256": self._checksum()},
        )

    @classmethod
    def load(cls: type[Estimator], path: str | Path) -> Estimator:
        """The estimator that `save` wrote, fitted. It warns if the model's weights have changed
        since."""
        tensors, card = weights.load(Path(path))
        names = cls._get_param_names()  # type: ignore[attr-defined]
        if (
            card.get("estimator") != cls.__name__
            or not {*names, "sha256"} <= card.keys()
            or tensors.keys() != {"X", "y"}
        ):
            raise TransduceError(
                f"{path} is no {cls.__name__} that was saved. Give a file that its `save` wrote."
            )
        estimator = cls(**{name: card[name] for name in names})
        estimator.fit(tensors["X"].numpy(), estimator._outputs(tensors["y"].numpy(), card))  # type: ignore[attr-defined]
        if estimator._checksum() != card["sha256"]:
            warnings.warn(
                f"the weights of {card['model']!r} are not those that {path} was saved with: "
                "answers may differ.",
                stacklevel=2,
            )
        return estimator

    def _more(self) -> dict[str, object]:
        """Further entries of the card."""
        return {}

    def _outputs(self, y: np.ndarray, card: Mapping[str, object]) -> np.ndarray:
        """The outputs that the estimator was fitted to, from the stored numbers and the card."""
        return y

    def _checksum(self) -> str:
        """The checksum of the model's weights."""
        name = str(self.model)  # type: ignore[attr-defined]
        return weights.checksums().get(f"{name}.safetensors") or weights.sha256(Path(name))
