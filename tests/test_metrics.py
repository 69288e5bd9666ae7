"""The errors are what reading 1 says: per function, relative, squared."""

import numpy as np
import pytest
import torch
import xarray as xr

from transduce import metrics
from transduce.types import TransduceError

KINDS = {"numpy": np.asarray, "torch": torch.from_numpy, "xarray": lambda f: xr.DataArray(f)}


@pytest.fixture
def u():
    return np.random.default_rng(0).normal(size=(6, 2, 11))


@pytest.mark.parametrize("kind", KINDS)
def test_scaling_a_function_by_one_plus_e_costs_e_squared(u, kind):
    e = np.linspace(0.0, 0.5, 6)
    u_hat = KINDS[kind](u * (1 + e[:, None, None]))
    u = KINDS[kind](u)
    norms = np.square(np.asarray(u)).sum((1, 2))
    assert np.allclose(metrics.relative_squared_errors(u_hat, u), e**2)
    assert np.isclose(metrics.relative_mse(u_hat, u), (e**2).mean())
    assert np.isclose(metrics.relative_l2(u_hat, u), e.mean())
    assert np.isclose(metrics.pooled_relative_mse(u_hat, u), (e**2 * norms).sum() / norms.sum())


def test_units_and_resolution_do_not_matter(u):
    u_hat = u + 0.1 * np.random.default_rng(1).normal(size=u.shape)
    error = metrics.relative_mse(u_hat, u)
    assert np.isclose(error, metrics.relative_mse(1000 * u_hat, 1000 * u))
    assert np.isclose(error, metrics.relative_mse(u_hat.repeat(3, -1), u.repeat(3, -1)))


def test_zero_costs_one_and_the_truth_nothing(u):
    for metric in (metrics.relative_mse, metrics.pooled_relative_mse, metrics.relative_l2):
        assert metric(u, u) == 0
        assert np.isclose(metric(0 * u, u), 1)


def test_coordinates_are_not_aligned(u):
    """Predictions that carry other coordinates than the truth are compared in order."""
    a = xr.DataArray(u, dims=("n", "c", "x"), coords={"n": range(6)})
    b = xr.DataArray(u, dims=("n", "c", "x"), coords={"n": range(1, 7)})
    assert metrics.relative_mse(a, b) == 0


def test_gradients_flow(u):
    u_hat = torch.zeros(6, 2, 11, dtype=torch.float64, requires_grad=True)
    metrics.relative_mse(u_hat, torch.from_numpy(u)).backward()
    assert u_hat.grad is not None and u_hat.grad.abs().min() > 0


def test_unequal_shapes_are_refused(u):
    with pytest.raises(TransduceError, match="expected the same"):
        metrics.relative_mse(u[:1], u)


def test_hits_are_where_the_largest_number_is_the_class():
    u = np.eye(3)[[0, 1, 2]]
    assert metrics.hits(np.array([[2.0, 1, 0], [0, 0.1, 0.2], [-3, -2, -1]]), u).tolist() == [
        True,
        False,
        True,
    ]


def test_calibration_is_the_distance_of_sureness_from_truth():
    """Bins of answers that are 90 % sure and always right, and 60 % sure and right every other
    time."""
    sure, right = np.array([0.9, 0.9, 0.6, 0.6]), np.array([True, True, True, False])
    assert metrics.expected_calibration_error(sure, right) == pytest.approx(0.1)
    rng = np.random.default_rng(0)
    sure = rng.uniform(size=20_000)
    assert metrics.expected_calibration_error(sure, rng.uniform(size=20_000) < sure) < 0.02
    assert metrics.expected_calibration_error(
        np.ones(4), np.array([True, True, False, False])
    ) == pytest.approx(0.5)
