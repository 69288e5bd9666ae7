"""Kernels of powers of values, and the positions at which a read-out is solved."""

import pytest
import torch
from torch.testing import assert_close

from transduce.kernels.comparison import DEGREE, PRODUCT, Comparison
from transduce.kernels.curve_readout import staggered
from transduce.kernels.metrics import Metric
from transduce.kernels.tuned import TunedRidge
from transduce.spaces import Sampled

POINTS = 40


def smooth(count: int, seed: int) -> torch.Tensor:
    """Sums of sines with random amplitudes."""
    generator = torch.Generator().manual_seed(seed)
    x, k = torch.linspace(0, 1, POINTS).double(), torch.arange(1, 7).double()
    amplitudes = torch.randn(count, len(k), generator=generator).double() / k
    return amplitudes @ torch.sin(torch.pi * k[:, None] * x + k[:, None])


@pytest.mark.parametrize("width", [0.1, 1.0])
def test_powers_are_inner_products_of_powers_of_values(width):
    b = smooth(5, 0)
    a = b[1:4]  # no larger than b
    compare = Comparison(Metric(Sampled(POINTS)), "powers")
    unit = a.square().sum(1).mean()

    def features(f):
        f = f / (unit / POINTS).sqrt()
        return torch.cat([width ** (p - 1) * f**p for p in range(1, DEGREE + 1)], 1) / POINTS**0.5

    expected = features(a) @ features(b).T
    assert_close(compare.kernel(a, b, unit, width), expected)
    squared = Comparison(Metric(Sampled(POINTS)), "products of powers")
    assert_close(squared.kernel(a, b, unit, width), (1 + PRODUCT * expected) ** 2 / PRODUCT)


def test_powers_learn_a_local_nonlinearity_that_other_kernels_do_not():
    """u(x) = the integral from 0 to x of v + v^2 - v^3 / 2, from 30 examples."""
    v = smooth(80, 2)
    u = (v + v**2 - v**3 / 2).cumsum(1) / POINTS

    def error(kind: str, profile: str) -> float:
        kappa = TunedRidge(Comparison(Metric(Sampled(POINTS), kind), profile))
        fit = kappa.fit_task(v[:30], u[:30])
        wrong = kappa.answer_task(fit, v[30:]) - u[30:]
        return float(wrong.square().sum() / (u[30:] - u[:30].mean(0)).square().sum())

    others = [error("values", profile) for profile in ("linear", "gaussian", "matern")]
    assert error("scales", "powers") < min(others) / 3
    assert error("scales", "products of powers") < min(others) / 2


def test_beyond_the_examples_powers_grow_linearly():
    b = smooth(5, 0)
    compare = Comparison(Metric(Sampled(POINTS)), "powers")
    unit = b.square().sum(1).mean()
    values = [compare.kernel(scale * b[:1], b, unit, 1.0) for scale in (1e3, 2e3, 3e3)]
    assert_close(values[2] - values[1], values[1] - values[0])


@pytest.mark.parametrize("x", [torch.linspace(0, 1, 30), torch.linspace(0, 1, 30) ** 2])
def test_scales_are_values_and_means_of_those_nearby(x):
    metric = Metric(Sampled(tuple(x.double().tolist())), "scales")
    values, nearby = metric.maps[0].matrix_0.split(30)
    assert_close(values, torch.eye(30).double())
    assert_close(nearby.sum(1), torch.ones(30).double())
    middle = (x > 0.3) & (x < 0.7)
    assert_close((nearby @ x.double())[middle], x.double()[middle], atol=0.02, rtol=0)


@pytest.mark.parametrize(("points", "most"), [(100, 24), (17, 40), (5000, 24)])
def test_each_example_has_other_positions_evenly_spaced(points, most):
    at = staggered(50, points, most)
    assert at.shape == (50, min(points, most))
    assert at.min() >= 0 and at.max() < points
    gaps = at.diff(dim=1)
    assert (gaps >= points // at.shape[1]).all() and (gaps <= points // at.shape[1] + 1).all()
    assert len(at.unique()) > 0.9 * min(points, at.numel())


@pytest.mark.parametrize("seed", range(3))
def test_residuals_of_powers_are_no_smaller_than_those_of_refits(seed):
    """Powers are bounded by the examples. A refit without the largest example bounds its powers,
    its leave-one-out residual does not."""
    v = smooth(12, seed)
    u = torch.sin(3 * v)
    ridge = TunedRidge(Comparison(Metric(Sampled(POINTS), "scales"), "powers"))
    fit = ridge.fit_task(v, u)
    refits = torch.zeros_like(u)
    for i in range(len(v)):
        others = torch.arange(len(v)) != i
        refit = ridge.refit_task(fit, v[others], u[others])
        refits[i] = u[i] - ridge.answer_task(refit, v[i : i + 1])[0]
    found, exact = (r.square().sum(1) for r in (fit.residual, refits))
    assert found.sum() > 0.9 * exact.sum()
    assert (found / exact).median() == pytest.approx(1, rel=0.1)
