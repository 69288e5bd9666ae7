"""Probabilities of classes, from a regression of one-hot vectors.

    p_k(v) = mean over beta of exp(beta u_hat_k(v)) / sum_l exp(beta u_hat_l(v))
    over the classes that the examples show

How likely a beta is, the examples say: by the class of each, and the answer there of the regression
without it; with a log-normal prior that matters where they are few. So how sure an answer is comes
from the task itself."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from ..conditioned import ConditionedOperator
from ..types import TransduceError, to_tensor
from .many import all_but_one, many_regressions

BETAS = torch.logspace(0, 2, 81, dtype=torch.float64)
USUAL, SPREAD = 8.0, 0.5  # of beta: the median of the prior, and its deviation in logarithms
NEGLIGIBLE = 1e-6  # a share that is left out


@torch.no_grad()
def class_probabilities(
    O: ConditionedOperator, v: object, likely: Float[Tensor, " b"] | None = None
) -> Float[Tensor, "m k"]:
    """The probability of each class at each v; O was regressed from one-hot vectors. likely:
    default, `sharpness` of O.

    >>> class_probabilities(T.regress(ExampleSet(images, one_hot)), queries).argmax(1)
    """
    seen = one_hot_of(O).amax(0) > 0
    answers = to_tensor(O(to_tensor(v, "v")), "answers").double().cpu()
    p = torch.zeros_like(answers)
    for beta, share in zip(BETAS, sharpness(O) if likely is None else likely, strict=True):
        if share > NEGLIGIBLE:
            p[:, seen] += share * (beta * answers[:, seen]).softmax(1)
    return p / p.sum(1, keepdim=True)


@torch.no_grad()
def sharpness(O: ConditionedOperator) -> Float[Tensor, " b"]:
    """How likely each of `BETAS` is, of an operator that was regressed from one-hot vectors."""
    u = one_hot_of(O)
    seen = u.amax(0) > 0
    return (
        posterior(left_out(O).double().cpu()[:, seen], u[:, seen])
        if len(u) > 1
        else posterior(u[:0], u[:0])
    )


def one_hot_of(O: ConditionedOperator) -> Float[Tensor, "n k"]:
    """The examples' u, or an error if they are not classes."""
    u = to_tensor(O.examples.u, "examples.u").detach().double().cpu()
    if u.ndim != 2 or not bool(((u == 0) | (u == 1)).all()) or not bool((u.sum(1) == 1).all()):
        raise TransduceError(
            f"examples.u, of shape {tuple(u.shape)}, are not one-hot vectors; probabilities are "
            "of classes. Expected (n, classes), with a "
            "1 for the class of each example and 0 else: see torch.nn.functional.one_hot."
        )
    return u


def left_out(O: ConditionedOperator) -> Float[Tensor, "n k"]:
    """The answer at each example of the regression without it."""
    if O.T.leaves_out:
        return O.left_out
    n = len(O.examples)
    return torch.cat(list(many_regressions(O.T, O.examples, all_but_one(n))))[range(n), range(n)]


def posterior(answers: Float[Tensor, "n k"], u: Float[Tensor, "n k"]) -> Float[Tensor, " b"]:
    """How likely each beta is where these are the answers, and u the classes."""
    likelihood = ((BETAS[:, None, None] * answers).log_softmax(-1) * u).sum((1, 2))
    return (likelihood - 0.5 * ((BETAS / USUAL).log() / SPREAD) ** 2).softmax(0)
