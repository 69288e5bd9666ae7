"""The calculus of random operators: measured orders, exactness, and the covariance of fields."""

import math

import numpy as np
import pytest
import torch

from transduce.families.random_operators import grid

X = grid.x()


def slope(sizes, errors):
    """Of log(error) against log(size)."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def relative_error(A, f, exact):
    """The largest error of A f in units of the largest exact value."""
    return ((A @ f - exact).abs().max() / exact.abs().max()).item()


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_free_derivatives_are_of_fourth_order_up_to_the_ends(order):
    """On waves of growing frequency k the relative error grows as (k h)^p."""
    A, k = grid.derivative(order).to(torch.complex128), [8, 16, 32]
    errors = [
        relative_error(A, torch.exp(1j * f * X), (1j * f) ** order * torch.exp(1j * f * X))
        for f in k
    ]
    assert slope(k, errors) > 3.9
    assert errors[0] < 1e-4


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_free_derivatives_of_polynomials_are_exact(order):
    for degree in range(order + 4):
        factor = math.perm(degree, order) if degree >= order else 0
        exact = factor * X ** max(degree - order, 0)
        assert (grid.derivative(order) @ X**degree - exact).abs().max() < 1e-13 / grid.H**order


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("boundary", ["zero", "even"])
def test_mirrored_derivatives_are_of_second_order(boundary, order):
    """Sines are odd and cosines even beyond both ends. With "zero", ends have no derivative."""
    A, k = grid.derivative(order, boundary), [1, 2, 4, 8]
    shift = -0.5 if boundary == "zero" else 0.0  # sin(t) = cos(t - pi / 2)
    errors = []
    for frequency in k:
        w = math.pi * frequency
        f, exact = (torch.cos(w * X + math.pi * (shift + turn / 2)) for turn in (0, order))
        kept = slice(1, -1) if boundary == "zero" else slice(None)
        errors.append(relative_error(A[kept], f, w**order * exact[kept]))
    assert 1.95 < slope(k, errors) < 2.05
    if boundary == "zero":
        assert not A[[0, -1]].any()


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_periodic_derivatives_of_waves_are_exact(order):
    A = grid.derivative(order, "periodic").to(torch.complex128)
    for waves in (0, 1, 7, 60, 78):
        w = 2j * math.pi * waves
        f = torch.exp(w * X)
        size = (156 * math.pi) ** order
        assert (A @ f - w**order * f).abs().max() < 1e-12 * size


def test_the_integral_is_that_of_the_trapezoidal_rule():
    """Exact for lines, of second order else; its last value is the quadrature of the whole."""
    A = grid.integral()
    torch.testing.assert_close(A @ (2 * X + 1), X**2 + X, rtol=0, atol=1e-14)
    k = [4, 8, 16]
    errors = [relative_error(A, torch.cos(f * X), torch.sin(f * X) / f) for f in k]
    assert 1.95 < slope(k, errors) < 2.05
    torch.testing.assert_close(A[-1], grid.quadrature(), rtol=0, atol=1e-16)


def test_integral_and_derivative_are_inverse_to_each_other():
    A, D, k = grid.integral(), grid.derivative(1), [4, 8, 16]
    waves = [torch.sin(f * X + 1) for f in k]
    for product, expected in (
        (D @ A, waves),
        (A @ D, [wave - wave[0] for wave in waves]),
    ):
        pairs = zip(waves, expected, strict=True)
        errors = [relative_error(product, f, exact) for f, exact in pairs]
        assert errors[0] < 1e-3
        assert 1.9 < slope(k, errors) < 2.1


COVARIANCES = {
    0.5: lambda d: torch.exp(-d),
    1.5: lambda d: (1 + math.sqrt(3) * d) * torch.exp(-math.sqrt(3) * d),
    2.5: lambda d: (1 + math.sqrt(5) * d + 5 * d**2 / 3) * torch.exp(-math.sqrt(5) * d),
    math.inf: lambda d: torch.exp(-(d**2) / 2),
}


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("smoothness", COVARIANCES)
def test_fields_have_their_covariance(smoothness, periodic):
    for number in (0, 20, 45):  # lengths that are not rounded
        length = 0.01 * 100 ** (number / (grid.LENGTHS - 1))
        d = (X[:, None] - X).abs()
        d = (torch.sin(math.pi * d) / math.pi if periodic else d) / length
        root = grid.field_root(smoothness, length, periodic)
        assert (root @ root.T - COVARIANCES[smoothness](d)).abs().max() < 1e-7
        if periodic:
            torch.testing.assert_close(root[0], root[-1], rtol=0, atol=1e-6)


def test_lengths_are_rounded_by_at_most_five_percent():
    for length in (0.01, 0.0234, 0.5, 1.0):
        root = grid.field_root(math.inf, length)
        neighbours = (root[80] @ root[81]).item()  # exp(-(h / length)^2 / 2)
        assert grid.H / math.sqrt(-2 * math.log(neighbours)) == pytest.approx(length, rel=0.051)
