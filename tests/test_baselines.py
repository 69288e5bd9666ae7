"""One contract for every regressor, and the truths of each rival."""

import builtins

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import small_transducer

from transduce.baselines import Fno, KernelRidge, MeanOfExamples
from transduce.baselines.classical import KernelRidgeOperator
from transduce.families import AdvectionDiffusionReaction
from transduce.metrics import relative_mse
from transduce.random_fields import generator_for
from transduce.types import ExampleSet, Operator, Regressor, TransduceError

REGRESSORS = {
    "mean": MeanOfExamples,
    "kernel ridge": KernelRidge,
    "fno": lambda: Fno(modes=4, width=8, layers=1, epochs=3),
    "transducer": small_transducer,
}
KINDS = {
    "numpy": np.asarray,
    "torch": torch.from_numpy,
    "xarray": lambda f: xr.DataArray(f, dims=("example", "x"), coords={"x": np.linspace(0, 1, f.shape[1])}),
}
every_regressor = pytest.mark.parametrize("regressor", [make() for make in REGRESSORS.values()], ids=list(REGRESSORS))


@pytest.fixture
def arrays(pairs):
    return tuple(f.numpy() for f in pairs)


@every_regressor
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_of_the_kind_that_came(regressor, arrays, kind, dtype):
    v, u, v_query = (KINDS[kind](f.astype(dtype)) for f in arrays)
    assert isinstance(regressor, Regressor)
    O = regressor.regress(ExampleSet(v, u))
    assert isinstance(O, Operator)
    u_hat = O(v_query)
    assert type(u_hat) is type(v_query) and u_hat.dtype == v_query.dtype and u_hat.shape == (4, 33)
    assert np.isfinite(np.asarray(u_hat)).all()


@every_regressor
def test_one_example_is_enough(regressor, arrays):
    v, u, v_query = arrays
    assert regressor.regress(ExampleSet(v[:1], u[:1]))(v_query).shape == (4, 33)


@every_regressor
def test_queries_do_not_see_each_other(regressor, arrays):
    v, u, v_query = arrays
    O = regressor.regress(ExampleSet(v, u))
    assert np.allclose(O(v_query)[2:3], O(v_query[2:3]), rtol=1e-4, atol=1e-6)


@every_regressor
def test_regression_is_repeatable_and_leaves_its_input_alone(regressor, arrays):
    v, u, v_query = (f.copy() for f in arrays)
    random = torch.get_rng_state()
    first, second = (regressor.regress(ExampleSet(v, u))(v_query) for _ in range(2))
    assert np.array_equal(first, second)
    assert all(np.array_equal(a, b) for a, b in zip((v, u, v_query), arrays, strict=True))
    assert torch.equal(random, torch.get_rng_state())


@pytest.mark.parametrize("name", ["mean", "kernel ridge", "transducer"])  # the FNO's batches follow the order
def test_example_order_does_not_matter(name, arrays):
    v, u, v_query = arrays
    order = np.random.default_rng(0).permutation(len(v))
    straight, shuffled = (REGRESSORS[name]().regress(examples)(v_query) for examples in (ExampleSet(v, u), ExampleSet(v[order], u[order])))
    assert np.allclose(straight, shuffled, atol=1e-5 * np.abs(straight).max())


@pytest.mark.parametrize("regressor", [MeanOfExamples(), KernelRidge(), REGRESSORS["fno"]()], ids=["mean", "kernel ridge", "fno"])
def test_channels_are_kept(regressor):
    generator = np.random.default_rng(0)
    v, u, v_query = generator.normal(size=(6, 2, 16)), generator.normal(size=(6, 3, 16)), generator.normal(size=(4, 2, 16))
    assert regressor.regress(ExampleSet(v, u))(v_query).shape == (4, 3, 16)


def left_out(v: np.ndarray, u: np.ndarray, gamma: float, ridge: float) -> float:
    """The leave-one-out error, by leaving each out."""
    K = np.exp(-gamma * np.square(v[:, None] - v[None]).sum(-1))
    errors = []
    for i in range(len(v)):
        rest = np.arange(len(v)) != i
        u_hat = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(len(v) - 1), u[rest])
        errors.append(np.square(u_hat - u[i]).sum())
    return float(np.mean(errors))


def test_kernel_ridge_chooses_by_leaving_out_each_example(arrays):
    v, u, _ = arrays
    gammas, ridges = [1e-3, 1e-2, 1e-1], [1e-6, 1e-3, 1e-1]
    errors = {(gamma, ridge): left_out(v, u, gamma, ridge) for gamma in gammas for ridge in ridges}
    O = KernelRidge(gammas, ridges).regress(ExampleSet(v, u))
    assert (O.gamma, O.ridge) == min(errors, key=errors.__getitem__)
    assert np.isclose(O.leave_one_out, min(errors.values()))


def test_kernel_ridge_interpolates_and_solves(arrays):
    v, u, v_query = arrays
    O = KernelRidge([1e-1], [1e-12]).regress(ExampleSet(v, u))
    assert isinstance(O, KernelRidgeOperator)
    assert np.allclose(O(v), u, atol=1e-6)
    K = np.exp(-0.1 * np.square(v[:, None] - v[None]).sum(-1))
    k = np.exp(-0.1 * np.square(v_query[:, None] - v[None]).sum(-1))
    assert np.allclose(O(v_query), k @ np.linalg.solve(K, u), atol=1e-5)


def test_kernel_ridge_stands_where_it_was_measured():
    """0.12 mean relative MSE at n = 10 and 5e-3 at 50 on ADR."""
    family = AdvectionDiffusionReaction()
    errors = {n: [] for n in (10, 50)}
    for number in range(12):
        task = family.sample_task(50, 20, generator_for("test", number))
        for n, error in errors.items():
            error.append(relative_mse(KernelRidge().regress(task.examples[:n])(task.queries.v), task.queries.u).item())
    assert 2e-2 < np.mean(errors[10]) < 4e-1
    assert 5e-4 < np.mean(errors[50]) < 1.5e-2


def test_kernel_ridge_refuses_another_grid(arrays):
    v, u, v_query = arrays
    with pytest.raises(TransduceError, match="Interpolate"):
        KernelRidge().regress(ExampleSet(v, u))(v_query[:, ::2])


def test_fno_learns_and_stops_when_told(arrays):
    v = arrays[0]
    seen = []

    def stop(O: Operator) -> bool:
        seen.append(relative_mse(O(v), v))
        return seen[-1] < 0.1

    Fno(modes=8, width=16, layers=1, epochs=100, lr=1e-2, stop=stop).regress(ExampleSet(v, v))
    assert len(seen) < 100 and seen[-1] < 0.1 < seen[0]


def test_fno_answers_on_the_grid_of_the_query(arrays):
    v, u, v_query = arrays
    O = REGRESSORS["fno"]().regress(ExampleSet(v, u))
    assert O(v_query[:, ::2]).shape == (4, 17)


@pytest.mark.parametrize(("v", "u", "message"), [((5, 33), (5, 17), "grid it reads"), ((5, 2, 8, 8), (5, 2, 8, 8), "Reshape")])
def test_fno_refuses_what_it_cannot_fit(v, u, message):
    with pytest.raises(TransduceError, match=message):
        Fno().regress(ExampleSet(np.ones(v), np.ones(u)))


def test_fno_says_how_to_install_it(arrays, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if name.startswith("neuralop"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TransduceError, match=r"transduce\[baselines\]"):
        Fno().regress(ExampleSet(arrays[0], arrays[1]))
