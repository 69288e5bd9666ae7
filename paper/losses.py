"""Losses that one experiment each needs. Importing this module registers them.

cross_entropy    -log p_j, where p_j is the probability of query j's own class
lesson           the squared error of F where it is to leave v unchanged and to write
                 y = (u - W v) / spread to memory (see models/descent.py)"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transduce.kernels import Attention
from transduce.layer import Layer
from transduce.metatraining.learner import Batch, Learner
from transduce.metatraining.losses import Loss
from transduce.spaces import Padded
from transduce.transducer import Transducer
from transduce.types import TransduceError

from .models.descent import lesson_errors


class CrossEntropy(Loss):
    """For learners whose answers are probabilities of classes."""

    name = "cross_entropy"
    probabilities = True

    def __call__(
        self, T: Learner, batch: Batch, left_out: bool, mean: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, ""]:
        p = T.query(T.condition(batch["v"], batch["u"]), batch["v_query"])[-1]
        return -(p * batch["u_query"]).sum(-1).clamp(min=1e-12).log().mean()


class Lesson(Loss):
    """F alone learns to write to memory what linear regression does not explain.

    It comes before the training of a softmax model that starts as a solver of least squares.
    """

    name = "lesson"

    def __call__(
        self, T: Learner, batch: Batch, left_out: bool, mean: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, ""]:
        x = batch.get("x")
        v = T.V.encode(torch.cat([batch["v"], batch["v_query"]], 1), x)
        u = T.U.encode(torch.cat([batch["u"], batch["u_query"]], 1), x)
        return lesson_errors(cast(Transducer, T), v, u).mean()

    def check(self, T: Learner) -> None:
        """Raise if the layers have no F of their own, or no memory for it to write to."""
        super().check(T)
        layers = _layers(T)
        kappa = layers[0].kappa if layers else None
        if isinstance(kappa, Attention) and isinstance(T.V, Padded):
            enough = T.V.extra >= kappa.query.out_features // 4
            if enough and kappa.heads % 4 == 0 and all(map(_has_own_F, layers)):
                return
        raise TransduceError(
            f"loss='lesson' with a {type(T).__name__} that it cannot teach; expected softmax "
            "layers between Padded spaces that start as a solver of least squares, with padding "
            "for a quarter of the heads' features and an F of their own. Use another loss."
        )

    def trained_part(self, T: Learner) -> nn.Module:
        """F of each layer; nothing else gets a gradient."""
        return nn.ModuleList(layer.F for layer in _layers(T) if layer.F is not None)


def _layers(T: Learner) -> list[Layer]:
    return [cast(Layer, layer) for layer in getattr(T, "layers", ())]


def _has_own_F(layer: Layer) -> bool:
    """Whether F has parameters, and shares none with G."""
    of_F, of_G = (set() if part is None else set(part.parameters()) for part in (layer.F, layer.G))
    return bool(of_F) and not of_F & of_G
