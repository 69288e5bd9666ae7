"""Outliers in the report: wrong pairs are found, and exact data have none."""

import numpy as np
import pytest

import transduce
from transduce.regression import outliers

X = np.linspace(0, 1, 40)


def arctangent(n, seed):
    q = np.random.default_rng(seed).uniform(size=(n, 2))
    u = np.arctan(3 * (q[:, :1] - 0.5) + 4 * (X - 0.5) * q[:, 1:])
    return None, u, {"parameters": q, "x_u": X}


def oscillator(n, seed):
    g, t = np.random.default_rng(seed), 5 * X
    low, high = [1, 5, 0.2, 0.5], [2, 15, 0.8, 1.5]
    mass, stiffness, damping, push = p = g.uniform(low, high, (n, 4)).T
    rate = damping / mass / 2
    frequency = np.sqrt(stiffness / mass - rate**2)
    wave = np.exp(-np.outer(rate, t)) * np.sin(np.outer(frequency, t))
    return None, (push / mass / frequency)[:, None] * wave, {"parameters": p.T, "x_u": t}


def linear(n, seed):
    """A blur of random curves."""
    g, k = np.random.default_rng(seed), np.arange(1, 9)
    v = g.standard_normal((n, 8)) / k @ np.sin(np.pi * np.outer(k, X))
    return v, v @ np.exp(-((X[:, None] - X) ** 2) / 0.02) / 40, {"x": X}


def edge(n, seed):
    """One parameter with a front: the first and last runs have no neighbour on one side."""
    q = np.random.default_rng(seed).uniform(-1, 1, n)
    return None, np.arctan(8 * (2 * X - 1 - q[:, None])), {"parameters": q}


TASKS = (arctangent, oscillator, linear, edge)


def report(v, u, options):
    return transduce.regress(v, u, **options).report()


def swapped(u, i):
    u = u.copy()
    u[i] = u[(i + len(u) // 2) % len(u)]
    return u


def enlarged(u, i):
    u = u.copy()
    u[i] = 10 * u[i]
    return u


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("n", [15, 100])
def test_exact_data_have_no_outliers(task, n):
    found = report(*task(n, 0))
    assert found.outliers == ()
    assert not any("do not fit" in text for text in found.warnings)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("n", [15, 100])
def test_a_row_ten_times_too_large_is_found(task, n):
    v, u, options = task(n, 0)
    assert report(v, enlarged(u, n // 3), options).outliers == (n // 3,)


@pytest.mark.parametrize("task", [arctangent, linear, edge])
def test_the_u_of_another_row_is_found(task):
    v, u, options = task(100, 0)
    assert report(v, swapped(u, 33), options).outliers == (33,)


def test_several_wrong_rows_are_found():
    v, u, options = arctangent(60, 0)
    wrong = (5, 20, 41)
    for i in wrong:
        u = swapped(u, i)
    found = report(v, u, options)
    assert found.outliers == wrong
    assert "examples 5, 20, 41 do not fit the others: check them, or O.drop them." in found.warnings


def with_other_curves(u, count, seed):
    """u with a random curve added to some rows, and these rows."""
    g = np.random.default_rng(seed)
    rows = np.sort(g.choice(len(u), count, replace=False))
    curves = g.standard_normal((count, 4)) @ np.sin(np.pi * np.outer(np.arange(1, 5), X) + 0.5)
    u = u.copy()
    u[rows] += u.std() * curves / np.sqrt(np.square(curves).mean(1, keepdims=True))
    return u, rows


@pytest.mark.parametrize("task", [arctangent, linear])
@pytest.mark.parametrize(("n", "count"), [(30, 3), (120, 6), (500, 20)])
def test_many_wrong_rows_are_found(task, n, count):
    v, u, options = task(n, 1)
    u, rows = with_other_curves(u, count, 1)
    assert report(v, u, options).outliers == tuple(rows)


@pytest.mark.parametrize("task", [arctangent, linear, edge])
def test_wrong_rows_of_noisy_data_are_found(task):
    v, u, options = task(60, 0)
    u, rows = with_other_curves(u + noise(u, 0.05), 3, 0)
    assert report(v, u, options).outliers == tuple(rows)


def noise(u, size):
    return size * u.std() * np.random.default_rng(5).standard_normal(u.shape)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("size", [0.01, 0.5])
def test_noisy_data_have_no_outliers(task, size):
    v, u, options = task(40, 2)
    assert report(v, u + noise(u, size), options).outliers == ()


@pytest.mark.parametrize("size", [0.0, 0.05])
def test_designs_with_few_large_inputs_have_no_outliers(size):
    """Sizes of v and values of parameters are lognormal."""
    v, _, options = linear(40, 0)
    v = v * np.exp(1.2 * np.random.default_rng(1).standard_normal((40, 1)))
    u = v @ np.exp(-((X[:, None] - X) ** 2) / 0.02) / 40
    assert report(v, u + noise(u, size), options).outliers == ()
    q = np.exp(np.random.default_rng(2).standard_normal((40, 2)))
    u = np.log1p(q[:, :1] * X) + np.sqrt(q[:, 1:]) * X**2
    assert report(None, u + noise(u, size), {"parameters": q}).outliers == ()


def test_the_search_takes_few_regressions(monkeypatch):
    v, u, options = arctangent(60, 0)
    O = transduce.regress(v, with_other_curves(u, 12, 0)[0], **options)
    calls, original = [], outliers.engine_for
    monkeypatch.setattr(outliers, "engine_for", lambda *a: calls.append(1) or original(*a))
    assert len(O.report().outliers) == 12
    assert len(calls) <= 2 * outliers.ROUNDS + outliers.TRIALS + 2


def test_models_that_are_refitted_for_each_residual_are_not_searched(monkeypatch):
    v, u, options = linear(12, 0)
    O = transduce.regress(v, enlarged(u, 3), model="nearest-neighbours", **options)
    monkeypatch.setattr(outliers, "engine_for", None)
    assert O.report().outliers == ()


def test_wrong_rows_among_many_are_found():
    v, u, options = linear(300, 0)
    assert report(v, enlarged(u, 7), options).outliers == (7,)
