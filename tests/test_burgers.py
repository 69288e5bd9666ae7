"""The Burgers solver against exact solutions, its symmetries and measured order, and what the
family promises."""

import math

import numpy as np
import pytest
import torch
import xarray as xr

from transduce.families import Burgers2d
from transduce.families.burgers import SIDE, Burgers2dOperator, evolve
from transduce.metrics import relative_l2
from transduce.random_fields import generator_for, periodic_field
from transduce.types import Operator, OperatorFamily, TransduceError


def fields(n: int, points: int, amplitude: float, number: int = 0) -> torch.Tensor:
    """Random states, the same functions on every grid."""
    drawn = periodic_field(2 * n, points, 0.125, generator_for("validation", number))
    return amplitude * drawn.reshape(n, 2, points, points)


def cell_grid(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Both coordinates in cells."""
    x = torch.arange(points, dtype=torch.float64) * SIDE / points
    return x[:, None], x[None, :]


def cole_hopf(points: int, nu: float, t: float) -> torch.Tensor:
    """s = -2 nu grad log phi, phi = 1 + sum a cos(k . x + b) exp(-nu |k|^2 t) a solution of the
    heat equation."""
    x, y = cell_grid(points)
    phi, gradient = (
        torch.ones(points, points, dtype=torch.float64),
        torch.zeros(2, points, points, dtype=torch.float64),
    )
    for j, l, a, b in ((1, 0, 0.4, 0.3), (0, 2, 0.2, 1.0), (2, 1, 0.15, 2.0), (1, -3, 0.1, 4.0)):
        k, m = 2 * math.pi * j / SIDE, 2 * math.pi * l / SIDE
        a *= math.exp(-nu * (k**2 + m**2) * t)
        phi += a * torch.cos(k * x + m * y + b)
        gradient -= (
            a
            * torch.sin(k * x + m * y + b)
            * torch.tensor([k, m], dtype=torch.float64)[:, None, None]
        )
    return (-2 * nu * gradient / phi)[None]


def test_cole_hopf_to_spectral_accuracy():
    nu, t = 0.5, 60.0
    errors = []
    for points in (16, 32, 64):
        v, u = cole_hopf(points, nu, 0.0), cole_hopf(points, nu, t)
        errors.append(relative_l2(evolve(v, nu, t, dt=0.5), u).item())
    assert errors[0] > 30 * errors[1] > 30**2 * errors[2]  # no fixed order of differences
    assert errors[2] < 1e-9
    diffused = torch.fft.ifft2(
        torch.fft.fft2(v) * torch.exp(-nu * t * squared_wavenumbers(64))
    ).real
    assert relative_l2(diffused, u) > 0.05  # advection matters


def squared_wavenumbers(points: int) -> torch.Tensor:
    k = 2 * torch.pi / SIDE * torch.fft.fftfreq(points, 1 / points, dtype=torch.float64)
    return k[:, None] ** 2 + k[None, :] ** 2


def test_fourth_order_in_time():
    v = fields(3, 32, 0.3)
    reference = evolve(v, 0.1, 10.0, dt=10 / 240)
    steps = [20, 30, 40, 60]
    errors = [relative_l2(evolve(v, 0.1, 10.0, dt=10 / count), reference).item() for count in steps]
    assert -4.2 < np.polyfit(np.log(steps), np.log(errors), 1)[0] < -3.8


def test_the_default_step_is_fine_enough():
    v = fields(10, 64, 0.3, number=1)
    fine = evolve(v, 0.1, 10.0, dt=1 / 9)
    assert relative_l2(Burgers2dOperator(0.1)(v), fine) < 1e-5
    assert relative_l2(Burgers2dOperator(0.1)(v.float()).double(), fine) < 1e-5


@pytest.mark.parametrize("mode", [(1, 0), (0, 2), (3, -4)])
@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_a_small_mode_decays_as_diffusion_says(mode, nu):
    x, y = cell_grid(32)
    k, m = (2 * math.pi * j / SIDE for j in mode)
    v = 1e-7 * torch.stack([torch.cos(k * x + m * y), torch.sin(k * x + m * y)])[None]
    assert torch.allclose(
        Burgers2dOperator(nu, 10.0)(v), math.exp(-nu * (k**2 + m**2) * 10) * v, rtol=0, atol=1e-12
    )


def test_modes_too_fine_to_advect_diffuse():
    x, y = cell_grid(32)
    k = 2 * math.pi * 14 / SIDE
    wave = torch.cos(k * x) + 0 * y
    v = torch.stack([wave, 0.5 * wave])[None]
    assert torch.allclose(evolve(v, 0.1, 5.0), math.exp(-0.1 * k**2 * 5) * v, atol=1e-12)


def test_no_time_is_no_change():
    v = torch.randn(2, 2, 16, 18, dtype=torch.float64, generator=generator_for("validation", 0))
    assert torch.allclose(Burgers2dOperator(0.3, 0.0)(v), v, atol=1e-12)


def test_shifts_commute_with_the_operator():
    O, v = Burgers2dOperator(0.1), fields(2, 64, 0.3)
    torch.testing.assert_close(
        O(v.roll((5, -11), (2, 3))), O(v).roll((5, -11), (2, 3)), rtol=0, atol=1e-12
    )


def quarter_turn(s: torch.Tensor) -> torch.Tensor:
    """The field R s(R^-1 x) for R (x_1, x_2) = (-x_2, x_1)."""
    turned = s[..., -torch.arange(s.shape[-1]) % s.shape[-1]].transpose(-1, -2)
    return torch.stack([-turned[:, 1], turned[:, 0]], 1)


def test_rotations_commute_with_the_operator():
    O, v = Burgers2dOperator(0.1), fields(2, 64, 0.3)
    torch.testing.assert_close(O(quarter_turn(v)), quarter_turn(O(v)), rtol=0, atol=1e-12)
    # Exchanging the components alone is no symmetry.
    assert relative_l2(O(v.flip(1)), O(v).flip(1)) > 0.1


def test_a_moving_observer_sees_the_same():
    """Galilei: s(x, t) + c at x + c t solves the equation too. Here c t is a whole number of
    cells."""
    O, v = Burgers2dOperator(0.2, 10.0, dt=1 / 8), fields(2, 64, 0.1)
    c = torch.tensor([0.3, -0.2], dtype=torch.float64)[:, None, None]
    torch.testing.assert_close(O(v + c), O(v).roll((3, -2), (2, 3)) + c, rtol=0, atol=1e-7)


def test_nothing_grows():
    v = fields(8, 64, 0.1)
    u = Burgers2dOperator(0.1)(v)
    assert (u.abs().amax((2, 3)) <= (1 + 1e-6) * v.abs().amax((2, 3))).all()


def test_a_longer_time_is_two_shorter_ones():
    v = fields(2, 64, 0.2)
    first, second, both = (
        Burgers2dOperator(0.1, increment, dt=0.5) for increment in (4.0, 6.0, 10.0)
    )
    torch.testing.assert_close(second(first(v)), both(v), rtol=0, atol=1e-12)


def test_finer_grids_agree():
    O = Burgers2dOperator(0.1)
    assert relative_l2(O(fields(4, 64, 0.1)), O(fields(4, 128, 0.1))[..., ::2, ::2]) < 2e-5


def test_a_resolution_of_its_own_makes_the_grid_of_v_immaterial():
    O, fine = Burgers2dOperator(0.1, resolution=128), fields(2, 128, 0.3)
    u = O(fine)
    for strides in ((2, 2), (1, 2), (4, 1)):
        coarse = tuple(slice(None, None, stride) for stride in strides)
        torch.testing.assert_close(O(fine[(..., *coarse)]), u[(..., *coarse)], rtol=0, atol=1e-10)
    # 64 points do not resolve these fronts.
    assert relative_l2(Burgers2dOperator(0.1)(fine[..., ::2, ::2]), u[..., ::2, ::2]) > 1e-3


def test_gradients_reach_v():
    v = fields(1, 12, 0.3)[..., ::2, ::3].clone().requires_grad_()
    O = Burgers2dOperator(0.1, 0.5, resolution=8)
    assert torch.autograd.gradcheck(O, (v,))


def test_results_are_of_the_kind_of_v():
    O, v = Burgers2dOperator(0.3), fields(2, 16, 0.1)
    assert isinstance(O, Operator)
    u = O(v)
    assert u.dtype == torch.float64
    assert O(v.float()).dtype == torch.float32 and O(v.bfloat16()).dtype == torch.bfloat16
    array = O(v.numpy())
    assert isinstance(array, np.ndarray) and np.array_equal(array, u.numpy())
    labelled = O(
        xr.DataArray(
            v.numpy(), dims=("run", "component", "x", "y"), coords={"component": ["x", "y"]}
        )
    )
    assert labelled.dims == (
        "run",
        "component",
        "x",
        "y",
    ) and labelled.component.values.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    "shape",
    [
        (2, 64, 64),
        (5, 1, 64, 64),
        (5, 3, 64, 64),
        (5, 2, 64),
        (0, 2, 64, 64),
        (5, 2, 64, 3),
        (1, 5, 2, 64, 64),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(shape):
    with pytest.raises(TransduceError, match=r"expects \(n, 2, p, q\)"):
        Burgers2dOperator(0.1)(np.zeros(shape))


def test_a_solution_that_is_not_resolved_is_refused():
    with pytest.raises(
        TransduceError, match=r"Lower dt=0\.333, raise the resolution, or scale v down"
    ):
        Burgers2dOperator(0.1)(fields(2, 64, 5.0))


def test_the_random_field_has_the_covariance_it_claims():
    n, points, length_scale = 4000, 16, 0.125
    drawn = periodic_field(n, points, length_scale, generator_for("train", 0))
    x = torch.arange(points, dtype=torch.float64) / points
    wrapped = sum(torch.exp(-((x + turn) ** 2) / (2 * length_scale**2)) for turn in range(-3, 4))
    expected = wrapped[:, None] * wrapped[None, :]
    measured = torch.fft.ifft2(torch.fft.fft2(drawn).abs().square().mean(0)).real / points**2
    assert (measured - expected).abs().max() < 0.02
    assert drawn.dtype == torch.float64
    assert drawn.mean(0).abs().max() < 5 / n**0.5
    # However long it is.
    assert abs(periodic_field(n, 4, 0.5, generator_for("train", 1)).square().mean() - 1) < 0.05


def test_equal_generators_draw_the_same_functions_on_every_grid():
    coarse, fine = (
        periodic_field(3, points, 0.125, generator_for("test", 2)) for points in (16, 48)
    )
    torch.testing.assert_close(coarse, fine[:, ::3, ::3], rtol=0, atol=1e-12)


def test_equal_seeds_give_equal_tasks_and_others_do_not():
    family = Burgers2d(increment=1.0, points=16)
    one, same, other = (
        family.sample_task(3, 2, generator_for("test", number)) for number in (7, 7, 8)
    )
    for a, b, c in (
        (one.examples, same.examples, other.examples),
        (one.queries, same.queries, other.queries),
    ):
        assert torch.equal(a.v, b.v) and torch.equal(a.u, b.u)
        assert not torch.equal(a.v[:2], c.v[:2])


def test_examples_and_queries_are_draws_of_their_own():
    task = Burgers2d(increment=0.5, points=16).sample_task(4, 4, generator_for("train", 0))
    assert len(task.examples) == len(task.queries) == 4
    v = torch.cat([task.examples.v, task.queries.v]).flatten(1)
    correlation = torch.corrcoef(v) - torch.eye(8)
    assert correlation.abs().max() < 0.9
    # Nor are the components one draw.
    assert (
        abs(torch.corrcoef(torch.stack([v[:, :256].flatten(), v[:, 256:].flatten()]))[0, 1]) < 0.5
    )


def test_what_is_reported():
    family = Burgers2d()
    assert isinstance(family, OperatorFamily)
    task = family.sample_task(2, 1, generator_for("train", 0))
    for f in (task.examples.v, task.examples.u):
        assert f.shape == (2, 2, 64, 64) and f.dtype == torch.float32
    assert family.x.shape == (64,) and family.x[0] == 0 and family.x[-1] == 63 / 64


def test_all_pairs_of_a_task_share_the_operator():
    family = Burgers2d(nu=(0.1, 0.5), start=(0.0, 3.0), increment=(1.0, 5.0), points=32)
    for number in range(3):
        O = family.sample_operator(generator_for("test", number))
        task = family.sample_task(3, 2, generator_for("test", number))
        for pairs in (task.examples, task.queries):
            assert relative_l2(O(pairs.v), pairs.u) < 1e-5
            assert relative_l2(Burgers2dOperator(1.5 * O.nu, O.increment)(pairs.v), pairs.u) > 1e-3


def test_v_is_the_state_at_the_start():
    at_zero, later = (
        Burgers2d(0.2, nu=0.3, start=start, increment=1.0, points=32) for start in (0.0, 4.0)
    )
    zero, four = (
        family.sample_task(3, 1, generator_for("test", 1)).examples.v for family in (at_zero, later)
    )
    torch.testing.assert_close(four, Burgers2dOperator(0.3, 4.0)(zero))
    assert zero.std() > four.std() > 0


def test_a_family_of_finer_resolution_reports_fewer_points():
    family, same = (
        Burgers2d(0.3, nu=0.1, increment=5.0, resolution=128),
        Burgers2d(0.3, nu=0.1, increment=5.0, points=128),
    )
    coarse, fine = (
        each.sample_task(1, 1, generator_for("test", 3)).examples for each in (family, same)
    )
    assert coarse.u.shape == (1, 2, 64, 64)
    torch.testing.assert_close(coarse.v, fine.v[..., ::2, ::2], rtol=0, atol=1e-6)
    torch.testing.assert_close(coarse.u, fine.u[..., ::2, ::2], rtol=0, atol=1e-6)


def test_amplitude_is_the_standard_deviation():
    family = Burgers2d(amplitude=0.3, start=0.0, points=16)
    v = family.sample_starts(
        family.sample_operator(generator_for("train", 0)), 2000, generator_for("train", 1)
    )
    assert abs(v.square().mean((0, 2, 3)).sqrt() / 0.3 - 1).max() < 0.03


def test_ranges_are_drawn_within_their_bounds():
    ranges = {
        "amplitude": (0.1, 0.3),
        "nu": (0.2, 0.4),
        "start": (1.0, 2.0),
        "increment": (5.0, 10.0),
    }
    family = Burgers2d(**ranges)
    drawn = [family.sample_operator(generator_for("train", number)) for number in range(200)]
    for name, (low, high) in ranges.items():
        values = [getattr(operator, name) for operator in drawn]
        assert low <= min(values) < low + 0.05 * (high - low)
        assert high - 0.05 * (high - low) < max(values) <= high
    fixed = Burgers2d(**ranges | {"start": 1.5}).sample_operator(generator_for("train", 0))
    assert fixed.start == 1.5 and (fixed.nu, fixed.amplitude) == (drawn[0].nu, drawn[0].amplitude)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nu": (0.5, 0.1)}, r"nu=\(0.5, 0.1\); expected a number from 0, or \(low, high\)"),
        ({"increment": -1.0}, "increment=-1.0"),
        ({"amplitude": math.nan}, "amplitude=nan"),
        ({"start": (0.0, math.inf)}, "start="),
        ({"points": 2}, "points=2; expected a whole number of at least 4"),
        ({"resolution": 0}, "resolution=0"),
        ({"dt": 0.0}, "dt=0.0"),
        ({"length_scale": 0.0}, "length_scale=0.0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(TransduceError, match=message):
        Burgers2d(**options)
