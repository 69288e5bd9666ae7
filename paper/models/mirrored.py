"""Weights with which averaging kernels start as smoothers.

Query and key are the same map, so that examples similar to the query count for more. The output map
undoes the value map, and each layer contributes an equal share of the answer.
"""

from __future__ import annotations

import torch

from transduce import TransduceError, Transducer
from transduce.kernels import Attention
from transduce.layer import Feedforward

NEAR_IDENTITY = 0.1  # what F and G add at first, relative to their usual start


@torch.no_grad()
def start_mirrored(T: Transducer) -> None:
    """Set the weights of T's kernels to those of smoothers, and F and G near the identity."""
    for layer in dict.fromkeys(T.steps):
        kappa = layer.kappa
        if not isinstance(kappa, Attention):
            raise TransduceError(
                f"a mirrored start of a {type(kappa).__name__}; expected a kernel that averages, "
                "such as Rbf."
            )
        kappa.query.load_state_dict(kappa.key.state_dict())
        value = kappa.value.weight
        kappa.out.weight.copy_(value.T * value.shape[1] / (len(T.steps) * value.square().sum()))
        for part in (layer.F, layer.G):
            if isinstance(part, Feedforward):
                part.down.weight.mul_(NEAR_IDENTITY)
