"""scikit-learn's classifiers, on pixels: each is fitted to the examples' classes, and answers with
a number for each class.

    k-nearest neighbours     u_hat_k(v) = the share of class k among the nearest examples
    logistic regression      u_hat(v) = softmax(A v + b)
    support vectors
    u_hat_k(v) = 1 for the class that wins most of its duels,
                   sign(sum_i alpha_i exp(-gamma |v_i - v|^2) + b)
    kernel ridge
    u_hat(v) = sum_i exp(-gamma |v_i - v|^2) alpha_i,
    width and ridge by leave-one-out (classical.py)

All choose their parameters by cross-validation on the examples they are given, as their users
would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from ..types import ExampleSet, TransduceError, like
from .classical import KernelRidge, expect_grid, powers_of_ten, rows_of
from .scikit import FOLDS

NEIGHBOURS = (1, 2, 3, 5, 8)
PENALTIES = powers_of_ten(-3, 1)
COSTS, WIDTHS = (1.0, 3.0, 10.0), (0.003, 0.01, 0.02, 0.04)
PIXEL_GAMMAS = powers_of_ten(-3, -1, 4)
PIXEL_LAMBDAS = powers_of_ten(-4, 0)


class ScikitClassifier:
    """Any classifier of scikit-learn, for examples (v, u) whose u are one-hot.

    estimator: makes it, unfitted, for examples (rows, classes).
    name: what results call it.
    choices: the parameters that it chooses from.

    >>> # v: (100, 784), u: (100, 10)
    >>> O = ScikitClassifier(lambda v, labels: SVC(), "SVC").regress(ExampleSet(v, u))
    """

    def __init__(
        self,
        estimator: Callable[[np.ndarray, np.ndarray], Any],
        name: str,
        choices: Mapping[str, Sequence[int | float]] | None = None,
    ):
        self.estimator, self.name, self.choices = estimator, name, dict(choices or {})

    def __repr__(self) -> str:
        chosen = (f", {name} of {tuple(values)}" for name, values in self.choices.items())
        return f"ScikitClassifier({self.name}{''.join(chosen)})"

    def regress(self, examples: ExampleSet) -> ClassifierOperator:
        v, u = rows_of(examples.v, "examples.v"), rows_of(examples.u, "examples.u")
        if not (np.isin(u, (0.0, 1.0)).all() and (u.sum(1) == 1).all()):
            raise TransduceError(
                "examples.u are not one-hot vectors; a classifier expects the class of each "
                "example as one. Encode them."
            )
        labels = u.argmax(1)
        estimator = self.estimator(v, labels) if len(np.unique(labels)) > 1 else DummyClassifier()
        return ClassifierOperator(estimator.fit(v, labels), v.shape[1:], u.shape[1])


@dataclass(frozen=True, eq=False)
class ClassifierOperator:
    """v -> the probabilities that the fitted classifier gives, or 1 for the class that it says."""

    fitted: Any
    v_shape: tuple[int, ...]
    classes: int

    def __call__(self, v: Any) -> Any:
        expect_grid(v, self.v_shape)
        rows = rows_of(v, "v")
        answers = np.zeros((len(v), self.classes))
        if hasattr(self.fitted, "predict_proba"):
            answers[:, self.fitted.classes_] = self.fitted.predict_proba(rows)
        else:
            answers[range(len(v)), self.fitted.predict(rows)] = 1.0
        return like(torch.from_numpy(answers), v)


def neighbours_classifier() -> ScikitClassifier:
    """The number of neighbours and their weights chosen by cross-validation."""

    def estimator(v: np.ndarray, labels: np.ndarray) -> Any:
        few = [k for k in NEIGHBOURS if k <= len(v) - -(-len(v) // FOLDS)]
        return chosen(
            KNeighborsClassifier(1),
            {"n_neighbors": few, "weights": ["uniform", "distance"]},
            labels,
        )

    return ScikitClassifier(estimator, "k-nearest neighbours", {"k": NEIGHBOURS})


def logistic_regression() -> ScikitClassifier:
    """The penalty chosen by cross-validation."""
    choices = {"C": PENALTIES}
    return ScikitClassifier(
        lambda v, labels: chosen(LogisticRegression(max_iter=500, tol=1e-3), choices, labels),
        "logistic regression",
        {"C": PENALTIES.tolist()},
    )


def support_vectors() -> ScikitClassifier:
    """Cost and width chosen by cross-validation."""
    choices = {"C": COSTS, "gamma": WIDTHS}
    return ScikitClassifier(
        lambda v, labels: chosen(SVC(), choices, labels),
        "support vectors",
        choices,
    )


def pixel_kernel_ridge() -> KernelRidge:
    """Kernel ridge with widths and ridges for images."""
    return KernelRidge(PIXEL_GAMMAS, PIXEL_LAMBDAS)


def chosen(estimator: Any, choices: dict[str, Any], labels: np.ndarray) -> Any:
    """The estimator with the choice of greatest cross-validated accuracy; as it is where a part
    would show a single class."""
    folds = KFold(min(len(labels), FOLDS), shuffle=True, random_state=0)
    if any(len(np.unique(labels[part])) < 2 for part, _ in folds.split(labels)):
        return estimator
    return GridSearchCV(estimator, choices, cv=folds)
