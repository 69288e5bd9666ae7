"""One contract for every regressor, and the truths of each rival."""

import builtins
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import sklearn.kernel_ridge
import torch
import xarray as xr
from conftest import small_transducer

from transduce.baselines import (
    BASELINES,
    DeepOnet,
    Fitting,
    Fno,
    Identity,
    KernelRidge,
    baseline,
    nearest_example,
)
from transduce.baselines.classical import KernelRidgeOperator
from transduce.families import AdvectionDiffusionReaction
from transduce.metrics import relative_mse
from transduce.random_fields import generator_for
from transduce.types import ExampleSet, Operator, Regressor, TransduceError

SHORT = Fitting(epochs=3, batch=10)
NETWORKS = {
    "fno": lambda fitting=SHORT: Fno(modes=4, width=8, layers=1, padding=0.25, fitting=fitting),
    "deeponet": lambda fitting=SHORT: DeepOnet(width=16, layers=2, fitting=fitting),
}
UNFITTED = {
    name: make
    for name, make in BASELINES.items()
    if not name.startswith(("fno", "deeponet", "local"))
}
BASELINES_HERE = UNFITTED | NETWORKS
REGRESSORS = BASELINES_HERE | {"transducer": small_transducer, "nearest-example": nearest_example}
KINDS = {
    "numpy": np.asarray,
    "torch": torch.from_numpy,
    "xarray": lambda f: xr.DataArray(
        f, dims=("example", "x"), coords={"x": np.linspace(0, 1, f.shape[1])}
    ),
}
every_regressor = pytest.mark.parametrize(
    "regressor", [make() for make in REGRESSORS.values()], ids=list(REGRESSORS)
)


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


SPLIT_BY_ORDER = {
    "nearest-neighbours",
    "decision-tree",
    "partial-least-squares",
    "piecewise-direct-standardisation",
}


@pytest.mark.parametrize("name", sorted(REGRESSORS.keys() - NETWORKS - SPLIT_BY_ORDER))
def test_example_order_does_not_matter(name, arrays):
    v, u, v_query = arrays
    order = np.random.default_rng(0).permutation(len(v))
    straight, shuffled = (
        REGRESSORS[name]().regress(examples)(v_query)
        for examples in (ExampleSet(v, u), ExampleSet(v[order], u[order]))
    )
    assert np.allclose(straight, shuffled, atol=1e-5 * np.abs(straight).max())


OF_EQUAL_SHAPES = {"identity", "piecewise-direct-standardisation"}


@pytest.mark.parametrize("name", sorted(BASELINES_HERE.keys() - OF_EQUAL_SHAPES))
def test_channels_are_kept(name):
    generator = np.random.default_rng(0)
    v, u, v_query = (
        generator.normal(size=(6, 2, 16)),
        generator.normal(size=(6, 3, 16)),
        generator.normal(size=(4, 2, 16)),
    )
    assert REGRESSORS[name]().regress(ExampleSet(v, u))(v_query).shape == (4, 3, 16)


def test_every_rival_has_a_name():
    assert all(isinstance(baseline(name), Regressor) for name in BASELINES)
    others = {"fno-paper", "fno-stopped", "fno-periodic", "deeponet-paper", "local-kernel-ridge"}
    assert BASELINES.keys() == UNFITTED.keys() | NETWORKS.keys() | others
    with pytest.raises(TransduceError, match="expected one of mean, identity"):
        baseline("tarot")


@pytest.mark.parametrize("name", sorted(BASELINES_HERE.keys() - {"mean", "identity", "fno"}))
def test_another_grid_is_refused(name, arrays):
    v, u, v_query = arrays
    with pytest.raises(TransduceError, match="Interpolate"):
        REGRESSORS[name]().regress(ExampleSet(v, u))(v_query[:, ::2])


def test_identity_answers_with_what_it_is_asked_and_refuses_unequal_grids(arrays):
    v, u, v_query = arrays
    assert np.array_equal(Identity().regress(ExampleSet(v, u))(v_query), v_query)
    with pytest.raises(TransduceError, match="Interpolate"):
        Identity().regress(ExampleSet(v, u[:, ::2]))


def test_nearest_neighbours_return_an_example_that_settles_the_query(arrays):
    v, u, _ = arrays
    # One neighbour or three: no error when one is left out.
    repeated = ExampleSet(np.repeat(v, 3, 0), np.repeat(u, 3, 0))
    assert np.allclose(baseline("nearest-neighbours").regress(repeated)(v), u)


def test_linear_ridge_recovers_a_linear_operator():
    generator = np.random.default_rng(0)
    v, A, v_query = (
        generator.normal(size=(40, 12)),
        generator.normal(size=(12, 7)),
        generator.normal(size=(5, 12)),
    )
    assert np.allclose(
        baseline("linear-ridge").regress(ExampleSet(v, v @ A + 1))(v_query),
        v_query @ A + 1,
        atol=1e-6,
    )


def test_decision_tree_finds_a_step():
    v = np.linspace(-1, 1, 60)[:, None] * np.ones(4)
    u = np.where(v > 0, 1.0, -1.0)
    assert np.array_equal(
        baseline("decision-tree").regress(ExampleSet(v, u))(v[::7] + 1e-3), u[::7]
    )


def test_the_papers_kernel_ridge_is_scikit_learns(arrays):
    v, u, v_query = arrays
    theirs = sklearn.kernel_ridge.KernelRidge(alpha=1e-3, kernel="rbf").fit(v, u).predict(v_query)
    assert np.array_equal(baseline("kernel-ridge-paper").regress(ExampleSet(v, u))(v_query), theirs)


def test_gaussian_process_is_ahead_of_the_papers_ridge():
    family, errors = (
        AdvectionDiffusionReaction(),
        {"gaussian-process": 0.0, "kernel-ridge-paper": 0.0},
    )
    for number in range(3):
        task = family.sample_task(30, 20, generator_for("validation", number))
        for name in errors:
            errors[name] += float(
                relative_mse(baseline(name).regress(task.examples)(task.queries.v), task.queries.u)
            )
    assert errors["gaussian-process"] < 0.25 * errors["kernel-ridge-paper"]


def left_out(v: np.ndarray, u: np.ndarray, gamma: float, ridge: float) -> float:
    """The leave-one-out error, by leaving each out."""
    K = np.exp(-gamma * np.square(v[:, None] - v[None]).sum(-1))
    errors = []
    for i in range(len(v)):
        rest = np.arange(len(v)) != i
        u_hat = K[i, rest] @ np.linalg.solve(
            K[np.ix_(rest, rest)] + ridge * np.eye(len(v) - 1), u[rest]
        )
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
            error.append(
                relative_mse(
                    KernelRidge().regress(task.examples[:n])(task.queries.v), task.queries.u
                ).item()
            )
    assert 2e-2 < np.mean(errors[10]) < 4e-1
    assert 5e-4 < np.mean(errors[50]) < 1.5e-2


@pytest.fixture
def many():
    """Twenty smooth pairs of a linear operator, u = v / 2 shifted by one point."""
    x = np.linspace(0, 1, 33)
    v = np.random.default_rng(0).normal(size=(20, 4)) @ np.sin(np.pi * np.arange(1, 5)[:, None] * x)
    return ExampleSet(v, np.roll(v, 1, -1) / 2)


def path(name, examples, fitting):
    """The operator's answers after each epoch, and those of the fitted one."""
    answers = []

    def look(O: Operator) -> bool:
        answers.append(O(examples.v[:1]))
        return False

    O = NETWORKS[name](replace(fitting, stop=look)).regress(examples)
    return np.array(answers), O(examples.v[:1])


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_learn_and_stop_when_told(name, many):
    seen = []

    def stop(O: Operator) -> bool:
        seen.append(relative_mse(O(many.v), many.u))
        return seen[-1] < 0.1

    NETWORKS[name](Fitting(epochs=400, lr=1e-2, falling=True, stop=stop)).regress(many)
    assert len(seen) < 400 and seen[-1] < 0.1 < seen[0]


@pytest.mark.parametrize("name", NETWORKS)
def test_held_out_examples_are_never_trained_on(name, many):
    fitting, unmoved = Fitting(epochs=2, held_out=0.1), 0
    before, _ = path(name, many, fitting)
    for i in range(1, len(many)):
        v, u = many.v.copy(), many.u.copy()
        v[i], u[i] = 3 * v[i], 5 - u[i]
        unmoved += np.array_equal(before, path(name, ExampleSet(v, u), fitting)[0])
    assert unmoved == 2


def test_a_fit_stops_when_the_held_out_error_no_longer_falls_and_keeps_the_best(many):
    """The images are noise, so training on some soon makes the error of the others worse."""
    noise = ExampleSet(many.v, np.random.default_rng(1).normal(size=many.u.shape))
    fitting = Fitting(epochs=60, lr=1e-2, held_out=0.2)
    whole, best = path("fno", noise, fitting)
    stopped, kept = path("fno", noise, replace(fitting, patience=5))
    assert len(stopped) < len(whole) == 60
    assert np.array_equal(stopped[-6], kept) and not np.array_equal(stopped[-1], kept)
    assert any(np.array_equal(best, answer) for answer in whole)


def test_few_examples_are_all_trained_on(many):
    few = many[:9]
    answers, fitted = path("deeponet", few, Fitting(epochs=4, held_out=0.5, patience=1))
    assert len(answers) == 4 and np.array_equal(answers[-1], fitted)


def test_epochs_are_added_to_make_up_the_steps(many):
    """Twenty examples in batches of five: four updates an epoch."""
    assert [
        len(path("deeponet", many, Fitting(epochs=2, batch=5, steps=steps))[0])
        for steps in (0, 8, 9)
    ] == [2, 2, 3]


def test_fno_answers_on_the_grid_of_the_query(arrays):
    v, u, v_query = arrays
    O = REGRESSORS["fno"]().regress(ExampleSet(v, u))
    assert O(v_query[:, ::2]).shape == (4, 17)


UNFIT = [
    ((5, 33), (5, 17), "33 points and examples.u 17"),
    ((5, 2, 8, 8), (5, 2, 8, 9), "8 x 8 points and examples.u 8 x 9"),
    ((5, 2, 4, 4, 4), (5, 2, 4, 4, 4), "Reshape"),
]


@pytest.mark.parametrize(("v", "u", "message"), UNFIT)
def test_fno_refuses_what_it_cannot_fit(v, u, message):
    with pytest.raises(TransduceError, match=message):
        Fno().regress(ExampleSet(np.ones(v), np.ones(u)))


def test_deeponet_answers_on_the_grid_of_the_examples_u(arrays):
    v, u, v_query = arrays
    assert NETWORKS["deeponet"]().regress(ExampleSet(v, u[:, ::2]))(v_query).shape == (4, 17)


@pytest.mark.parametrize(("name", "package"), [("fno", "neuralop"), ("deeponet", "deepxde")])
def test_networks_say_how_to_install_them(name, package, arrays, monkeypatch):
    real = builtins.__import__

    def without(imported, *args, **options):
        if imported.startswith(package):
            raise ImportError(imported)
        return real(imported, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TransduceError, match=r"pip install 'transduce\[baselines\]'"):
        NETWORKS[name]().regress(ExampleSet(arrays[0], arrays[1]))


def test_deepxde_comes_without_a_word_or_a_trace():
    fit = (
        "DeepOnet(fitting=Fitting(epochs=1)).regress(ExampleSet(torch.ones(2, 5), "
        "torch.ones(2, 5)))"
    )
    imports = (
        "import os, torch; from transduce.baselines import DeepOnet, Fitting; from "
        "transduce.types import ExampleSet"
    )
    code = (
        f"{imports}; {fit}; print(os.environ.get('DDE_BACKEND'), "
        "torch.get_default_device(), torch.get_default_dtype())"
    )
    environment = {key: value for key, value in os.environ.items() if key != "DDE_BACKEND"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert run.stdout.split() == ["None", "cpu", "torch.float32"] and run.stderr == ""


@pytest.mark.parametrize("epochs", [1, 2, 3, 10, 11])
def test_a_falling_rate_takes_any_number_of_steps(epochs, arrays):
    v, u, _ = arrays
    Fno(
        modes=4, width=4, layers=1, fitting=Fitting(epochs=epochs, batch=len(v), falling=True)
    ).regress(ExampleSet(v, u))


def test_baselines_of_scikit_learn_say_what_to_install_without_it():
    """The others work without it."""
    code = """
import sys
sys.modules["sklearn"] = None
import torch
from transduce import ExampleSet, TransduceError
from transduce.baselines import baseline
v = torch.rand(4, 9)
for name in ("mean", "identity", "linear", "rbf", "window", "kernel-ridge"):
    assert baseline(name).regress(ExampleSet(v, v))(v).shape == v.shape
try:
    baseline("linear-ridge")
except TransduceError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'transduce[sklearn]'" in ran.stdout, ran.stderr
