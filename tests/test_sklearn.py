"""The interface of scikit-learn: its own checks, functions and vectors as rows, files without pickle, bad input."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from transduce import ExampleSet, TransduceError, Transducer
from transduce.families import AdvectionDiffusionReaction
from transduce.random_fields import generator_for
from transduce.sklearn import CANNOT_APPLY, TransducerRegressor


@pytest.fixture(scope="module")
def tables():
    task = AdvectionDiffusionReaction().sample_task(40, 10, generator_for("validation", 3))
    return [np.asarray(f) for f in (task.examples.v, task.examples.u, task.queries.v, task.queries.u)]


@parametrize_with_checks([TransducerRegressor(vectors=True)], expected_failed_checks=lambda _: CANNOT_APPLY)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_it_is_the_regression_of_the_model(tables):
    V, U, v, u = tables
    found = TransducerRegressor().fit(V, U)
    assert np.array_equal(found.predict(v), Transducer.from_pretrained("adr").regress(ExampleSet(V, U))(v))
    assert found.score(v, u) > 0.98
    wrong = TransducerRegressor().fit(V, U[::-1])
    assert wrong.score(v, u) < 0.5


def test_a_band_holds_the_answers(tables):
    V, U, v, u = tables
    mean, low, high = TransducerRegressor().fit(V, U).predict_band(v, level=0.9)
    assert mean.shape == u.shape and 0.75 < np.mean((low <= u) & (u <= high)) <= 1


def test_in_a_pipeline_and_cloned(tables):
    V, U, v, _ = tables
    model = Transducer.from_pretrained("adr")
    pipeline = make_pipeline(FunctionTransformer(lambda f: f[:, ::-1][:, ::-1]), clone(TransducerRegressor(model=model)))
    assert np.array_equal(pipeline.fit(V, U).predict(v), TransducerRegressor().fit(V, U).predict(v))


def test_vectors_of_a_table():
    """A smooth map of five variables is learned from a hundred rows, which lines cannot."""
    X, y = make_friedman1(150, n_features=5, noise=0.0, random_state=0)
    scores = [cross_val_score(R, X, y, cv=3).mean() for R in (TransducerRegressor(vectors=True), RidgeCV())]
    assert scores[0] > 0.95 > 0.8 > scores[1]


@pytest.mark.parametrize("vectors", [False, True])
def test_it_comes_back_from_its_file(vectors, tables, tmp_path):
    V, U, v, _ = tables
    rows = slice(0, 99) if vectors else slice(None)
    fitted = TransducerRegressor(vectors=vectors).fit(V[:, rows], U[:, 50] if vectors else U)
    fitted.save(tmp_path / "fitted.safetensors")
    back = TransducerRegressor.load(tmp_path / "fitted.safetensors")
    assert np.array_equal(back.predict(v[:, rows]), fitted.predict(v[:, rows])) and back.vectors == vectors
    with pytest.raises(TransduceError, match="exists already"):
        fitted.save(tmp_path / "fitted.safetensors")
    fitted.save(tmp_path / "fitted.safetensors", overwrite=True)


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
    with pytest.raises(TransduceError, match="functions have at least 3"):
        TransducerRegressor().fit(V, U[:, 50])
    with pytest.raises(TransduceError, match="2 variables and 2 channels"):
        TransducerRegressor(model="burgers").fit(V, U)
    with pytest.raises(TransduceError, match="at most 99"):
        TransducerRegressor(vectors=True).fit(V, U)
    with pytest.raises(TransduceError, match="no bands"):
        TransducerRegressor(vectors=True).fit(V[:, :5], U[:, 0]).predict_band(V[:, :5])
    with pytest.raises(ValueError, match="NaN"):
        TransducerRegressor().fit(V, np.where(U > 0, np.nan, U))
    with pytest.raises(ValueError, match="inconsistent"):
        TransducerRegressor().fit(V, U[:-1])


def test_the_model_that_is_given_is_left_as_it_is(tables):
    V, U, *_ = tables
    model = Transducer.from_pretrained("adr")
    before = {key: value.clone() for key, value in model.state_dict().items()}
    TransducerRegressor(model=model, vectors=True).fit(V[:, :5], U[:, 0])
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
