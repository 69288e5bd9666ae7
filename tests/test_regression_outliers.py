"""Outliers in the report: wrong pairs are found, and exact data have none."""

import numpy as np
import pytest

import transduce

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
@pytest.mark.parametrize("n", [15, 40, 100])
@pytest.mark.parametrize("seed", [0, 1])
def test_exact_data_have_no_outliers(task, n, seed):
    found = report(*task(n, seed))
    assert found.outliers == ()
    assert not any("do not fit" in text for text in found.warnings)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("n", [15, 40, 100])
def test_a_row_ten_times_too_large_is_found(task, n):
    v, u, options = task(n, 0)
    assert report(v, enlarged(u, n // 3), options).outliers == (n // 3,)


@pytest.mark.parametrize("task", [arctangent, linear, edge])
@pytest.mark.parametrize("n", [40, 100])
def test_the_u_of_another_row_is_found(task, n):
    v, u, options = task(n, 0)
    assert report(v, swapped(u, n // 3), options).outliers == (n // 3,)


def test_several_wrong_rows_are_found():
    v, u, options = arctangent(60, 0)
    wrong = (5, 20, 41)
    for i in wrong:
        u = swapped(u, i)
    found = report(v, u, options)
    assert found.outliers == wrong
    assert "examples 5, 20, 41 do not fit the others: check them, or O.drop them." in found.warnings


def test_wrong_rows_among_many_are_found():
    v, u, options = linear(300, 0)
    assert report(v, enlarged(u, 7), options).outliers == (7,)
