"""How each example moved a prediction: what would change were it left out, for all examples by one
backward pass.

    J(O) - J(O without i) = <dJ / du_i, r_i>,      r_i = u_i - (O without i)(v_i)

In ridge regression, to leave example i out is the same as to replace u_i by what the others answer
for it, so for one layer of it and a linear J this is an identity. Where J is not linear, the
mixture of candidates depends on u too, or layers are stacked, it holds to first order."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from ..conditioned import ConditionedOperator, sensors_of
from ..types import TransduceError


def energy(u: Float[Tensor, "m ..."]) -> Float[Tensor, ""]:
    """J(u) = |u|^2 / 2: what moves an answer towards itself counts as positive."""
    return u.square().sum() / 2


def influence(
    O: ConditionedOperator, v: object, J: Callable[[Tensor], Tensor] = energy
) -> Float[Tensor, " n"]:
    """How much each of the examples of O added to J(O(v)), a number made of the answers at v.

    >>> # the examples that this answer leans on
    >>> influence(O, v[:1]).argsort(descending=True)[:3]
    """
    T, examples = O.T, O.examples
    if not T.leaves_out:
        raise TransduceError(
            "this model has no leave-one-out residuals, which influence needs; expected one that "
            "solves for its coefficients, such as 'adr'. Compare with `many_regressions` instead."
        )
    with torch.enable_grad():
        inputs, _ = T.encode(T.V, examples.v, O.x, "examples.v")
        images, grid = T.encode(T.U, examples.u, O.x, "examples.u")
        images = images.detach().requires_grad_()
        kept = T.condition(inputs.detach()[None], images[None])
        queries, _ = T.encode(T.V, v, sensors_of(v, O.x), "v")
        answers = T.U.decode(T.query(kept, queries[None])[-1][0], grid if O.x is None else O.x)
        value = J(answers)
        if value.numel() != 1:
            raise TransduceError(
                f"J gave a tensor of shape {tuple(value.shape)}; expected one number. Sum it."
            )
        (gradient,) = torch.autograd.grad(value.sum(), images)
    residual = kept[-1].residual
    assert residual is not None
    return (gradient * residual[0].detach()).sum(-1)
