"""The rivals on functions of two variables, and those that are for periodic ones: local ridge, the
FNO, one operator for a family."""

import numpy as np
import pytest
import torch

from paper.baselines import FamilyWide
from transduce.baselines import (
    BASELINES,
    DeepOnet,
    Fitting,
    Fno,
    Identity,
    LocalRidge,
    baseline,
    classical,
)
from transduce.baselines.local import Window, _solved
from transduce.families import Burgers2d
from transduce.metrics import relative_mse
from transduce.random_fields import generator_for, periodic_field
from transduce.types import ExampleSet, Operator, TransduceError

SHORT = Fitting(epochs=2, batch=10)
QUICK = {
    "fno": lambda fitting=SHORT: Fno(modes=4, width=8, layers=2, padding=0.0, fitting=fitting),
    "deeponet": lambda fitting=SHORT: DeepOnet(width=8, layers=1, fitting=fitting),
    "local-kernel-ridge": lambda: LocalRidge(
        points=800, centres=150, spacings=(1, 2), gammas=(0.1, 0.3)
    ),
}
OF_ONE_VARIABLE = ("window", "piecewise-direct-standardisation")
AT_ONCE = {
    name: make
    for name, make in BASELINES.items()
    if not name.startswith(("fno", "deeponet", "local", *OF_ONE_VARIABLE))
}
HERE = AT_ONCE | QUICK


def smooth(n, points=16, seed=0):
    """Periodic functions of two components."""
    generator = torch.Generator().manual_seed(seed)
    return periodic_field(2 * n, points, 0.2, generator).reshape(n, 2, points, points).numpy()


def steepened(v):
    """An operator that is not linear and commutes with translations."""
    return v + 0.2 * (np.roll(v, 1, -1) - v) * v[:, ::-1]


@pytest.fixture(scope="module")
def task():
    """A Burgers operator on a coarse grid: 20 examples and 5 queries."""
    return Burgers2d(points=16, nu=0.1, resolution=32).sample_task(
        20, 5, generator_for("validation", 3)
    )


@pytest.mark.parametrize("name", HERE)
def test_every_rival_takes_functions_of_two_variables(name, task):
    O = HERE[name]().regress(task.examples)
    assert isinstance(O, Operator)
    u_hat = O(task.queries.v)
    assert (
        isinstance(u_hat, torch.Tensor)
        and u_hat.dtype == torch.float32
        and u_hat.shape == (5, 2, 16, 16)
    )
    torch.testing.assert_close(O(task.queries.v[2:3]), u_hat[2:3], rtol=1e-4, atol=1e-5)
    assert relative_mse(u_hat, task.queries.u) < 1.5


@pytest.mark.parametrize("name", sorted(AT_ONCE.keys() - {"mean", "identity", "gaussian-process"}))
def test_a_regression_of_few_numbers_is_that_of_all_values(name, task, monkeypatch):
    answers = []
    for many in (10**6, 10):
        monkeypatch.setattr(classical, "MANY", many)
        answers.append(baseline(name).regress(task.examples)(task.queries.v))
    torch.testing.assert_close(*answers, rtol=1e-3, atol=1e-5)


def test_the_likelihood_of_few_numbers_is_that_of_all_values(task, monkeypatch):
    """Up to a factor, 20 numbers for 512 values: its maximum is where it was."""
    whole = baseline("gaussian-process").regress(task.examples)
    monkeypatch.setattr(classical, "MANY", 10)
    few = baseline("gaussian-process").regress(task.examples)
    for theta in (whole.fitted.kernel_.theta, np.zeros(5)):
        assert np.isclose(
            few.fitted.log_marginal_likelihood(theta),
            20 / 512 * whole.fitted.log_marginal_likelihood(theta),
        )


def test_leave_one_out_errors_are_sums_over_the_grid(task, monkeypatch):
    ridge = baseline("kernel-ridge")
    whole = ridge.regress(task.examples)
    monkeypatch.setattr(classical, "MANY", 10)
    few = ridge.regress(task.examples)
    assert (few.gamma, few.ridge) == (whole.gamma, whole.ridge) and np.isclose(
        few.leave_one_out, whole.leave_one_out
    )


def test_regressions_that_know_translations_are_ahead_of_those_that_do_not(task):
    errors = {
        name: float(
            relative_mse(HERE[name]().regress(task.examples)(task.queries.v), task.queries.u)
        )
        for name in HERE
    }
    assert errors["local-kernel-ridge"] < 0.2 * errors["identity"]
    assert errors["identity"] < 0.3 * min(errors[name] for name in AT_ONCE.keys() - {"identity"})


@pytest.mark.parametrize("name", ["fno", "local-kernel-ridge"])
def test_periodic_rivals_commute_with_translations(name):
    v = smooth(8)
    O = QUICK[name]().regress(ExampleSet(v, steepened(v)))
    shifted = np.roll(v, (3, 5), (-2, -1))
    assert np.allclose(O(shifted), np.roll(O(v), (3, 5), (-2, -1)), atol=1e-4)


@pytest.mark.parametrize(
    "kind",
    [lambda f: f, lambda f: f[:, 0, 0], lambda f: f[:, :, 0]],
    ids=["2-D", "1-D", "1-D of two channels"],
)
def test_local_ridge_learns_what_is_local(kind):
    v, v_query = kind(smooth(12)), kind(smooth(4, seed=1))
    u, u_query = (f + 0.3 * np.roll(f, 1, -1) * f for f in (v, v_query))
    O = QUICK["local-kernel-ridge"]().regress(ExampleSet(v, u))
    assert relative_mse(O(v_query), u_query) < 1e-2 * relative_mse(v_query, u_query)
    assert (O.window.across, O.window.spacing) == (5, 1)


def test_local_ridge_takes_one_example_and_its_own_draws():
    v = smooth(1)
    O = QUICK["local-kernel-ridge"]().regress(ExampleSet(v, v))
    assert np.allclose(O(smooth(2, seed=1)), smooth(2, seed=1), atol=1e-5)
    first, second = (
        QUICK["local-kernel-ridge"]().regress(ExampleSet(v, steepened(v)))(v) for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_a_window_is_what_is_around_a_place():
    v = np.arange(2 * 2 * 6 * 7, dtype=float).reshape(2, 2, 6, 7)
    (w,) = Window(3, 2).of(v, np.array([42 + 5 * 7 + 1]))  # the second function at (5, 1)
    expected = [v[1, :, x, y] for x in (3, 5, 1) for y in (6, 1, 3)]
    assert np.array_equal(w, np.concatenate(expected))


def test_local_ridge_solves_what_it_says():
    """The gradient of the objective is zero."""
    rng = np.random.default_rng(0)
    w, y, gamma, ridge = rng.normal(size=(60, 4)), rng.normal(size=(60, 2)), 0.3, 1e-2
    alpha = _solved(w, w[:15], y, gamma)(ridge)
    K, K_centres = (
        np.exp(-gamma * np.square(f[:, None] - w[None, :15]).sum(-1)) for f in (w, w[:15])
    )
    assert np.allclose(K.T @ (K @ alpha - y) / 60 + ridge * K_centres @ alpha, 0, atol=1e-10)


def test_local_ridge_does_not_learn_noise():
    """Of noise in all images, the examples held out say that nothing is to be learned."""
    v, v_query = smooth(20), smooth(4, seed=1)
    noise = np.random.default_rng(0).normal(size=v.shape)
    u_hat = QUICK["local-kernel-ridge"]().regress(ExampleSet(v, v + noise))(v_query)
    assert np.square(u_hat - v_query).mean() < 0.1 * np.square(noise).mean()


@pytest.mark.parametrize("name", OF_ONE_VARIABLE)
def test_baselines_of_one_variable_refuse_two(name, task):
    with pytest.raises(TransduceError, match="leave this baseline out"):
        baseline(name).regress(task.examples)


@pytest.mark.parametrize(("v", "u"), [((5, 33), (5, 17)), ((5, 2, 8, 8), (5, 1, 8, 8))])
def test_local_ridge_refuses_unlike_functions(v, u):
    with pytest.raises(TransduceError, match="expects the same"):
        LocalRidge().regress(ExampleSet(np.ones(v), np.ones(u)))


def test_fno_keeps_frequencies_of_both_signs_along_every_axis():
    O = QUICK["fno"]().regress(ExampleSet(smooth(2), smooth(2)))
    # The last axis of a real transform has no negative ones.
    assert tuple(O.network.fno_blocks.convs[0].weight.shape)[-2:] == (
        7,
        4,
    )


def test_fno_learns_a_function_of_two_variables_and_answers_on_any_grid():
    v, v_query = smooth(20), smooth(5, seed=1)
    u, u_query = (np.roll(f, 4, -2) + 0.3 * np.roll(f, 4, -1) ** 2 for f in (v, v_query))
    O = QUICK["fno"](Fitting(epochs=60, lr=1e-2, batch=10, falling=True)).regress(ExampleSet(v, u))
    assert relative_mse(O(v_query), u_query) < 0.1
    assert O(smooth(3, points=24)).shape == (3, 2, 24, 24)


def test_the_periodic_fno_is_without_padding():
    R = baseline("fno-periodic")
    assert isinstance(R, Fno) and R.padding == 0.0


@pytest.fixture
def three():
    """Examples of u = v, 2 v and 3 v."""
    v = torch.randn(3, 40, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return [ExampleSet(f, c * f) for c, f in enumerate(v, start=1)]


def test_an_operator_for_a_family_is_the_mean_of_its_operators(three):
    T = FamilyWide(baseline("linear-ridge"), lambda: three)
    v = torch.randn(6, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for examples in three:
        assert relative_mse(T.regress(examples)(v), 2 * v) < 0.1


def test_an_operator_for_a_family_is_fitted_once_to_all_pairs(three):
    asked, seen = [], []

    class Watched:
        def regress(self, examples):
            seen.append(examples)
            return Identity().regress(examples)

    def examples_of_each():
        asked.append(1)
        return iter(three)

    T = FamilyWide(Watched(), examples_of_each)
    assert asked == []
    first, second = (T.regress(examples) for examples in three[:2])
    assert first is second and asked == [1]
    (pooled,) = seen
    assert torch.equal(pooled.v, torch.cat([examples.v for examples in three])) and torch.equal(
        pooled.u[40:80], three[1].u
    )


def test_a_family_wide_fno_holds_pairs_out_and_stops(three):
    epochs = []
    fitting = Fitting(
        epochs=200, lr=3e-2, held_out=0.2, patience=3, stop=lambda O: epochs.append(O) is not None
    )
    T = FamilyWide(Fno(modes=3, width=4, layers=1, fitting=fitting), lambda: three)
    assert T.regress(three[0])(three[1].v).shape == (40, 12)
    assert 3 < len(epochs) < 200
