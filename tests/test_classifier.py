"""The classifier with the interface of scikit-learn: its own checks, any labels, probabilities that
are kept, files, bad input."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch.nn.functional import cross_entropy

from paper.models import mirrored_rbf
from transduce import Euclidean, ExampleSet, TransduceError, models, weights
from transduce.families import resized
from transduce.sklearn import CANNOT_APPLY, TransducerClassifier
from transduce.sklearn.classifier import squares
from transduce.uncertainty import class_probabilities
from transduce.uncertainty.classes import BETAS, USUAL, left_out, sharpness

IMAGES, LABELS = resized(load_digits().data / 16), load_digits().target
NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


def small():
    """An untrained Transducer from images to ten classes, whose kernels still solve for the
    examples."""
    torch.manual_seed(0)
    return models.images(Euclidean(784), Euclidean(10), (8, 8, 8), width=16).eval()


def small_softmax():
    """An untrained Transducer that averages its examples."""
    torch.manual_seed(0)
    options = {"depth": 1, "heads": 4, "width": 16, "hidden": 32}
    return mirrored_rbf(Euclidean(784), Euclidean(10), **options).eval()


@pytest.fixture(scope="module")
def T():
    return small()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "small.safetensors"
    small().save_pretrained(path)
    return path


def drawn(n, m, seed=0, classes=range(10)):
    """n examples of these digits and m others."""
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(np.isin(LABELS, classes)))[
        : n + m
    ]
    return IMAGES[rows[:n]], LABELS[rows[:n]], IMAGES[rows[n:]], LABELS[rows[n:]]


@parametrize_with_checks(
    [TransducerClassifier(vectors=True)],
    expected_failed_checks=lambda _: CANNOT_APPLY,
    xfail_strict=True,
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_it_is_the_regression_of_the_model(T):
    X, y, x, truth = drawn(100, 200)
    fitted = TransducerClassifier(model=T).fit(X, y)
    O = T.regress(ExampleSet(X.astype(np.float32), np.eye(10)[y]))
    p = fitted.predict_proba(x)
    assert np.array_equal(p, class_probabilities(O, x.astype(np.float32)).numpy())
    assert np.abs(p.sum(1) - 1).max() < 1e-12 and p.min() >= 0
    assert np.array_equal(fitted.predict(x), fitted.classes_[p.argmax(1)])
    assert np.array_equal(fitted.predict(x), O(x.astype(np.float32)).argmax(1))
    assert fitted.score(x, truth) == np.mean(fitted.predict(x) == truth) > 0.8


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_two_to_ten_classes(classes, T):
    X, y, x, truth = drawn(20 * classes, 50, classes=range(classes))
    fitted = TransducerClassifier(model=T).fit(X, y)
    assert fitted.predict_proba(x).shape == (50, classes) and fitted.score(x, truth) > 0.8


@pytest.mark.parametrize(
    "named",
    [
        NAMES,
        NAMES.astype(object),
        -10 * np.arange(10),
        np.arange(10).astype(np.uint8),
        np.arange(10.0),
        np.arange(10) % 2 == 0,
        np.arange(10).astype("datetime64[D]"),
    ],
    ids=lambda named: str(named.dtype),
)
def test_any_labels(named, T):
    """Answers are of the kind that the labels were, and columns in the order of `classes_`."""
    X, y, x, truth = drawn(100, 100)
    fitted = TransducerClassifier(model=T).fit(X, named[y])
    assert (
        np.array_equal(fitted.classes_, np.unique(named)) and fitted.classes_.dtype == named.dtype
    )
    assert fitted.predict(x).dtype == named.dtype and fitted.score(x, named[truth]) > 0.8
    p = fitted.predict_proba(x)
    of_truth = p[np.arange(100), np.searchsorted(fitted.classes_, named[truth])]
    assert np.mean(of_truth == p.max(1)) == fitted.score(x, named[truth])


def test_labels_of_a_table(T):
    X, y, x, _ = drawn(60, 20)
    expected = TransducerClassifier(model=T).fit(X, NAMES[y]).predict(x)
    for labels in (list(NAMES[y]), pd.Series(NAMES[y]), pd.Series(NAMES[y], dtype="category")):
        assert np.array_equal(
            TransducerClassifier(model=T).fit(pd.DataFrame(X), labels).predict(pd.DataFrame(x)),
            expected,
        )


def test_order_of_examples_does_not_matter(T):
    X, y, x, _ = drawn(80, 100)
    p, backwards = (
        TransducerClassifier(model=T).fit(X[order], y[order]).predict_proba(x)
        for order in (slice(None), slice(None, None, -1))
    )
    assert np.allclose(p, backwards, atol=1e-4)


def test_renaming_classes_renames_answers(T):
    X, y, x, _ = drawn(80, 100)
    numbers, names = (
        TransducerClassifier(model=T).fit(X, y),
        TransducerClassifier(model=T).fit(X, NAMES[y]),
    )
    assert np.array_equal(NAMES[numbers.predict(x)], names.predict(x))
    assert np.allclose(
        numbers.predict_proba(x)[:, np.argsort(NAMES)], names.predict_proba(x), atol=1e-4
    )


def test_wrong_labels_make_the_score_fall(T):
    X, y, x, truth = drawn(100, 200)
    scores = []
    for share in (0.0, 0.5, 1.0):
        wrong = np.random.default_rng(0).random(100) < share
        scores.append(
            TransducerClassifier(model=T).fit(X, np.where(wrong, (y + 1) % 10, y)).score(x, truth)
        )
    assert scores[0] > scores[1] + 0.1 > scores[2] + 0.2


def test_a_class_that_no_example_shows_gets_no_column(T):
    X, y, *_ = drawn(60, 0, classes=(1, 4, 7))
    fitted = TransducerClassifier(model=T).fit(X, y)
    p = fitted.predict_proba(IMAGES[LABELS == 3])
    assert fitted.classes_.tolist() == [1, 4, 7] and p.shape[1] == 3 and np.allclose(p.sum(1), 1)
    O = T.regress(ExampleSet(X.astype(np.float32), np.eye(10)[y]))
    assert class_probabilities(O, X)[:, [0, 2, 3, 5, 6, 8, 9]].abs().max() == 0


def test_one_example_of_each_class(T):
    X, y, x, _ = drawn(200, 50)
    first = [np.flatnonzero(y == digit)[0] for digit in range(10)]
    fitted = TransducerClassifier(model=T).fit(X[first], y[first])
    assert (
        np.array_equal(fitted.predict(X[first]), y[first])
        and np.isfinite(fitted.predict_proba(x)).all()
    )


def test_in_a_pipeline_cloned_and_cross_validated(T):
    X, y, *_ = drawn(120, 0)
    mirrored = make_pipeline(
        FunctionTransformer(lambda rows: rows[:, ::-1]), TransducerClassifier(model=T)
    )
    expected = TransducerClassifier(model=T).fit(X[:, ::-1], NAMES[y]).predict(X[:, ::-1])
    assert np.array_equal(clone(mirrored).fit(X, NAMES[y]).predict(X), expected)
    assert cross_val_score(mirrored, X, NAMES[y], cv=3).mean() > 0.7
    search = GridSearchCV(
        TransducerClassifier(model=T), {"scale": [False, True]}, cv=3, error_score=0.0
    )
    with pytest.warns(FitFailedWarning, match="expected pixels from 0 to 1"):
        assert search.fit(255 * X, y).best_params_ == {"scale": True}


def test_scale_brings_pixels_to_where_they_were(T):
    """Answers to images of any units are those to images from 0 to 1, faint ones too."""
    X, y, x, _ = drawn(80, 50)
    p = TransducerClassifier(model=T).fit(X, y).predict_proba(x)
    for low, unit in ((0, 255), (-1, 2), (0.5, 1e-3)):
        fitted = TransducerClassifier(model=T, scale=True).fit(low + unit * X, y)
        assert np.allclose(fitted.predict_proba(low + unit * x), p, atol=1e-4)


def test_vectors_of_a_table(T):
    X, y = load_iris(return_X_y=True)
    flowers = load_iris().target_names[y]
    assert (
        cross_val_score(TransducerClassifier(model=T, vectors=True), X, flowers, cv=5).mean() > 0.93
    )
    units = X * [1, 1e-6, 1e6, -1] + [0, 1, 0, 5]
    p, same = (
        TransducerClassifier(model=T, vectors=True).fit(rows, y).predict_proba(rows)
        for rows in (X * [1, 1, 1, -1], units)
    )
    assert np.allclose(p, same, atol=1e-4)


@pytest.mark.parametrize("columns", [1, 2, 13, 64, 783, 784])
def test_vectors_fill_the_image(columns):
    """All columns are shown, by squares of nearly one size; as many columns as pixels are the
    pixels."""
    shown = np.bincount(squares(columns, 28), minlength=columns)
    assert shown.sum() == 784 and shown.min() > 0
    assert shown.max() <= 2 * math.ceil(28 / math.ceil(math.sqrt(columns))) ** 2
    assert columns < 784 or np.array_equal(squares(columns, 28), np.arange(784))


def test_columns_that_do_not_vary_do_no_harm(T):
    X, y = load_iris(return_X_y=True)
    fitted = TransducerClassifier(model=T, vectors=True).fit(
        np.column_stack([X, np.full(150, 0.1)]), y
    )
    p, moved = (
        fitted.predict_proba(np.column_stack([X, np.full(150, value)]))
        for value in (0.1, 0.1 + 1e-6)
    )
    assert np.abs(p - moved).max() < 1e-3 and np.mean(fitted.classes_[p.argmax(1)] == y) > 0.93


def test_a_model_that_leaves_out_by_regressing_anew():
    """The paper's kernels: beta comes from as many regressions as there are examples."""
    T = small_softmax()
    X, y, x, truth = drawn(60, 100, classes=(0, 1))
    fitted = TransducerClassifier(model=T).fit(X, y)
    assert (
        not T.leaves_out
        and np.allclose(fitted.predict_proba(x).sum(1), 1)
        and fitted.score(x, truth) > 0.9
    )
    answers = [fitted.operator_.drop(i)(X[i : i + 1])[0] for i in range(60)]
    assert np.allclose(left_out(fitted.operator_), answers, atol=1e-4)


def test_beta_is_as_the_examples_make_likely(T):
    """Sure where examples tell of each other, unsure where labels are drawn; as usual where there
    is next to nothing to go by."""
    X, y, *_ = drawn(100, 0)
    told, drawn_at_random = (
        TransducerClassifier(model=T).fit(X, labels)
        for labels in (y, np.random.default_rng(0).permutation(y))
    )
    beta, at_random = (
        float(BETAS[fitted.sharpness_.argmax()]) for fitted in (told, drawn_at_random)
    )
    assert beta > 1.5 * at_random and np.isclose(told.sharpness_.sum(), 1)
    answers, classes = left_out(told.operator_), torch.from_numpy(y)
    losses = [float(cross_entropy(factor * beta * answers, classes)) for factor in (0.5, 1, 2)]
    assert losses[1] == min(losses)
    one = T.regress(ExampleSet(X[:1], np.eye(10)[y[:1]]))
    assert np.isclose(BETAS[sharpness(one).argmax()], USUAL, rtol=0.03) and np.array_equal(
        class_probabilities(one, X), np.eye(10)[np.full(100, y[0])]
    )


def test_a_model_in_training_is_left_as_it_is():
    T = small().train()
    before = {key: value.clone() for key, value in T.state_dict().items()}
    X, y, x, _ = drawn(30, 10)
    fitted = TransducerClassifier(model=T).fit(X, y)
    assert T.training and all(
        torch.equal(value, before[key]) for key, value in T.state_dict().items()
    )
    assert np.array_equal(
        fitted.predict_proba(x), TransducerClassifier(model=T.eval()).fit(X, y).predict_proba(x)
    )


@pytest.mark.parametrize("options", [{}, {"scale": True}, {"vectors": True}], ids=str)
@pytest.mark.parametrize(
    "named",
    [NAMES, NAMES.astype(object), -np.arange(10), np.arange(10.0), np.arange(10) > 4],
    ids=lambda named: str(named.dtype),
)
def test_it_comes_back_from_its_file(options, named, file, tmp_path):
    X, y, x, _ = drawn(40, 20)
    fitted = TransducerClassifier(model=file, **options).fit(X, named[y])
    fitted.save(tmp_path / "fitted.safetensors")
    back = TransducerClassifier.load(tmp_path / "fitted.safetensors")
    assert back.get_params() == {**fitted.get_params(), "model": str(file)}
    assert np.array_equal(back.predict_proba(x), fitted.predict_proba(x)) and np.array_equal(
        back.predict(x), fitted.predict(x)
    )
    assert back.classes_.dtype == fitted.classes_.dtype


def test_files_are_not_overwritten(file, tmp_path):
    X, y, *_ = drawn(20, 0)
    path, fitted = tmp_path / "fitted.safetensors", TransducerClassifier(model=file).fit(X, y)
    fitted.save(path)
    with pytest.raises(TransduceError, match="exists already"):
        TransducerClassifier(model=file).fit(X, NAMES[y]).save(path)
    assert np.array_equal(TransducerClassifier.load(path).classes_, fitted.classes_)
    TransducerClassifier(model=file).fit(X, NAMES[y]).save(path, force=True)
    assert TransducerClassifier.load(path).classes_.dtype.kind == "U"
    with pytest.raises(TransduceError, match=r"expected one of \.safetensors"):
        fitted.save(tmp_path / "fitted.pkl")


def test_files_of_something_else(T, file, tmp_path):
    X, y, *_ = drawn(20, 0)
    with pytest.raises(NotFittedError):
        TransducerClassifier(model=file).save(tmp_path / "x.safetensors")
    with pytest.raises(TransduceError, match="no name to write"):
        TransducerClassifier(model=T).fit(X, y).save(tmp_path / "x.safetensors")
    with pytest.raises(TransduceError, match="is no TransducerClassifier"):
        TransducerClassifier.load(file)
    days = np.arange(10).astype("datetime64[D]")
    with pytest.raises(
        TransduceError, match=r"classes of type date cannot be written.*astype\(str\)"
    ):
        TransducerClassifier(model=file).fit(X, days[y]).save(tmp_path / "x.safetensors")
    assert not (tmp_path / "x.safetensors").exists()


def test_weights_that_changed_since_are_told_of(tmp_path):
    X, y, *_ = drawn(20, 0)
    small().save_pretrained(tmp_path / "model.safetensors")
    TransducerClassifier(model=tmp_path / "model.safetensors").fit(X, y).save(
        tmp_path / "fitted.safetensors"
    )
    small().save_pretrained(tmp_path / "model.safetensors", trained="further")
    with pytest.warns(UserWarning, match="are not those that"):
        TransducerClassifier.load(tmp_path / "fitted.safetensors")


BAD = {
    "one class": (
        lambda X, y: (X, y[:1].repeat(len(y))),
        r"y has 1 class; .* expects 2 to 10\. Give examples of another",
    ),
    "eleven classes": (
        lambda X, y: (X, np.arange(len(y)) % 11),
        r"y has 11 classes; .* expects 2 to 10\. Merge some",
    ),
    "too few pixels": (
        lambda X, y: (X[:, :64], y),
        r"X has 64 columns; .* 28 x 28 = 784 pixels\. Resize them .*resized.*vectors=True",
    ),
    "too many pixels": (
        lambda X, y: (np.hstack([X, X]), y),
        r"X has 1568 columns; .* 784 pixels\. Resize them",
    ),
    "bytes": (
        lambda X, y: (255 * X, y),
        r"values from 0 to 255; expected pixels from 0 to 1\. Divide .*scale=True",
    ),
    "negative": (
        lambda X, y: (X - 0.5, y),
        r"values from -0\.5 to 0\.5; expected pixels from 0 to 1",
    ),
    "NaN": (
        lambda X, y: (np.where(np.arange(784) == 7, np.nan, X), y),
        r"NaN .* 30 of 23520, the first in row 0, column 7; .* Drop",
    ),
    "infinite": (
        lambda X, y: (np.where(X > 0.9, np.inf, X), y),
        r"infinite values.* expected finite numbers\. Drop those rows",
    ),
    "NaN among labels": (
        lambda X, y: (X, np.where(y == 0, np.nan, y)),
        r"y contains NaN.* Give y as n labels, one for each row of X\.$",
    ),
    "labels missing": (
        lambda X, y: (X, y[:-1]),
        r"X has 30 rows and y 29 labels; expected as many\. Drop",
    ),
    "no labels": (lambda X, y: (X, None), r"requires y .* Give y as n labels"),
    "no examples": (
        lambda X, y: (X[:0], y[:0]),
        r"0 sample\(s\) .* minimum of 1 .* Expected rows of numbers, one or more",
    ),
    "words": (
        lambda X, y: (np.full(X.shape, "ink"), y),
        r"could not convert string .* Expected rows of numbers",
    ),
    "images as planes": (
        lambda X, y: (X.reshape(-1, 28, 28), y),
        r"shape \(30, 28, 28\); .* your data: X\.reshape\(len\(X\), -1\)\.$",
    ),
    "one image": (
        lambda X, y: (X[0], y[:1]),
        r"^X has shape \(784,\); expected .* your data: X\.reshape\(1, -1\) for a single image\.$",
    ),
    "one label": (
        lambda X, y: (X, y[0]),
        r"1d array, got an array of shape \(\) .* Give y as n labels",
    ),
    "labels of a regression": (
        lambda X, y: (X, y + 0.5),
        r"not of classes: Unknown label type: continuous.* use TransducerRegressor; .*\(str\)\.$",
    ),
    "None among labels": (
        lambda X, y: (X, [None, *y[1:]]),
        r"^y is None for 1 of 30 rows; expected a class for each\. Drop the rows",
    ),
    "one-hot labels": (
        lambda X, y: (X, np.eye(10)[y]),
        r"shape \(30, 10\) .* Give y as n labels, .*: np\.argmax\(y, 1\), if y is one-hot\.$",
    ),
    "labels of two kinds": (
        lambda X, y: (X, np.where(y == 0, "none", y.astype(object))),
        r"not of classes: .* Expected labels of one kind",
    ),
    "ragged labels": (
        lambda X, y: (X, [[1], [2, 3]] * 15),
        r"inhomogeneous .* Give y as n labels, one for each row of X\.$",
    ),
    "several labels each": (
        lambda X, y: (X, np.column_stack([y, y])),
        r"1d array, got an array of shape \(30, 2\).* Give y as n labels",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_fitted_is_said(kind, T, tmp_path):
    """And a classifier that could not be fitted is not fitted."""
    X, y, *_ = drawn(30, 0)
    spoilt, message = BAD[kind]
    classifier = TransducerClassifier(model=T)
    with pytest.raises(TransduceError, match=f"(?s){message}"):
        classifier.fit(*spoilt(X, y))
    with pytest.raises(NotFittedError):
        classifier.predict(X)
    with pytest.raises(NotFittedError):
        classifier.save(tmp_path / "fitted.safetensors")


def test_what_cannot_be_predicted_is_said(T):
    X, y, x, _ = drawn(30, 5)
    fitted = TransducerClassifier(model=T).fit(X, y)
    for spoilt, message in (
        (
            x[:, :64],
            r"X has 64 features, but TransducerClassifier is expecting 784 .* 28 x 28 "
            r"pixels: see transduce\.families\.resized\.$",
        ),
        (
            x.astype(str).astype(object) + "?",
            r"could not convert string .* the same columns in fit and predict\.$",
        ),
        (255 * x, "from 0 to 255; expected pixels from 0 to 1"),
        (np.full_like(x, np.nan), "3920 of 3920, the first in row 0, column 0"),
        (x[0], r"^X has shape \(784,\); .* X\.reshape\(1, -1\) for a single image\.$"),
        (
            x[0].reshape(28, 28),
            r"^X has 28 features, but .*\. If X is a single image, give X\.reshape\(1, -1\)\.$",
        ),
    ):
        with pytest.raises(TransduceError, match=message):
            fitted.predict(spoilt)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        fitted.predict(csr_array(x))


def test_models_that_do_not_fit_are_named(T):
    X, y, *_ = drawn(30, 0)
    with pytest.raises(
        TransduceError,
        match=r"maps SineModes of size 99 to SineModes of size 99; expected one from square images",
    ):
        TransducerClassifier(model="adr").fit(X, y)
    lines = models.softmax(Euclidean(10), Euclidean(3), depth=1, heads=1, width=4, hidden=8)
    with pytest.raises(
        TransduceError, match=r"maps Euclidean of size 10 .* expected one from square images"
    ):
        TransducerClassifier(model=lines).fit(X, y)
    with pytest.raises(TransduceError, match="no model is called 'imagse'; known: "):
        TransducerClassifier(model="imagse").fit(X, y)
    with pytest.raises(
        TransduceError,
        match=r"X has 785 columns; this model expects vectors of at most 784\. Reduce",
    ):
        TransducerClassifier(model=T, vectors=True).fit(np.column_stack([X, X[:, 0]]), y)


def test_probabilities_are_of_classes(T):
    X, y, x, _ = drawn(30, 5)
    for u in (0.5 * np.eye(10)[y], np.ones((30, 10)), np.zeros((30, 10))):
        with pytest.raises(
            TransduceError, match=r"of shape \(30, 10\), are not one-hot.* Expected \(n, classes\)"
        ):
            class_probabilities(T.regress(ExampleSet(X, u)), x)


def test_the_bundled_model_by_name(tmp_path):
    """Digits of a hundred examples, which it has never seen the like of: nothing but its name is
    written."""
    assert TransducerClassifier().model == "images" and "images" in weights.names()
    X, y, x, truth = drawn(100, 500)
    fitted = TransducerClassifier().fit(X, NAMES[y])
    assert fitted.score(x, NAMES[truth]) > 0.93
    fitted.save(tmp_path / "fitted.safetensors")
    back = TransducerClassifier.load(tmp_path / "fitted.safetensors")
    assert back.model == "images" and np.array_equal(back.predict_proba(x), fitted.predict_proba(x))
    wrong = TransducerClassifier().fit(X, NAMES[(y + 1) % 10])
    assert wrong.score(x, NAMES[truth]) < 0.1


@pytest.mark.parametrize("n", [20, 100])
def test_probabilities_are_kept(n):
    """Of answers of which the bundled model is p sure, a share of about p is right: over ten tasks,
    to 5 % on average."""
    sure, right = [], []
    for seed in range(10):
        X, y, x, truth = drawn(n, 300, seed)
        fitted = TransducerClassifier().fit(X, y)
        p = fitted.predict_proba(x)
        sure.append(p.max(1))
        right.append(fitted.classes_[p.argmax(1)] == truth)
    assert calibration_error(np.concatenate(sure), np.concatenate(right)) < 0.05


def calibration_error(sure, right, bins=15):
    """sum_b |share right - mean probability| n_b / n over bins of probability."""
    which = np.minimum((sure * bins).astype(int), bins - 1)
    return sum(
        abs(np.sum(right[which == b]) - np.sum(sure[which == b])) for b in range(bins)
    ) / len(sure)


def test_queries_in_other_units_than_the_examples_are_told_of(T):
    X, y, x = drawn(60, 20)[:3]
    found = TransducerClassifier(model=T, scale=True).fit(255 * X, y)
    with pytest.warns(UserWarning, match="Give both in the same units"):
        found.predict(x)
