"""The interface of scikit-learn, for functions, vectors and images: fit(X, y) regresses an
operator, predict(X) calls it."""

from .classifier import TransducerClassifier as TransducerClassifier
from .regressor import TransducerRegressor as TransducerRegressor

CANNOT_APPLY = {
    "check_methods_subset_invariance": (
        "models are of single precision, and answers to fewer rows may be rounded otherwise"
    )
}
