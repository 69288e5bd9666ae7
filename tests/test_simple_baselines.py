"""Baselines that choose their parameters by leave-one-out or cross-validation: leave-one-out
residuals are those of refits, each recovers the operators that it is for, and errors are those of
the definitions in benchmarks/wild.py."""

import warnings

import numpy as np
import pytest
import torch
import xarray as xr

from transduce.baselines import BASELINES, KernelRidge, WindowRidge, baseline
from transduce.baselines.partial_least_squares import CrossValidatedPls
from transduce.types import ExampleSet, TransduceError

WITH_RESIDUALS = ("mean", "identity", "linear", "rbf", "window", "kernel-ridge")
CHOSEN_BY_LEAVE_ONE_OUT = ("linear", "rbf", "window")


def noisy(n=12, points=21, seed=0):
    """Smooth functions, and a nonlinear operator of them with noise."""
    rng = np.random.default_rng(seed)
    waves = np.sin(np.pi * np.arange(1, 7)[:, None] * np.linspace(0, 1, points))
    v = rng.normal(size=(n, 6)) @ waves + 1
    return v, np.tanh(v) + v.mean(1, keepdims=True) ** 2 + 0.1 * rng.normal(size=v.shape)


def refitted_kernel(O, v, u, i):
    """The prediction at v_i of the ridge on the others, with the kernel, mean and ridge of O."""
    rest = np.arange(len(v)) != i
    kernel = O.kernel(v)
    left = kernel[np.ix_(rest, rest)] + O.ridge * np.eye(len(v) - 1)
    return O.mean + kernel[i, rest] @ np.linalg.solve(left, u[rest] - O.mean)


def refitted_window(O, v, u, i):
    """The same for one ridge on the windows of the others."""
    F = O.features.of(v[:, None])
    penalty = O.ridge * np.square(F).sum() / F.shape[-1]
    rest = np.concatenate([f for j, f in enumerate(F) if j != i])
    augmented = np.concatenate([rest, np.sqrt(penalty) * np.eye(F.shape[-1])])
    target = np.concatenate([np.delete(u, i, 0).ravel(), np.zeros(F.shape[-1])])
    return F[i] @ np.linalg.lstsq(augmented, target, rcond=None)[0]


@pytest.mark.parametrize("name", CHOSEN_BY_LEAVE_ONE_OUT)
def test_leave_one_out_residuals_are_those_of_refits(name):
    v, u = noisy()
    O = baseline(name).regress(ExampleSet(v, u))
    refit = refitted_window if name == "window" else refitted_kernel
    expected = np.stack([u[i] - refit(O, v, u, i) for i in range(len(v))])
    assert np.allclose(O.residuals, expected, rtol=1e-8, atol=1e-8 * np.abs(u).max())


def test_residuals_of_the_mean_and_the_identity_are_those_of_refits():
    v, u = noisy()
    mean, identity = (baseline(name).regress(ExampleSet(v, u)) for name in ("mean", "identity"))
    expected = [u[i] - np.delete(u, i, 0).mean(0) for i in range(len(v))]
    assert np.allclose(mean.residuals, expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(identity.residuals, u - v)


def test_residuals_of_kernel_ridge_have_its_leave_one_out_error():
    v, u = noisy()
    O = KernelRidge().regress(ExampleSet(v, u))
    assert np.isclose(np.square(O.residuals).sum(1).mean(), O.leave_one_out)


@pytest.mark.parametrize("name", WITH_RESIDUALS)
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, xr.DataArray])
def test_residuals_are_of_the_kind_and_shape_of_u(name, kind):
    v, u = (kind(np.stack([f, 2 * f], 1).astype("float32")) for f in noisy())
    residuals = baseline(name).regress(ExampleSet(v, u)).residuals
    assert type(residuals) is type(u) and residuals.dtype == u.dtype
    assert residuals.shape == u.shape and np.isfinite(np.asarray(residuals)).all()


@pytest.mark.parametrize("name", sorted(set(WITH_RESIDUALS) - {"identity"}))
def test_one_example_has_no_leave_one_out_residual(name):
    v, u = noisy(n=1)
    assert np.isnan(baseline(name).regress(ExampleSet(v, u)).residuals).all()


@pytest.mark.parametrize("name", ["linear", "rbf", "window", "partial-least-squares"])
def test_constant_examples_are_answered_with_their_mean(name):
    v, u = np.full((6, 9), 0.1), np.full((6, 9), 3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        O = baseline(name).regress(ExampleSet(v, u))
    assert np.allclose(O(v), 3, rtol=1e-2)


def test_linear_recovers_a_linear_operator_and_its_constant():
    rng = np.random.default_rng(0)
    v, A, v_query = (rng.normal(size=shape) for shape in ((40, 12), (12, 7), (5, 12)))
    O = baseline("linear").regress(ExampleSet(v, v @ A + 1))
    assert np.allclose(O(v_query), v_query @ A + 1, atol=1e-6)


def test_partial_least_squares_recovers_a_linear_operator_of_low_rank():
    rng = np.random.default_rng(0)
    v, v_query = rng.normal(size=(40, 12)), rng.normal(size=(5, 12))
    A = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 30))
    O = baseline("partial-least-squares").regress(ExampleSet(v, v @ A + 1))
    assert np.allclose(O(v_query), v_query @ A + 1, atol=1e-6)


def test_components_are_those_of_least_cross_validated_error():
    """A reference that refits scikit-learn's own estimator for each number of components."""
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.model_selection import KFold

    v, u = noisy(n=20)
    fitted, errors = CrossValidatedPls(most=5, folds=4).fit(v, u), []
    for k in range(1, 6):
        total = 0.0
        for train, test in KFold(4).split(v):
            theirs = PLSRegression(k, scale=False, tol=1e-12, max_iter=10_000)
            total += np.square(theirs.fit(v[train], u[train]).predict(v[test]) - u[test]).sum()
        errors.append(total)
    assert fitted.components == 1 + int(np.argmin(errors))
    theirs = PLSRegression(fitted.components, scale=False, tol=1e-12, max_iter=10_000).fit(v, u)
    assert np.allclose(fitted.predict(v), theirs.predict(v), atol=1e-3)


def test_window_recovers_a_convolution():
    """Of functions whose end values continue beyond the grid."""
    rng = np.random.default_rng(0)
    v, stencil = rng.normal(size=(12, 60)), rng.normal(size=5)
    u = np.stack([np.convolve(np.pad(f, 2, mode="edge"), stencil, mode="valid") for f in v])
    O = WindowRidge().regress(ExampleSet(v[:8], u[:8]))
    assert np.allclose(O(v[8:]), u[8:], atol=1e-6)


def test_window_recovers_a_periodic_derivative_of_a_square():
    """Products of neighbours: u = v v', by central differences, on functions that end alike."""
    x = np.linspace(0, 1, 50)
    waves = np.sin(np.pi * np.arange(1, 4)[:, None] * x) ** 4
    v = np.random.default_rng(0).normal(size=(12, 3)) @ waves
    u = v * (np.roll(v, -1, 1) - np.roll(v, 1, 1))
    O = WindowRidge().regress(ExampleSet(v[:8], u[:8]))
    assert O.features.products
    assert np.square(O(v[8:]) - u[8:]).sum() < 1e-6 * np.square(u[8:]).sum()


def test_window_takes_another_number_of_points_and_channels():
    v, u = noisy(points=41)
    O = WindowRidge().regress(ExampleSet(np.stack([v, v**2], 1), u[:, None, ::2]))
    assert O(np.stack([v, v**2], 1)).shape == O.residuals.shape == (12, 1, 21)


def test_standardisation_recovers_a_shifted_rescaled_spectrum():
    """A second instrument that reads 1.7 times as much, 0.02 more, a channel further."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 80)
    peaks = np.exp(-(((x - rng.uniform(0.1, 0.9, 12)[:, None]) / 0.08) ** 2))
    v = rng.uniform(size=(30, 12)) @ peaks
    u = 1.7 * np.roll(v, 1, 1) + 0.02
    O = baseline("piecewise-direct-standardisation").regress(ExampleSet(v[:20], u[:20]))
    truth = u[20:, 2:-2]
    assert O.half_width >= 1
    assert np.square(O(v[20:])[:, 2:-2] - truth).sum() < 1e-6 * np.square(truth).sum()


@pytest.mark.parametrize(("v", "u"), [((5, 33), (5, 17)), ((5, 2, 33), (5, 2, 33))])
def test_standardisation_refuses_unequal_and_several_channels(v, u):
    with pytest.raises(TransduceError, match="the same number of points and one channel"):
        baseline("piecewise-direct-standardisation").regress(ExampleSet(np.ones(v), np.ones(u)))


# The definitions of the benchmark, as short as they can be.


def reference_ridge(K, u):
    best = None
    for ridge in 10.0 ** np.arange(-10, 2.01):
        inverse = np.linalg.inv(K + ridge * np.eye(len(K)))
        alpha = inverse @ u
        error = np.square(alpha / np.diag(inverse)[:, None]).sum()
        if best is None or error < best[0]:
            best = error, alpha
    return best


def reference_linear(v, u, q):
    m, c = v.mean(0), u.mean(0)
    s = np.square(v - m).sum(1).mean()
    K = (v - m) @ (v - m).T / s + 1e3
    return ((q - m) @ (v - m).T / s + 1e3) @ reference_ridge(K, u - c)[1] + c


def reference_rbf(v, u, q):
    D, E = (np.square(f[:, None] - v[None]).sum(-1) for f in (v, q))
    d, c = np.median(D[~np.eye(len(v), dtype=bool)]), u.mean(0)
    fits = [
        (*reference_ridge(np.exp(-D / (w * d)) + 1e3, u - c), w)
        for w in (0.5, 1, 2, 4, 8, 16, 64, 256)
    ]
    _, alpha, w = min(fits, key=lambda fit: fit[0])
    return (np.exp(-E / (w * d)) + 1e3) @ alpha + c


def reference_features(v, h, products):
    rows = []
    for f in v:
        padded = np.concatenate([np.full(h, f[0]), f, np.full(h, f[-1])])
        for k, x in enumerate(np.linspace(-1, 1, len(f))):
            near = padded[k : k + 2 * h + 1]
            middle = near[h - 2 : h + 3]
            pairs = [middle[i] * middle[j] for i in range(5) for j in range(i, 5)]
            rows.append([*near, *(pairs if products else []), 1, x, x * x])
    return np.array(rows).reshape(len(v), v.shape[1], -1)


def reference_window(v, u, q):
    def at(f):
        x = np.linspace(0, 1, u.shape[1])
        return np.stack([np.interp(x, np.linspace(0, 1, f.shape[1]), row) for row in f])

    v, q = at(v), at(q)
    s, best = v.std(), None
    for h in (2, 7, 20):
        for products in (False, True):
            F = reference_features(v / s, h, products)
            scale = np.square(F).sum() / F.shape[-1]
            for ridge in (1e-9, 1e-6, 1e-4, 1e-2):

                def weights(rows, F=F, penalty=ridge * scale):
                    f = F[rows].reshape(-1, F.shape[-1])
                    left = f.T @ f + penalty * np.eye(f.shape[1])
                    return np.linalg.solve(left, f.T @ u[rows].ravel())

                every = np.arange(len(v))
                error = sum(
                    np.square(u[i] - F[i] @ weights(every != i)).sum() for i in range(len(v))
                )
                if best is None or error < best[0]:
                    best = error, h, products, weights(every >= 0)
    return reference_features(q / s, best[1], best[2]) @ best[3]


REFERENCES = {
    "mean": lambda v, u, q: np.repeat(u.mean(0)[None], len(q), 0),
    "identity": lambda v, u, q: q,
    "linear": reference_linear,
    "rbf": reference_rbf,
    "window": reference_window,
}


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("points", [1, 2])
def test_errors_are_those_of_the_benchmarks_definitions(name, points):
    """points: every such point of v is kept."""
    v, u = noisy(n=20)
    if name != "identity":
        v = v[:, ::points]
    examples, q = ExampleSet(v[:10], u[:10]), v[10:]
    ours, theirs = (
        np.square(u_hat - u[10:]).sum()
        for u_hat in (
            baseline(name).regress(examples)(q),
            REFERENCES[name](examples.v, examples.u, q),
        )
    )
    assert np.isclose(ours, theirs, rtol=1e-7)


def test_every_new_baseline_is_in_the_contract():
    from test_baselines import UNFITTED

    names = {*REFERENCES, "partial-least-squares", "piecewise-direct-standardisation"}
    assert names <= UNFITTED.keys() <= BASELINES.keys()
