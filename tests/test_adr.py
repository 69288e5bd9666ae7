"""The ADR solver against exact solutions, its measured order, and what the family promises."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from transduce.families.adr import (
    AdvectionDiffusionReaction,
    AdvectionDiffusionReactionOperator,
    boundary_mask,
    linear_flow,
)
from transduce.metrics import relative_mse
from transduce.random_fields import gaussian_field, generator_for, seed_for
from transduce.types import OperatorFamily, TransduceError


def grid(points: int) -> torch.Tensor:
    return torch.linspace(0, 1, points, dtype=torch.float64)


def smooth_operator(
    points: int = 401, steps: int = 16, k: float = 0.2
) -> AdvectionDiffusionReactionOperator:
    """Coefficients with many derivatives, delta away from zero, so that errors show the scheme's
    own order."""
    x = grid(points)
    return AdvectionDiffusionReactionOperator(
        0.01 * (1 + 0.5 * torch.sin(3 * x)), 0.05 * torch.cos(5 * x), k, steps=steps
    )


def smooth_state(points: int) -> torch.Tensor:
    x = grid(points)
    return torch.stack(
        [torch.sin(torch.pi * x) + 0.5 * torch.sin(2 * torch.pi * x), x * (1 - x) * torch.exp(x)]
    )


def slope(sizes: list[int], errors: list[float]) -> float:
    """Of log(error) against log(size)."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


@pytest.mark.parametrize("mode", [1, 2, 5])
def test_heat_decays_as_the_analytic_mode(mode):
    x, delta, t = grid(401), 0.01, 1.0
    s = torch.sin(mode * torch.pi * x)[None]
    u = AdvectionDiffusionReactionOperator(
        torch.full_like(x, delta), torch.zeros_like(x), k=0.0, t=t
    )(s)
    discrete = 4 * 400**2 * math.sin(mode * math.pi / 800) ** 2
    assert torch.allclose(u, math.exp(-delta * discrete * t) * s, atol=1e-11)
    assert torch.allclose(
        u,
        math.exp(-delta * (mode * math.pi) ** 2 * t) * s,
        atol=delta * (mode * math.pi) ** 4 / 400**2,
    )


def test_reaction_is_exact():
    x, k, t = grid(401), 0.3, 0.7
    v = boundary_mask(x)[None] * torch.tensor([[1.5], [-2.0]], dtype=torch.float64)
    u = AdvectionDiffusionReactionOperator(torch.zeros_like(x), torch.zeros_like(x), k, t)(v)
    assert torch.allclose(u, v / (1 - k * v * t), atol=1e-12)


def test_flow_is_the_matrix_exponential():
    """For a cubic delta, whose values at half points are known."""
    points, h = 401, 1 / 16
    x, dx = grid(points), 1 / (points - 1)

    def delta(x: torch.Tensor) -> torch.Tensor:
        return 0.08 * (x - 0.3) ** 2 * (x + 0.2) + 1e-3

    nu = 0.05 * torch.sin(7 * x)
    half = delta((x[1:] + x[:-1]) / 2) / dx**2
    A = torch.diag(-(half[1:] + half[:-1]))
    A += torch.diag(half[1:-1] + nu[1:-2] / (2 * dx), 1) + torch.diag(
        half[1:-1] - nu[2:-1] / (2 * dx), -1
    )
    assert (linear_flow(delta(x), nu, h) - torch.matrix_exp(h * A)).abs().max() < 1e-10


def test_second_order_in_space():
    """Each grid against the next finer one at their common points: the differences fall as the
    errors do."""
    sizes = [51, 101, 201, 401]
    solutions = [smooth_operator(points)(smooth_state(points)) for points in (*sizes, 801)]
    errors = [
        (fine[:, ::2] - coarse).square().mean().sqrt().item()
        for coarse, fine in pairwise(solutions)
    ]
    assert -2.1 < slope([points - 1 for points in sizes], errors) < -1.9


def test_second_order_in_time():
    reference = smooth_operator(101, steps=256)(smooth_state(101))
    sizes = [2, 4, 8, 16, 32]
    errors = [
        (smooth_operator(101, steps)(smooth_state(101)) - reference).square().mean().sqrt().item()
        for steps in sizes
    ]
    assert -2.1 < slope(sizes, errors) < -1.9


def test_equal_seeds_give_equal_tasks_and_others_do_not():
    family = AdvectionDiffusionReaction()
    one, same, other = (
        family.sample_task(3, 2, generator_for("test", number)) for number in (7, 7, 8)
    )
    for a, b, c in (
        (one.examples, same.examples, other.examples),
        (one.queries, same.queries, other.queries),
    ):
        assert torch.equal(a.v, b.v) and torch.equal(a.u, b.u)
        assert not torch.equal(a.v, c.v)


def test_splits_share_no_seed_and_no_operator():
    seeds = {
        split: {seed_for(split, number) for number in range(3000)}
        for split in ("train", "validation", "test")
    }
    assert len(set.union(*seeds.values())) == sum(map(len, seeds.values()))
    family = AdvectionDiffusionReaction()
    drawn = {
        split: {family.sample_operator(generator_for(split, number)).k for number in range(100)}
        for split in seeds
    }
    assert len(set.union(*drawn.values())) == 300


def test_what_is_reported():
    family = AdvectionDiffusionReaction()
    assert isinstance(family, OperatorFamily)
    task = family.sample_task(4, 3, generator_for("train", 0))
    assert len(task.examples) == 4 and len(task.queries) == 3
    assert family.x.shape == (101,) and family.x[0] == 0 and family.x[-1] == 1
    for f in (task.examples.v, task.examples.u):
        assert f.shape == (4, 101) and f.dtype == torch.float32
        assert not f[:, [0, -1]].any()


def test_the_operator_maps_reported_v_to_reported_u():
    family = AdvectionDiffusionReaction()
    for number in range(5):
        generator = generator_for("validation", number)
        operator = family.sample_operator(generator)
        pairs = family.sample_pairs(operator, 4, generator)
        assert relative_mse(operator(pairs.v), pairs.u) < 1e-6
        u = operator(pairs.v.numpy())
        assert isinstance(u, np.ndarray) and relative_mse(u, pairs.u.numpy()) < 1e-6


def test_solutions_that_blow_up_are_redrawn_and_counted():
    mild, wild = AdvectionDiffusionReaction(k_max=0.0), AdvectionDiffusionReaction(k_max=3.0)
    for number in range(5):
        mild.sample_task(20, 1, generator_for("train", number))
        assert wild.sample_task(20, 1, generator_for("train", number)).examples.u.abs().max() <= 8
    assert mild.redrawn == 0 and wild.redrawn > 0


def test_options_are_honoured():
    def draw(number: int = 0, **options) -> AdvectionDiffusionReactionOperator:
        return AdvectionDiffusionReaction(**options).sample_operator(generator_for("train", number))

    def crossings(nu: torch.Tensor) -> int:
        return int((nu[1:-2] * nu[2:-1] < 0).sum())

    assert sum(crossings(draw(i, length_scale=0.05).nu) for i in range(20)) > 2 * sum(
        crossings(draw(i).nu) for i in range(20)
    )
    ks = [draw(i, k_max=0.1).k for i in range(200)]
    assert 0 <= min(ks) < 0.01 and 0.09 < max(ks) <= 0.1
    assert draw(t=0.5).t == 0.5
    ts = [draw(i, t=(0.3, 1.0)).t for i in range(200)]
    assert 0.3 <= min(ts) < 0.35 and 0.95 < max(ts) <= 1.0
    assert torch.equal(draw(t=(0.3, 1.0)).delta, draw().delta) and draw(t=(0.3, 1.0)).k == draw().k


def test_a_longer_time_is_two_shorter_ones():
    x = grid(401)
    operator = smooth_operator()
    half = AdvectionDiffusionReactionOperator(
        operator.delta, operator.nu, operator.k, t=0.5, steps=8
    )
    v = torch.sin(torch.pi * x)[None]
    assert torch.allclose(operator(v), half(half(v)), atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 100), (101,), (2, 1), (3, 1, 101)])
def test_a_grid_that_does_not_fit_is_refused(shape):
    with pytest.raises(TransduceError, match="refinement"):
        smooth_operator()(np.zeros(shape))


def test_operators_can_be_solved_together():
    family = AdvectionDiffusionReaction(t=(0.3, 1.0))
    together = family.sample_operators(3, generator_for("validation", 1))
    generator = generator_for("validation", 1)
    v = (
        gaussian_field(3 * 4, 101, 0.2, generator_for("validation", 2)).reshape(3, 4, 101)
        * boundary_mask(family.x)
        / 4
    )
    for u, v_i, operator in zip(
        together(v), v, [family.sample_operator(generator) for _ in range(3)], strict=True
    ):
        torch.testing.assert_close(u, operator(v_i), rtol=0, atol=1e-12)


def test_a_family_that_always_blows_up_says_so(monkeypatch):
    monkeypatch.setattr("transduce.families.adr.REDRAWS", 3)
    with pytest.raises(TransduceError, match="Lower k_max or t"):
        AdvectionDiffusionReaction(k_max=1e5, t=10.0, points=21).sample_task(
            30, 1, generator_for("validation", 0)
        )
    with pytest.raises(TransduceError, match="points=402"):
        AdvectionDiffusionReaction(points=402)
