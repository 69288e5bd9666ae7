"""Probabilities of classes, from a regression of one-hot vectors.

    p_k(v) = exp(beta g(u_hat_k(v))) / sum_l exp(beta g(u_hat_l(v)))      over the classes that the examples show

g(x) = asinh(x / c) grows like a logarithm from c on, so that answers, which are nearly probabilities themselves, become powers of them, and
it is smooth through 0, for they may be below. beta is the likeliest given the class of each example and the answer there of the regression without it, with a log-normal prior that
matters where examples are few. So how sure an answer is comes from the task itself.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..transducer import ConditionedOperator
from ..types import TransduceError, to_tensor
from .many import all_but_one, many_regressions

SMALL = 0.02  # c
BETAS = torch.logspace(-0.5, 1.5, 81, dtype=torch.float64)
USUAL, SPREAD = 6.0, 0.5  # of beta: the median of the prior, and its deviation in logarithms


@torch.no_grad()
def class_probabilities(O: ConditionedOperator, v: Any, beta: float | None = None) -> Float[Tensor, "m k"]:
    """The probability of each class at each v; O was regressed from one-hot vectors. beta: default, `sharpness` of O.

    >>> class_probabilities(T.regress(ExampleSet(images, one_hot)), queries).argmax(1)
    """
    seen = one_hot_of(O).amax(0) > 0
    answers = to_tensor(O(to_tensor(v, "v")), "answers").double().cpu()
    p = torch.zeros_like(answers)
    p[:, seen] = ((sharpness(O) if beta is None else beta) * (answers[:, seen] / SMALL).asinh()).softmax(1)
    return p


@torch.no_grad()
def sharpness(O: ConditionedOperator) -> float:
    """beta, of an operator that was regressed from one-hot vectors."""
    u = one_hot_of(O)
    seen = u.amax(0) > 0
    return likeliest(left_out(O).double().cpu()[:, seen], u[:, seen]) if len(u) > 1 else USUAL


def one_hot_of(O: ConditionedOperator) -> Float[Tensor, "n k"]:
    """The examples' u, or an error if they are not classes."""
    u = to_tensor(O.examples.u, "examples.u").detach().double().cpu()
    if u.ndim != 2 or not bool(((u == 0) | (u == 1)).all()) or not bool((u.sum(1) == 1).all()):
        raise TransduceError(
            f"examples.u, of shape {tuple(u.shape)}, are not one-hot vectors; probabilities are of classes. Expected (n, classes), with a "
            "1 for the class of each example and 0 else: see torch.nn.functional.one_hot."
        )
    return u


def left_out(O: ConditionedOperator) -> Float[Tensor, "n k"]:
    """The answer at each example of the regression without it."""
    if O.T.leaves_out:
        return O.left_out
    n = len(O.examples)
    return torch.cat(list(many_regressions(O.T, O.examples, all_but_one(n))))[range(n), range(n)]


def likeliest(answers: Float[Tensor, "n k"], u: Float[Tensor, "n k"]) -> float:
    """beta."""
    likelihood = ((BETAS[:, None, None] * (answers / SMALL).asinh()).log_softmax(-1) * u).sum((1, 2))
    prior = -0.5 * ((BETAS / USUAL).log() / SPREAD) ** 2
    return float(BETAS[(likelihood + prior).argmax()])
