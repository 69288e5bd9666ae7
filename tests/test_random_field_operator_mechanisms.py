"""Mechanisms of random operators between fields: each law solves its own equation."""

import math
import sys

import numpy as np
import pytest
import torch

from transduce.families import burgers
from transduce.families.laws import Dice, Measure, RejectedError
from transduce.families.random_field_operators import (
    black_boxes,
    darcy,
    elliptic,
    flows,
    forced,
    linear,
    measures,
    neural,
    spectral,
    trajectory,
    transport,
    u_first,
    vorticity,
    warp,
    waves,
)
from transduce.families.random_field_operators.grid import (
    COARSE,
    FINE,
    FINE_TORUS,
    TORUS,
    gradient,
    laplacian,
)
from transduce.random_fields import generator_for

PI, NONE = math.pi, torch.zeros(2, 2, dtype=torch.float64)


def dice(seed, kind=Dice):
    return kind(generator_for("test", seed))


def relative(error, size):
    return (error.norm() / size.norm()).item()


def square(grid):
    """Both coordinates."""
    return torch.meshgrid(grid.x, grid.x, indexing="ij")


def smooth(n, grid, channels=1, seed=0, length=0.2):
    fields = measures.Gaussian(grid, (length, length))(n * channels, dice(seed))
    return fields.unflatten(0, (n, channels))


@pytest.fixture
def answers(monkeypatch):
    """The answers of a mechanism's law to fields that `make` draws on its grid."""

    def of(mechanism, make, seed):
        module = sys.modules[mechanism.__module__]
        chosen = {}

        def draw(dice, grid, channels=1, *_, **__):
            chosen["v"] = make(grid, channels)
            return Measure(lambda n, _: chosen["v"])

        for name in ("draw_measure", "draw_smooth"):
            monkeypatch.setattr(module, name, draw, raising=False)
        u = mechanism(dice(seed))(1, dice(seed))[1]
        return chosen["v"], u

    return of


COVARIANCES = {
    0.5: lambda d: torch.exp(-d),
    1.5: lambda d: (1 + math.sqrt(3) * d) * torch.exp(-math.sqrt(3) * d),
    math.inf: lambda d: torch.exp(-(d**2) / 2),
}


@pytest.mark.parametrize("smoothness", COVARIANCES)
@pytest.mark.parametrize("grid", [COARSE, TORUS])
def test_fields_have_their_covariance(grid, smoothness):
    """Along a turned direction of its own length, up to 6 points away."""
    n, lengths = 1500, (0.1, 0.2)
    f = measures.Gaussian(grid, lengths, smoothness, PI / 2)(n, dice(0))
    d = torch.arange(6) * grid.h
    for axis, length in ((1, 0.2), (2, 0.1)):
        near = f.narrow(axis, 10, 6)
        found = (near.select(axis, 0).unsqueeze(axis) * near).mean((0, 3 - axis))
        expected = COVARIANCES[smoothness](d / length)
        assert (found - expected).abs().max() < (0.05 if smoothness > 1 else 0.12)


def test_solutions_of_elliptic_equations_have_no_residual():
    """Inside and at free sides, for rough coefficients and all conditions."""
    a = torch.exp(2 * dice(0).normal(3, 63, 63))
    f, q = dice(1).normal(3, 63, 63), dice(2).uniforms(3, 63, 63)
    for conditions in darcy.SIDES:
        for g in (None, FINE.x[:, None].expand(63, 63)):
            medium = elliptic.Medium(a, q, conditions, FINE)
            u = medium.solve(f, g)
            inside = (slice(None), *medium.inside)
            assert relative((medium(u) - medium.mass() * f)[inside], medium.mass() * f) < 1e-9
            if conditions[0] == "zero":
                held = torch.zeros(63).double() if g is None else g[0]
                assert torch.equal(u[:, 0], held.expand(3, 63))


@pytest.mark.parametrize("harmonic", [True, False])
def test_a_layered_medium_has_the_resistance_of_its_layers(harmonic):
    """Pressure falls from 1 to 0 through a(x): the flux is 1 / the integral of 1 / a."""
    a = torch.exp(torch.sin(5 * FINE.x))[:, None].expand(1, 63, 63)
    fall = (1 - FINE.x)[:, None].expand(63, 63)
    zero = torch.zeros(1, 63, 63).double()
    u = elliptic.Medium(a, zero, ("zero", "even"), FINE, harmonic).solve(zero[0], fall)
    flux = -a * gradient(FINE, u)[0]
    resistance = torch.trapezoid(1 / a[0, :, 0], FINE.x)
    torch.testing.assert_close(flux * resistance, torch.ones_like(flux), rtol=0, atol=5e-3)
    assert (u.diff(dim=1) < 0).all() and u.std(2).max() < 1e-12


@pytest.mark.parametrize("conditions", darcy.SIDES)
def test_darcy_has_its_analytic_solution(conditions):
    x, y = square(FINE)
    u = 1.0 * torch.ones_like(x)
    for z, condition in zip((x, y), conditions, strict=True):
        u = u * (torch.sin(PI * z) if condition == "zero" else torch.cos(PI * z))
    q, ones = 3.0, torch.ones(1, 63, 63).double()
    found = darcy.Problem((2 * PI**2 + q) * u, q, conditions).solve(ones)
    torch.testing.assert_close(found[0], u, rtol=0, atol=2e-3)


def test_elliptic_equations_are_reciprocal_and_positive():
    """The solution of f weighs g as that of g weighs f; positive f have positive u."""
    a = torch.exp(1.5 * dice(0).normal(1, 63, 63)).expand(2, 63, 63)
    f, q = dice(1).uniforms(2, 63, 63), torch.zeros(1, 63, 63).double()
    medium = elliptic.Medium(a, q, ("zero", "zero"), FINE)
    first, second = medium.solve(f)
    assert first[1:-1, 1:-1].min() > 0
    weights = medium.mass() * torch.stack([first * f[1], second * f[0]])
    assert relative(weights[0].sum() - weights[1].sum(), weights.sum()) < 1e-12


@pytest.mark.parametrize("q", [0.0, 2.0])
def test_periodic_darcy_solves_its_equation(q):
    """The residual in conservative form, and the mean."""
    a, f = torch.exp(smooth(3, FINE_TORUS)[:, 0]), smooth(1, FINE_TORUS, seed=1)[0, 0] + 1
    u = elliptic.periodic(a, torch.full((1, 64, 64), q).double(), f, FINE_TORUS)
    v = q * u - sum(
        gradient(FINE_TORUS, a * slope)[axis] for axis, slope in enumerate(gradient(FINE_TORUS, u))
    )
    target = f if q else f - f.mean()
    assert relative(v - target, target.expand_as(v)) < 0.02  # second order against spectral
    if q:
        torch.testing.assert_close(q * u.mean((1, 2)), f.mean().expand(3), rtol=1e-5, atol=0)


def test_darcy_laws_are_of_their_kinds():
    """Contrasts, fluxes and sources all come; the benchmark's two values are among them."""
    shapes, two_valued = set(), 0
    for seed in range(24):
        v, u = darcy.darcy(dice(seed))(3, dice(seed))
        shapes.add((v.shape[1], u.shape[1]))
        two_valued += v[:, 0].unique().numel() == 2
    assert shapes == {(1, 1), (1, 2), (2, 1)} and two_valued > 2


def problem(a=1.0, b=(0.0, 0.0), q=0.0, conditions=("zero", "zero"), g=None):
    ones = torch.ones(63, 63).double()
    wind = torch.stack([size * ones for size in b])
    return forced.Forced(a * ones, wind, q, conditions, 0 * ones if g is None else g)


@pytest.mark.parametrize("q", [0.0, 5.0, -150.0])
@pytest.mark.parametrize("b", [(0.0, 0.0), (4.0, -3.0)])
def test_forced_laws_find_a_known_solution(q, b):
    x, y = square(FINE)
    u = torch.sin(PI * x) * torch.sin(2 * PI * y)
    slope_x = PI * torch.cos(PI * x) * torch.sin(2 * PI * y)
    slope_y = 2 * PI * torch.sin(PI * x) * torch.cos(2 * PI * y)
    v = (5 * PI**2 + q) * u + b[0] * slope_x + b[1] * slope_y
    found = problem(b=b, q=q)(v[None, None])
    assert relative(found - u, u) < 5e-3


def test_forced_laws_keep_values_at_the_sides_and_have_no_flux():
    """x^2 - y^2 is harmonic, exactly so on the grid; cosines have no slope at the sides."""
    x, y = square(FINE)
    g = x**2 - y**2
    found = problem(g=g)(torch.zeros(2, 1, 63, 63).double())
    torch.testing.assert_close(found, g.expand(2, 1, 63, 63), rtol=0, atol=1e-10)
    u = torch.cos(PI * x) * torch.cos(2 * PI * y)
    found = problem(q=3.0, conditions=("even", "even"))((5 * PI**2 + 3) * u[None, None])
    assert relative(found - u, u) < 3e-3


@pytest.mark.parametrize("mechanism", [linear.linear, forced.forced, waves.waves])
def test_linear_laws_are_affine(answers, mechanism):
    def make(grid, channels):
        f, g = smooth(2, grid, channels)
        return torch.stack([0 * f, f, g, 2 * f - 3 * g])

    for seed in range(20 if mechanism is linear.linear else 6):
        zero, of_f, of_g, of_both = answers(mechanism, make, seed)[1]
        expected = 2 * of_f - 3 * of_g + 2 * zero
        torch.testing.assert_close(of_both, expected, rtol=1e-7, atol=1e-7)


def test_volterra_laws_are_quadratic(answers):
    """Third differences of t -> O(t v) vanish."""

    def make(grid, channels):
        return torch.arange(5).double()[:, None, None, None] * smooth(1, grid, channels)

    for seed in range(6):
        u = answers(black_boxes.volterra, make, seed)[1]
        assert u.diff(n=3, dim=0).abs().max() < 1e-9 * u.abs().max()
        assert not u[0].any()


@pytest.mark.parametrize("kind", [linear.convolution, linear.filtered])
def test_periodic_convolutions_commute_with_translations(kind):
    f = smooth(2, TORUS)[:, 0]
    for seed in range(8):
        try:
            A = kind(dice(seed), TORUS)
        except RejectedError:
            continue
        torch.testing.assert_close(A(f.roll((3, 7), (1, 2))), A(f).roll((3, 7), (1, 2)))


def test_winds_have_no_divergence_and_slopes_no_rotation():
    f = smooth(2, TORUS)
    for outer, inner in ((linear.divergence, linear.winds), (linear.rotation, linear.slopes)):
        scale = laplacian(TORUS, f)
        assert outer(TORUS)(inner(TORUS)(f)).abs().max() < 1e-10 * scale.abs().max()
    twice = linear.divergence(TORUS)(linear.slopes(TORUS)(f))
    assert relative(twice - scale, scale) < 1e-3


def test_interpolation_is_exact_for_cubic_polynomials():
    x, y = square(COARSE)
    s, t = places = dice(0).uniforms(2, 5, 7)
    f = x**3 - x * y**3 + 2 * y**2
    found = warp.interpolation(places, COARSE) @ f.numpy().ravel()
    expected = s**3 - s * t**3 + 2 * t**2
    torch.testing.assert_close(torch.from_numpy(found), expected.flatten(), rtol=0, atol=1e-12)


def test_transport_by_whole_points_is_a_translation():
    f, wind = smooth(2, TORUS), torch.full((2, 32, 32), 4 / 32).double()
    wind[1] *= -0.5
    flow = transport.Transport(TORUS, "periodic", wind, (0.0, 0.0), None, 1).flow()
    torch.testing.assert_close(flow(f), f.roll((4, -2), (2, 3)), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("condition", "wave"), [("zero", torch.sin), ("even", torch.cos)])
def test_heat_decays_as_the_analytic_mode(condition, wave):
    x, y = square(FINE)
    v = (wave(PI * x) * wave(2 * PI * y))[None, None]
    u = transport.Transport(FINE, condition, None, (0.02, 0.01), None, 3).flow()(v)
    torch.testing.assert_close(u, math.exp(-(PI**2) * 0.06) * v, rtol=0, atol=1e-3)


def test_flow_about_stream_lines_conserves_the_mean():
    """So does diffusion without flux; a stream line is a solution that does not move."""
    x, y = square(FINE_TORUS)
    psi = torch.sin(2 * PI * x) * torch.sin(2 * PI * y)
    first, second = gradient(FINE_TORUS, psi)
    wind = 0.02 * torch.stack([second, -first])
    equation = transport.Transport(FINE_TORUS, "periodic", wind, (0.0, 0.0), None, 1)
    torch.testing.assert_close(equation.flow()(psi[None, None])[0, 0], psi, rtol=0, atol=1e-4)
    f = smooth(2, FINE_TORUS) + 1
    drift = equation.flow()(f).mean((2, 3)) - f.mean((2, 3))
    assert drift.abs().max() < 1e-4
    f = smooth(2, FINE) + 1
    spread = transport.Transport(FINE, "even", None, (0.01, 0.02), None, 2).flow()(f)
    means = [torch.trapezoid(torch.trapezoid(s, dx=FINE.h), dx=FINE.h) for s in (f, spread)]
    torch.testing.assert_close(*means, rtol=0, atol=1e-10)


def test_reactions_are_of_second_order():
    """Allen-Cahn from a constant has a solution in closed form."""
    rate, steps, s = 3.0, [4, 8, 16], 0.4
    grown = math.exp(2 * rate)
    exact = s * math.sqrt(grown / (1 + s * s * (grown - 1)))
    errors = []
    for n in steps:
        equation = transport.Transport(
            TORUS, "periodic", None, (0.01, 0.01), lambda s: rate * (s - s**3), n
        )
        u = equation.flow()(torch.full((1, 1, 32, 32), s).double())
        errors.append((u - exact).abs().max().item())
    assert errors[-1] < 2e-3
    assert -2.4 < np.polyfit(np.log(steps), np.log(errors), 1)[0] < -1.7


@pytest.mark.parametrize("grid", [TORUS, FINE_TORUS])
def test_a_flow_advected_by_itself_is_that_of_burgers(grid):
    """Against the solver of another file, in its units: a square of side 64."""
    moved, nu, v = 0.08, 0.08**2 / 2, smooth(2, grid, 2, length=0.2)
    flow = flows.Flow(moved * flows.by_itself(), (nu, nu), NONE, 0.0, 0.3, grid)
    other = burgers.evolve(burgers.SIDE * moved * v, nu * burgers.SIDE**2, 1.0, 0.02)
    assert relative(flow(v) * burgers.SIDE * moved - other, other) < 2e-3


def test_flows_with_linear_terms_have_their_exact_solution():
    """Without advection, s_t = m s + nu laplacian s."""
    x, _ = square(TORUS)
    m = torch.tensor([[0.2, -0.8], [0.5, 0.1]]).double()
    flow = flows.Flow(torch.zeros(2, 2, 2, 2).double(), (0.01, 0.01), m, 0.0, 0.3, TORUS)
    v = torch.stack([torch.cos(2 * PI * x), 2 * torch.cos(2 * PI * x)])[None]
    exact = torch.einsum("ij,njxy->nixy", torch.matrix_exp(m), v) * math.exp(-0.04 * PI**2)
    torch.testing.assert_close(flow(v), exact, rtol=0, atol=1e-4)


def test_unresolved_flows_are_rejected():
    v = smooth(2, TORUS, 2, length=0.2)
    steep = flows.Flow(flows.by_itself() / 2, (1e-6, 1e-6), NONE, 0.0, 2.0, TORUS)
    with pytest.raises(RejectedError):
        steep(v)


def test_vortices_of_taylor_and_green_decay():
    """They are steady without viscosity; the mean is conserved; drag slows all alike."""
    x, y = square(FINE_TORUS)
    w = (torch.sin(2 * PI * x) * torch.sin(2 * PI * y))[None, None]
    none = torch.zeros(64, 64).double()
    u = vorticity.Fluid(2.0, 0.002, 0.3, 0.3)(w, none)
    exact = math.exp(-0.002 * 8 * PI**2 - 0.3) * w
    torch.testing.assert_close(u, exact, rtol=0, atol=1e-4)
    w = smooth(2, FINE_TORUS) + 0.5
    u = vorticity.Fluid(1.0, 0.001, 0.0, 0.3)(w, none)
    torch.testing.assert_close(u.mean((2, 3)), w.mean((2, 3)), rtol=0, atol=1e-5)
    assert (u.var((2, 3)) < w.var((2, 3))).all()


def test_velocity_has_its_vorticity():
    w = smooth(2, FINE_TORUS)[:, 0]
    grid = spectral.WAVES[FINE_TORUS]
    q = grid.field(vorticity.velocity(grid.series(w.float()), grid)).double()
    found = linear.rotation(FINE_TORUS)(q)[:, 0]
    expected = w - w.mean((1, 2), keepdim=True)
    assert relative(found - expected, expected) < 1e-4


@pytest.mark.parametrize(
    ("grid", "condition", "wave", "k"),
    [
        (FINE_TORUS, "periodic", torch.cos, 2 * PI),
        (FINE, "zero", torch.sin, PI),
        (FINE, "even", torch.cos, PI),
    ],
)
def test_waves_have_their_exact_solution(grid, condition, wave, k):
    """s'' + mu s' + (c^2 k^2 + b k^4 + m) s = 0 for one mode, from a start and a velocity."""
    c, b, m, mu = 0.7, 1e-4, 2.0, 0.9
    mode = wave(k * square(grid)[0])
    if condition == "zero":
        mode = mode * torch.sin(PI * square(grid)[1])
    squares = k**2 * (2 if condition == "zero" else 1)
    w = c**2 * squares + b * squares**2 + m
    A = torch.tensor([[0.0, 1.0], [-w, -mu]]).double()
    v = torch.stack([mode, 0.5 * mode])[None]
    exact = torch.einsum("ij,njxy->nixy", torch.matrix_exp(A), v)
    u = waves.Waving(grid, condition, (c, c), b, m, mu)(v)
    assert relative(u - exact, exact) < 2e-3


def test_waves_conserve_energy():
    v = smooth(1, FINE_TORUS, 2)
    u = waves.Waving(FINE_TORUS, "periodic", (0.6, 0.6))(v)
    energies = [
        (s[:, 1].square() + 0.36 * sum(f.square() for f in gradient(FINE_TORUS, s[:, 0]))).mean()
        for s in (v, u)
    ]
    assert energies[1] == pytest.approx(energies[0].item(), rel=1e-9)


def test_pairs_of_a_trajectory_chain():
    """All pairs together are one path: every u but the last is the v of another pair."""
    for kind in (trajectory.carried, trajectory.flowing, trajectory.mixed):
        law = trajectory.states_of(*kind(dice(3)), dice(3))
        v, u = law(trajectory.LONGEST, dice(3))
        follows = (u[:, None] == v).flatten(2).all(-1)
        assert (follows.sum(1) == 1).sum() >= trajectory.LONGEST - 1


def unexplained(v, u, grid):
    """The share of v that is no sum of the terms of N(u) and a fixed field."""
    first, second = gradient(grid, u)
    terms = [laplacian(grid, u), first, second, u, u**3, u * first, u * second]
    terms = torch.stack([*terms, first**2 + second**2], -1).flatten(1, 3)
    terms, v = ((f - f.mean(0)).flatten(0, 1) for f in (terms, v.flatten(1)[..., None]))
    terms = terms / terms.norm(dim=0)
    return relative(v - terms @ torch.linalg.lstsq(terms, v).solution, v)


def test_u_first_gives_v_of_u():
    backward = 0
    for seed in range(12):
        v, u = u_first.u_first(dice(seed))(3, dice(seed))
        grid = FINE_TORUS if v.shape[-1] == 64 else FINE
        asked, inverse = unexplained(v, u, grid) < 1e-6, unexplained(u, v, grid) < 1e-6
        assert asked or inverse
        backward += asked
    assert 5 <= backward < 12


def test_periodic_networks_commute_with_translations(answers):
    found, shift = 0, ((5, 2), (2, 3))
    for seed in range(12):
        v, u = answers(neural.neural, lambda g, c: smooth(1, g, c), seed)
        w, moved = answers(neural.neural, lambda g, c: smooth(1, g, c).roll(*shift), seed)
        if w.shape == v.shape and relative(moved - u.roll(*shift), u) < 1e-9:
            found += 1
    assert found >= 3


def test_dilated_fields_are_above_and_running_ones_grow(answers):
    kinds = set()
    for seed in range(30):
        v, u = answers(black_boxes.extremes, lambda g, c: smooth(3, g, c), seed)
        if not torch.isin(u, v).all():
            continue
        assert (u >= v).all()
        kinds.add(bool((u.diff(dim=2) >= 0).all()))
    assert kinds == {True, False}


class Independent(Dice):
    """Picks 0 where it is offered: the share of v in u."""

    def pick(self, options, shares=None):
        zero = isinstance(options[0], float) and options[0] == 0
        return 0.0 if zero else super().pick(options, shares)


def test_unrelated_fields_are_independent():
    """Principal components of v and u are correlated no more than chance allows."""
    n = 250
    for seed in range(3):
        pairs = black_boxes.unrelated(dice(seed, Independent))(n, dice(seed))
        flat = [f.flatten(1) - f.flatten(1).mean(0) for f in pairs]
        scores = [torch.linalg.eigh(f @ f.T)[1][:, -3:] for f in flat]
        assert (scores[0].T @ scores[1]).abs().max() < 5 / math.sqrt(n)


def test_maps_have_few_hidden_numbers():
    for seed in range(5):
        _, u = black_boxes.maps(dice(seed))(60, dice(seed))
        sizes = torch.linalg.svdvals(u.flatten(1))
        assert (sizes > 1e-10 * sizes[0]).sum() <= 15
