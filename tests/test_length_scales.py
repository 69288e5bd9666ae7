"""Length scales of each column, their likelihood, digits of ridge solutions, and posteriors."""

import pytest
import torch
from torch.testing import assert_close

from transduce.kernels.length_scales import (
    PROFILES,
    Blocks,
    LengthScales,
    _likelihood,
    covariances,
    likeliest,
    slopes_of,
    split_scales,
)
from transduce.kernels.scaled import ScaledRidge, Scales, block_sizes
from transduce.kernels.tuned import ridge_solutions
from transduce.spaces import Sampled, Values, WithParameters


def uniform(n: int, p: int, seed: int) -> torch.Tensor:
    return torch.rand(n, p, generator=torch.Generator().manual_seed(seed)).double()


def chosen(v: torch.Tensor, u: torch.Tensor) -> LengthScales:
    """The likeliest kernel."""
    blocks = Blocks([1] * v.shape[1])
    points = blocks.units(v).apply(v)
    return likeliest(blocks.distances(points, points), points @ points.T, u - u.mean(0))


def error(own: int, f, p: int, n: int = 40) -> float:
    """The squared error in units of the mean's."""
    v, q = uniform(n, p, 0), uniform(200, p, 1)
    ridge = ScaledRidge(Scales(Values(p)), own)
    answer, truth = ridge.answer_task(ridge.fit_task(v, f(v)), q), f(q)
    return float((answer - truth).square().sum() / (truth - f(v).mean(0)).square().sum())


@pytest.mark.parametrize("own", [0, 3])
def test_residuals_of_noise_are_not_smaller_than_its_errors(own):
    """Twenty examples can be fitted by the scales of eight columns, new ones cannot."""
    ratios = []
    for seed in range(4):
        v, u = uniform(220, 8, seed), uniform(220, 3, seed + 10)
        ridge = ScaledRidge(Scales(Values(8)), own)
        fit = ridge.fit_task(v[:20], u[:20])
        wrong = (ridge.answer_task(fit, v[20:]) - u[20:]).square().mean()
        ratios.append((fit.residual.square().mean() / wrong).log())
    assert torch.stack(ratios).mean().exp() > 0.75


@pytest.mark.parametrize("profile", PROFILES)
def test_the_likelihood_has_the_derivative_that_it_states(profile):
    v, u = uniform(12, 3, 0), uniform(12, 4, 1)
    D, products = Blocks([1, 1, 1]).distances(v, v), v @ v.T
    count = 3 * (2 if profile == "additive" else 1) + 2

    def value(theta):
        scales = LengthScales(profile, theta)
        A = scales.kernel(D, products) + scales.numbers(3)["ridge"] * torch.eye(12).double()
        ones, inverse = torch.ones(12, 1).double(), torch.linalg.inv(A)
        P = inverse - inverse @ ones @ ones.T @ inverse / (ones.T @ inverse @ ones)
        determinants = torch.logdet(A) + torch.log((ones.T @ inverse @ ones)[0, 0])
        return 11 / 2 * torch.trace(u.T @ P @ u).log() + determinants / 2, A

    theta = torch.full((count,), 0.3).double().requires_grad_()
    expected, A = value(theta)
    found = _likelihood(A.detach(), u)
    assert found is not None and found[0] == pytest.approx(expected.item())
    (by_hand,) = torch.autograd.grad(A, theta, found[1], retain_graph=True)
    (exact,) = torch.autograd.grad(expected, theta)
    assert_close(by_hand, exact)
    numbers = split_scales(theta.detach(), profile, 3)
    K = covariances(profile, numbers, D, products)
    slopes = slopes_of(profile, numbers, D, products, K, found[1])
    assert_close(torch.from_numpy(slopes), exact)


def test_a_column_without_effect_has_a_long_scale():
    v = uniform(40, 2, 0)
    lengths = chosen(v, torch.sin(6 * v[:, :1])).numbers(2)["lengths"]
    assert lengths[1] > 5 * lengths[0]


def test_scales_do_not_depend_on_the_units_of_columns():
    v, u = uniform(20, 3, 0), uniform(20, 5, 1)
    ridge = ScaledRidge(Scales(Values(3)), 2)
    units = torch.tensor([1e-6, 1.0, 1e5]).double()
    one = ridge.answer_task(ridge.fit_task(v, u), v[:4] + 0.1)
    other = ridge.answer_task(ridge.fit_task(v * units + 7, u), (v[:4] + 0.1) * units + 7)
    assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_sums_of_functions_of_single_columns_choose_the_additive_kernel():
    def f(v):
        return torch.stack([torch.sin(5 * v).sum(1), torch.cos(7 * v).sum(1)], 1)

    v = uniform(40, 4, 0)
    assert chosen(v, f(v)).profile == "additive"
    assert error(0, f, 4) < 1e-2


def test_functions_without_kinks_choose_the_gaussian_kernel_and_others_do_not():
    v = uniform(60, 2, 0)
    smooth, kinked = torch.cos(4 * v.prod(1)), (v.sum(1) - 1).abs()
    assert chosen(v, smooth[:, None]).profile == "gaussian"
    assert chosen(v, kinked[:, None]).profile == "matern"


def test_components_with_different_columns_need_scales_of_their_own():
    def f(v):
        return torch.stack([10 * torch.sin(9 * v[:, 0]), torch.sin(9 * v[:, 1])], 1)

    shared, own = (error(k, f, 2) for k in (0, 2))
    assert own < shared / 10


def test_leave_one_out_residuals_are_those_of_refits():
    v, u = uniform(9, 2, 0), uniform(9, 3, 1)
    ridge = ScaledRidge(Scales(Values(2)))
    fit = ridge.fit_task(v, u)
    fit = ridge.refit_task(fit, v, u)  # with the scales of all examples
    for i in (0, 4):
        others = torch.arange(9) != i
        refit = ridge.refit_task(fit, v[others], u[others])
        assert_close(fit.residual[i : i + 1], u[i : i + 1] - ridge.answer_task(refit, v[i : i + 1]))


def test_curves_are_one_block_and_each_number_is_one():
    assert block_sizes(Values(3)) == [1, 1, 1]
    assert block_sizes(WithParameters(Sampled(9), 2)) == [9, 1, 1]


def test_ridge_solutions_keep_their_digits_with_many_examples():
    """An operator between functions of 30 directions, from 60 examples: its error falls with the
    ridge, not with the digits of an explicit inverse."""
    v, A = uniform(90, 30, 0) @ uniform(30, 80, 1) - 7.5, uniform(80, 20, 2)
    a, b = v[:60] - v[:60].mean(0), v[60:] - v[:60].mean(0)
    unit = a.square().sum(1).mean()
    alpha, _ = ridge_solutions(a @ a.T / unit, 1e-10, a @ A)
    wrong = b @ a.T / unit @ alpha - b @ A
    assert wrong.square().mean() < 1e-16 * (b @ A).square().mean()


@pytest.mark.parametrize("own", [0, 1])
def test_a_posterior_is_certain_at_examples_and_not_far_from_them(own):
    v = uniform(15, 2, 0)
    u = torch.cat([torch.sin(4 * v), v], 1)
    ridge = ScaledRidge(Scales(Values(2)), own)
    posteriors = ridge.posteriors(ridge.condition(v[None], u[None]))
    assert len(posteriors) == own + 1
    at = torch.cat([v[:1], v[:1] + 3])
    near, far = sum(w * p.covariances(at, at) for w, p in posteriors).diagonal()
    assert abs(near) < 0.05 * far
