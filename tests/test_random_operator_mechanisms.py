"""Mechanisms of random operators: each law solves its own equation."""

import math
import sys

import numpy as np
import pytest
import torch

from transduce.families.laws import Dice, Measure, RejectedError
from transduce.families.random_operators import (
    black_boxes,
    driven,
    elliptic,
    evolution,
    grid,
    linear,
    u_first,
)
from transduce.random_fields import generator_for

X, N = grid.x(), grid.N
WAVES = torch.stack([torch.sin(3 * X) + X, torch.cos(7 * X) - 1, torch.exp(X) / 2])
PERIODIC = torch.stack([torch.sin(2 * math.pi * X), torch.cos(6 * math.pi * X) + 1])


def dice(seed, kind=Dice):
    return kind(generator_for("test", seed))


def slope(sizes, errors):
    """Of log(error) against log(size)."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def relative(error, size):
    return (error.norm() / size.norm()).item()


@pytest.fixture
def answers(monkeypatch):
    """The answers of a mechanism's law to chosen functions."""

    def of(mechanism, v, seed):
        module = sys.modules[mechanism.__module__]
        monkeypatch.setattr(module, "draw_measure", lambda *_: Measure(lambda n, _: v))
        return mechanism(dice(seed))(len(v), dice(seed))[1]

    return of


@pytest.mark.parametrize("mechanism", [linear.linear, evolution.wave, evolution.advected])
def test_linear_laws_are_affine(answers, mechanism):
    f, g = PERIODIC
    v = torch.stack([0 * f, f, g, 2 * f - 3 * g])
    for seed in range(30 if mechanism is linear.linear else 5):
        zero, of_f, of_g, of_both = answers(mechanism, v, seed)
        expected = 2 * of_f - 3 * of_g + 2 * zero
        torch.testing.assert_close(of_both, expected, rtol=1e-9, atol=1e-9)


def test_volterra_laws_are_cubic(answers):
    """Fourth differences of t -> O(t v) vanish."""
    v = torch.arange(6)[:, None] * WAVES[0]
    for seed in range(10):
        u = answers(black_boxes.volterra, v, seed)
        assert u.diff(n=4, dim=0).abs().max() < 1e-10 * u.abs().max()
        assert not u[0].any()


def problems(count):
    """Well-posed random boundary-value problems with the sizes of their solutions."""
    for seed in range(count):
        A, rows, values = elliptic.draw_problem(dice(seed))
        try:
            yield A, rows, values, elliptic._size_of_solutions(A, rows)
        except (RejectedError, torch.linalg.LinAlgError):
            continue


def test_forced_laws_solve_their_equation_and_conditions():
    found = 0
    for A, rows, values, scale in problems(40):
        u = elliptic.linear(A, rows, values * scale)(WAVES)
        expected = WAVES.clone()
        expected[:, rows] = values * scale
        assert relative(u @ A.T - expected, expected) < 1e-5
        found += 1
    assert found > 25


def test_forced_laws_find_a_known_solution():
    for A, rows, _, _ in problems(40):
        for u in WAVES:
            v = u @ A.T
            found = elliptic.linear(A, rows, v[rows])(v[None])
            assert relative(found - u, u) < 1e-4


@pytest.mark.parametrize(("order", "first"), [(1, 0), (1, 1), (2, 1), (3, 1), (3, 2), (4, 2)])
def test_conditions_at_either_end_are_well_posed(order, first):
    """u^(order) = v with values, and slopes where there are two, at `first` of the left end."""
    A = elliptic._derivative(order, 2 * first < order).clone()
    for row in (*range(first), *range(N - order + first, N)):
        end = 0 if row < first else N - 1
        A[row] = grid.derivative(1)[end] if row not in (0, N - 1) else 0.0
        A[row, end] += row in (0, N - 1)
    assert torch.linalg.cond(A, 1) < N ** (order + 2)


def test_cubic_laws_have_small_residuals():
    found = 0
    for A, rows, values, scale in problems(40):
        c = 0.1 / scale**3
        try:
            u = elliptic.cubic(A, rows, values * scale, c)(WAVES)
        except RejectedError:
            continue
        expected, cube = WAVES.clone(), c * A.abs().max() * u**3
        expected[:, rows], cube[:, rows] = values * scale, 0.0
        assert relative(u @ A.T + cube - expected, expected) < 1e-5
        found += 1
    assert found > 5


@pytest.mark.parametrize("s", [0.5, 1.0])
def test_diffusion_has_its_exact_solution(s):
    """exp(s x) u' = c - 10 x, so u(x) = left + c e(x) - 10 g(x)."""
    e, g = (1 - torch.exp(-s * X)) / s, (1 - torch.exp(-s * X) * (1 + s * X)) / s**2
    source = torch.full_like(X, 10.0)
    for right, c in ((0.7, (0.4 + 10 * g[-1]) / e[-1]), (None, 10.0)):
        u = elliptic.Medium(source, s, True, 0.0, 0.3, right)(X[None])
        torch.testing.assert_close(u[0], 0.3 + c * e - 10 * g, rtol=0, atol=1e-3)


def test_a_potential_has_its_exact_solution():
    """-u'' + b^2 u = 15 b^2 with u(0) = 0 and u'(1) = 0."""
    b = math.sqrt(15 * 0.5)
    source = torch.full_like(X, 15 * b**2)
    u = elliptic.Medium(source, 0.5, False, 0.0, 0.0, None)(torch.zeros(1, N).double())
    exact = 15 * (1 - torch.cosh(b * (1 - X)) / math.cosh(b))
    torch.testing.assert_close(u[0], exact, rtol=0, atol=1e-6)


def test_rough_diffusion_obeys_the_maximum_principle():
    """Without a source, solutions lie between their boundary values."""
    v = 3 * dice(0).normal(20, N)
    u = elliptic.Medium(torch.zeros_like(X), 1.0, True, 0.0, 0.0, 1.0)(v)
    assert u.min() > -1e-9 and u.max() < 1 + 1e-9
    assert u.diff().min() > -1e-9


@pytest.mark.parametrize(("boundary", "wave"), [("zero", torch.sin), ("even", torch.cos)])
@pytest.mark.parametrize("mode", [1, 3])
def test_heat_decays_as_the_analytic_mode(boundary, wave, mode):
    kappa, t, v = 0.02, 0.7, wave(mode * math.pi * X)[None]
    u = evolution.Generator(boundary, kappa * grid.derivative(2, boundary), ()).flow(t)(v)
    discrete = 4 / grid.H**2 * math.sin(mode * math.pi * grid.H / 2) ** 2
    torch.testing.assert_close(u, math.exp(-kappa * discrete * t) * v, rtol=0, atol=1e-11)
    exact = math.exp(-kappa * (mode * math.pi) ** 2 * t) * v
    torch.testing.assert_close(u, exact, rtol=0, atol=kappa * (mode * math.pi) ** 4 * grid.H**2)


def test_periodic_advection_is_a_translation():
    def f(x):
        return torch.exp(torch.sin(2 * math.pi * x))[None]

    flow = evolution.Generator("periodic", -0.3 * grid.derivative(1, "periodic"), ()).flow(1.7)
    torch.testing.assert_close(flow(f(X)), f(X - 0.3 * 1.7), rtol=0, atol=1e-10)


def test_linear_flows_are_semigroups():
    for seed in range(6):
        generator = evolution.draw_generator(dice(seed))
        generator = evolution.Generator(generator.boundary, generator.linear, ())
        once, twice = generator.flow(0.3), generator.flow(0.6)
        u = twice(PERIODIC)
        assert relative(once(once(PERIODIC)) - u, u) < 1e-9


def test_nonlinear_flows_are_of_second_order():
    D1, D2 = (grid.derivative(order, "periodic") for order in (1, 2))
    terms = (lambda q: -0.2 * (q * q) @ D1.T, lambda q: q - q**3)
    generator = evolution.Generator("periodic", 0.02 * D2, terms)
    exact, steps = generator.flow(0.5, steps=640)(PERIODIC[:1]), [10, 20, 40]
    errors = [relative(generator.flow(0.5, steps=n)(PERIODIC[:1]) - exact, exact) for n in steps]
    assert -2.1 < slope(steps, errors) < -1.9


@pytest.mark.parametrize("mechanism", [evolution.state, evolution.forced_state, evolution.wave])
@pytest.mark.parametrize("boundary", ["periodic", "zero"])
def test_states_keep_their_boundary_conditions(answers, monkeypatch, mechanism, boundary):
    monkeypatch.setattr(evolution, "CONDITIONS", (boundary,))
    v = PERIODIC if boundary == "periodic" else torch.sin(math.pi * X)[None]
    found = 0
    for seed in range(8):
        try:
            u = answers(mechanism, v, seed)
        except RejectedError:
            continue
        jump = u[:, 0] - u[:, -1] if boundary == "periodic" else u[:, [0, -1]]
        assert jump.abs().max() < 1e-8 * u.abs().max()
        found += 1
    assert found > 2


def test_pairs_of_a_trajectory_chain():
    """All pairs together are one path: every u but the last is the v of another pair."""
    for seed in (0, 2, 3):
        law = evolution.trajectory(dice(seed))
        v, u = law(evolution.LONGEST, dice(seed))
        follows = (u[:, None] == v).all(-1)
        assert (follows.sum(1) == 1).sum() >= evolution.LONGEST - 1
        assert len(law(evolution.LONGEST + 5, dice(seed))[0]) == evolution.LONGEST + 5


def test_driven_systems_are_solved_at_second_order():
    """A linear system driven by sin(t), against its matrix exponential at one time t."""
    A = torch.tensor([[0.0, 1.0], [-1.0, -0.4]], dtype=torch.float64)
    B, start = torch.tensor([0.5, 1.0]).double(), torch.tensor([1.0, -0.5]).double()
    whole = torch.zeros(4, 4, dtype=torch.float64)  # of s, sin(t) and cos(t)
    whole[:2, :2], whole[:2, 2] = A - 0.1 * torch.eye(2), B
    whole[2, 3], whole[3, 2] = 1.0, -1.0
    speeds, errors = [2, 4, 8], []
    for speed in speeds:
        system = driven.System(A, B, lambda s: s, lambda v: v, start, float(speed))
        i = 156 * 2 // speed
        t = i * grid.H * speed
        exact = torch.matrix_exp(t * whole) @ torch.cat([start, torch.tensor([0.0, 1.0]).double()])
        errors.append(abs(system(torch.sin(speed * X)[None])[0, i] - exact[0]).item())
    assert errors[-1] < 1e-2
    assert 1.9 < slope(speeds, errors) < 2.1


def unexplained(v, u):
    """The share of v that is no a u'' + b u' + c u + d u^3 + e u u' + s(x)."""
    slopes = u @ grid.derivative(1).T
    terms = torch.stack([u @ grid.derivative(2).T, slopes, u, u**3, u * slopes], -1)
    terms, v = ((f - f.mean(0)).flatten(0, 1) for f in (terms, v[..., None]))
    terms = terms / terms.norm(dim=0)
    return relative(v - terms @ torch.linalg.lstsq(terms, v).solution, v)


def test_u_first_gives_v_of_u():
    backward = 0
    for seed in range(24):
        v, u = u_first.u_first(dice(seed))(20, dice(seed))
        asked, inverse = unexplained(v, u) < 1e-7, unexplained(u, v) < 1e-7
        assert asked or inverse
        backward += asked
    assert 12 <= backward < 24


class Independent(Dice):
    """Picks 0 where it is offered: the share of v in u."""

    def pick(self, options, shares=None):
        zero = isinstance(options[0], float) and options[0] == 0
        return 0.0 if zero else super().pick(options, shares)


def test_unrelated_functions_are_independent():
    """Principal components of v and u are correlated no more than chance allows."""
    n = 2000
    for seed in range(5):
        v, u = black_boxes.unrelated(dice(seed, Independent))(n, dice(seed))
        scores = [torch.linalg.svd(f - f.mean(0), full_matrices=False)[0][:, :3] for f in (v, u)]
        assert (scores[0].T @ scores[1]).abs().max() < 5 / math.sqrt(n)


def test_curves_have_few_hidden_numbers():
    for seed in range(5):
        _, u = black_boxes.curves(dice(seed))(100, dice(seed))
        sizes = torch.linalg.svdvals(u)
        assert (sizes > 1e-10 * sizes[0]).sum() <= 16
