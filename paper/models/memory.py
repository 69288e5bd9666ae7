"""A model of a region that knows a history of days before it is given any example.

The pairs of the history become a `Mean`, the first layer of a new model. Its second layer, which is
not trained yet, regresses how the operator of new examples differs from that of the history.

>>> remember(T, every_day).regress(last_fortnight)
"""

from __future__ import annotations

import copy

import torch

from transduce import ExampleSet, TransduceError, Transducer
from transduce.kernels import Mean
from transduce.layer import Layer
from transduce.models import region
from transduce.spaces import Region
from transduce.types import to_tensor

DIFFERENCE = 0.03  # variance of the difference between operators before training, in noise units


@torch.no_grad()
def remember(T: Transducer, examples: ExampleSet) -> Transducer:
    """T with these examples as its mean function.

    Args:
        T: from `models.region`. Its spaces measure the examples if they have not measured fields.
        examples: the history; as many pairs as are stored in the weights.
    """
    V, U = T.V, T.U
    if len(T.steps) != 1 or not (isinstance(V, Region) and isinstance(U, Region)):
        raise TransduceError(
            f"remember was asked of a model of {len(T.steps)} layers from {type(V).__name__} to "
            f"{type(U).__name__}; expected one layer between Regions, as models.region has."
        )
    for space, f in ((V, examples.v), (U, examples.u)):
        space.measure(to_tensor(f, "the examples").to(T.spread))
    (v, _), (u, _) = (
        T.encode(space, f, None, name)
        for space, f, name in ((V, examples.v, "v"), (U, examples.u, "u"))
    )
    kernel = T.steps[0].kappa
    mean = Mean(copy.deepcopy(kernel), len(examples), V.size, U.size).to(T.spread)
    mean.remember(kernel, v / T.spread, u)
    own = region(copy.deepcopy(V), copy.deepcopy(U), signal=DIFFERENCE)
    remembering = Transducer(own.V, own.U, [Layer(mean), *own.steps]).to(T.spread)
    remembering.spread.copy_(T.spread)
    remembering.measured = T.measured
    return remembering.eval()
