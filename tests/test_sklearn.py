"""The interface of scikit-learn: its own checks, functions and vectors as rows, files without
pickle, bad input."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import transduce
from transduce import ExampleSet, TransduceError, Transducer, models
from transduce.families import AdvectionDiffusionReaction
from transduce.random_fields import generator_for
from transduce.sklearn import CANNOT_APPLY, TransducerRegressor
from transduce.spaces import FourierModes


@pytest.fixture(scope="module")
def tables():
    task = AdvectionDiffusionReaction().sample_task(40, 10, generator_for("validation", 3))
    return [
        np.asarray(f) for f in (task.examples.v, task.examples.u, task.queries.v, task.queries.u)
    ]


@parametrize_with_checks(
    [TransducerRegressor(), TransducerRegressor("adr", vectors=True)],
    expected_failed_checks=lambda estimator: CANNOT_APPLY if estimator.vectors else {},
    xfail_strict=True,
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_default_is_the_front_door(tables):
    V, U, v, u = tables
    found, O = TransducerRegressor().fit(V, U), transduce.regress(V, U)
    np.testing.assert_allclose(found.predict(v), O(v), atol=1e-6)  # O answers in single precision
    for ours, theirs in zip(found.predict_band(v, 0.8), O.predict(v, band=0.8), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert found.score(v, u) > 0.9
    assert TransducerRegressor().fit(V, U[::-1]).score(v, u) < 0.5


def test_any_columns_without_vectors(tables):
    """Values of functions to other points, and few columns as plain numbers."""
    V, U, v, u = tables
    assert TransducerRegressor().fit(V[:, ::2], U[:, ::5]).score(v[:, ::2], u[:, ::5]) > 0.9
    X, y = make_friedman1(150, n_features=5, noise=0.0, random_state=0)
    scores = [cross_val_score(R, X, y, cv=3).mean() for R in (TransducerRegressor(), RidgeCV())]
    assert scores[0] > 0.9 > 0.8 > scores[1]
    mean, low, high = TransducerRegressor().fit(X, y).predict_band(X[:7])
    assert mean.shape == (7,) and (low <= mean).all() and (mean <= high).all()


def test_many_columns_as_vectors():
    """vectors=True says that columns are no grid, so that their order does not count."""
    X, y = make_friedman1(80, n_features=10, noise=0.0, random_state=0)
    outputs = np.stack([y, X[:, 0]], 1)
    fitted = TransducerRegressor(vectors=True).fit(X, outputs)
    shuffled = TransducerRegressor(vectors=True).fit(X[:, ::-1], outputs)
    assert fitted.predict(X[:5]).shape == (5, 2) and fitted.predict_band(X[:5])[0].shape == (5, 2)
    np.testing.assert_allclose(shuffled.predict(X[:5, ::-1]), fitted.predict(X[:5]), rtol=1e-4)


def test_it_is_the_regression_of_the_model(tables):
    V, U, v, u = tables
    found = TransducerRegressor("adr").fit(V, U)
    assert np.array_equal(
        found.predict(v), Transducer.from_pretrained("adr").regress(ExampleSet(V, U))(v)
    )
    assert found.score(v, u) > 0.999
    wrong = TransducerRegressor("adr").fit(V, U[::-1])
    assert wrong.score(v, u) < 0.5


def test_bands_are_those_of_the_regression(tables):
    V, U, v, _ = tables
    band = TransducerRegressor("adr").fit(V, U).predict_band(v, level=0.8)
    for ours, theirs in zip(
        band,
        Transducer.from_pretrained("adr").regress(ExampleSet(V, U)).predict(v, band=0.8),
        strict=True,
    ):
        assert np.array_equal(ours, theirs)


def test_in_a_pipeline_and_cloned(tables):
    V, U, v, _ = tables
    model = Transducer.from_pretrained("adr")
    pipeline = make_pipeline(
        FunctionTransformer(lambda f: f[:, ::-1]), clone(TransducerRegressor(model=model))
    )
    assert np.array_equal(
        pipeline.fit(V, U).predict(v),
        TransducerRegressor("adr").fit(V[:, ::-1], U).predict(v[:, ::-1]),
    )


def test_vectors_of_a_table():
    """A smooth map of five variables is learned from a hundred rows, which lines cannot."""
    X, y = make_friedman1(150, n_features=5, noise=0.0, random_state=0)
    scores = [
        cross_val_score(R, X, y, cv=3).mean()
        for R in (TransducerRegressor("adr", vectors=True), RidgeCV())
    ]
    assert scores[0] > 0.95 > 0.8 > scores[1]


@pytest.mark.parametrize("model", ["general", "adr"])
@pytest.mark.parametrize("vectors", [False, True])
def test_it_comes_back_from_its_file(model, vectors, tables, tmp_path):
    V, U, v, _ = tables
    rows = slice(0, 99) if vectors else slice(None)
    fitted = TransducerRegressor(model, vectors).fit(V[:, rows], U[:, 50] if vectors else U)
    fitted.save(tmp_path / "fitted.safetensors")
    back = TransducerRegressor.load(tmp_path / "fitted.safetensors")
    assert (
        np.array_equal(back.predict(v[:, rows]), fitted.predict(v[:, rows]))
        and back.vectors == vectors
    )
    with pytest.raises(TransduceError, match="exists already"):
        fitted.save(tmp_path / "fitted.safetensors")
    fitted.save(tmp_path / "fitted.safetensors", force=True)
    with pytest.raises(TransduceError, match=r"expected one of \.safetensors"):
        fitted.save(tmp_path / "fitted")


def test_columns_that_do_not_vary_do_no_harm(tables):
    V, U, v, _ = tables
    X, x = (np.column_stack([f[:, 10:90:20], np.full(len(f), 0.1)]) for f in (V, v))
    fitted = TransducerRegressor("adr", vectors=True).fit(X, U[:, 50])
    x_moved = x + np.array([0, 0, 0, 0, 1e-6])
    assert np.abs(fitted.predict(x_moved) - fitted.predict(x)).max() < 1e-4


def test_weights_that_changed_since_are_told_of(tables, tmp_path):
    V, U, *_ = tables
    model = Transducer.from_pretrained("adr")
    model.save_pretrained(tmp_path / "model.safetensors")
    TransducerRegressor(model=tmp_path / "model.safetensors").fit(V, U).save(
        tmp_path / "fitted.safetensors"
    )
    TransducerRegressor.load(tmp_path / "fitted.safetensors")
    model.save_pretrained(tmp_path / "model.safetensors", trained="further")
    with pytest.warns(UserWarning, match="are not those that"):
        TransducerRegressor.load(tmp_path / "fitted.safetensors")


def test_files_of_something_else(tables, tmp_path):
    V, U, *_ = tables
    with pytest.raises(NotFittedError):
        TransducerRegressor().save(tmp_path / "x.safetensors")
    model = Transducer.from_pretrained("adr")
    with pytest.raises(TransduceError, match="no name to write"):
        TransducerRegressor(model=model).fit(V, U).save(tmp_path / "x.safetensors")
    model.save_pretrained(tmp_path / "model.safetensors")
    with pytest.raises(TransduceError, match="is no TransducerRegressor"):
        TransducerRegressor.load(tmp_path / "model.safetensors")


def test_what_cannot_be_fitted_is_said(tables):
    V, U, *_ = tables
    with pytest.raises(TransduceError, match=r"at least 101 points.*model='general'"):
        TransducerRegressor("adr").fit(V[:, :3], U[:, 50])
    with pytest.raises(TransduceError, match="maps 2 channels of 2 variables to 2 of 2"):
        TransducerRegressor(model="burgers").fit(V, U)
    with pytest.raises(TransduceError, match="at most 99"):
        TransducerRegressor("adr", vectors=True).fit(V, U)
    periodic = models.representer(FourierModes(10), FourierModes(10), heads=1, width=4, hidden=8)
    with pytest.raises(TransduceError, match="expected SineModes"):
        TransducerRegressor(model=periodic, vectors=True).fit(V[:, :5], U[:, 0])
    with pytest.raises(TransduceError, match="no bands"):
        TransducerRegressor("adr", vectors=True).fit(V[:, :5], U[:, 50]).predict_band(V[:, :5])
    with pytest.raises(ValueError, match="NaN"):
        TransducerRegressor().fit(V, np.where(U > 0, np.nan, U))
    with pytest.raises(ValueError, match="inconsistent"):
        TransducerRegressor().fit(V, U[:-1])
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        TransducerRegressor().fit(V, csr_array(U))


def test_the_model_that_is_given_is_left_as_it_is(tables):
    V, U, *_ = tables
    model = Transducer.from_pretrained("adr")
    before = {key: value.clone() for key, value in model.state_dict().items()}
    TransducerRegressor(model=model, vectors=True).fit(V[:, :5], U[:, 0])
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
