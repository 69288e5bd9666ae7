"""Fields that solve an equation whose coefficients depend on v nearby."""

import numpy as np
import pytest
import torch

import transduce
from transduce.kernels.implicit import ImplicitLaw
from transduce.kernels.periodic import PerhapsPeriodic
from transduce.kernels.stencil import (
    Neighbours,
    SparseSolution,
    Stencil,
    feature_counts,
    features_of,
)
from transduce.spaces import SampledFields

GRID = (9, 11)
FIELDS = SampledFields(*GRID)
NEAR = Neighbours(GRID)


def rough(n: int, seed: int) -> torch.Tensor:
    """Fields of two values, in patches."""
    g = torch.Generator().manual_seed(seed)
    f = torch.randn(n, 1, *GRID, generator=g).double()
    near = torch.nn.functional.avg_pool2d(f, 3, 1, 1)
    return (near > 0).double().flatten(1)


def flow(v: torch.Tensor, contrast: float = 4.0) -> torch.Tensor:
    """u = 1 / 4 + the mean of u around, weighed by conductances 1 or more; 0 outside."""
    a = 1 + (contrast - 1) * v.view(-1, *GRID)
    wide = torch.nn.functional.pad(a[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
    near = [wide[:, :-2, 1:-1], wide[:, 2:, 1:-1], wide[:, 1:-1, :-2], wide[:, 1:-1, 2:]]
    faces = torch.stack([2 * a * b / (a + b) for b in near], 1)
    inside = torch.ones_like(faces)
    inside[:, 0, 0], inside[:, 1, -1], inside[:, 2, :, 0], inside[:, 3, :, -1] = 0, 0, 0, 0
    weights = (inside * faces / faces.sum(1, keepdim=True)).flatten(2)
    constant = (1 / faces.sum(1)).flatten(1)
    return SparseSolution.apply(weights, constant[..., None], NEAR)[..., 0]


def relative(answer, truth, examples):
    return float((answer - truth).square().sum() / (truth - examples.mean(0)).square().sum())


def test_eight_examples_tell_the_equation_of_forced_diffusion():
    """-laplacian u + 3 u = v, with u = 0 around: v enters linearly, at its own point alone."""
    g = torch.Generator().manual_seed(0)
    v = torch.randn(40, GRID[0] * GRID[1], generator=g).double()
    weights = torch.zeros(40, 4, v.shape[1]).double()
    numbers = torch.arange(v.shape[1]).view(GRID)
    for k, inside in enumerate((numbers[1:], numbers[:-1], numbers[:, 1:], numbers[:, :-1])):
        weights[:, k, inside.flatten()] = 1 / 4.03
    u = SparseSolution.apply(weights, v[..., None] / 4.03, NEAR)[..., 0]
    law = ImplicitLaw(FIELDS, FIELDS)
    answer = law.answer_task(law.fit_task(v[:8], u[:8]), v[8:])
    assert relative(answer, u[8:], u[:8]) < 1e-12


def test_flow_through_two_media_is_learned_from_ten_examples_and_not_from_shuffled_ones():
    v, law = rough(60, 0), ImplicitLaw(FIELDS, FIELDS)
    u = flow(v)
    own = relative(law.answer_task(law.fit_task(v[:10], u[:10]), v[10:]), u[10:], u[:10])
    wrong = law.answer_task(law.fit_task(v[:10], u[:10].roll(1, 0)), v[10:])
    assert own < 0.05 < 0.5 < relative(wrong, u[10:], u[:10])


def test_coefficients_that_vary_by_factors_are_seen_by_their_logarithms():
    g = torch.Generator().manual_seed(1)
    smooth = torch.nn.functional.avg_pool2d(torch.randn(60, 1, 13, 15, generator=g).double(), 5, 1)
    v = torch.exp(4 * smooth).flatten(1)
    u, law = flow(v, 2.0), ImplicitLaw(FIELDS, FIELDS)
    fit = law.fit_task(v[:12], u[:12])
    assert fit.chosen.least is not None
    assert relative(law.answer_task(fit, v[12:]), u[12:], u[:12]) < 0.05
    assert law.answer_task(fit, -v[12:]).isfinite().all()


def test_residuals_are_about_as_large_as_errors():
    v = rough(90, 1)
    u = flow(v, 12.0)
    for n in (8, 24):
        law = ImplicitLaw(FIELDS, FIELDS)
        fit = law.fit_task(v[:n], u[:n])
        error = (law.answer_task(fit, v[30:]) - u[30:]).square().mean()
        assert 1 / 3 < fit.residual.square().mean() / error < 4


def test_periodic_diffusion_is_learned_without_edges():
    """Eight examples tell the equation exactly, and moved inputs have moved images."""
    near = Neighbours(GRID, periodic=True)
    v = torch.nn.functional.avg_pool2d(
        torch.nn.functional.pad(rough(40, 3).view(-1, 1, *GRID), (1, 1, 1, 1), mode="circular"),
        *(3, 1),
    ).flatten(1)
    weights = torch.full((40, 4, v.shape[1]), 1 / 4.03).double()
    u = SparseSolution.apply(weights, v[..., None] / 4.03, near)[..., 0]
    laws = (ImplicitLaw(FIELDS, FIELDS, periodic=periodic) for periodic in (False, True))
    law = PerhapsPeriodic(FIELDS, FIELDS, *laws)
    fit = law.fit_task(v[:8], u[:8])
    assert fit.periodic and relative(law.answer_task(fit, v[8:]), u[8:], u[:8]) < 1e-9
    moved = v[8:].view(-1, *GRID).roll((2, 3), (1, 2)).flatten(1)
    expected = u[8:].view(-1, *GRID).roll((2, 3), (1, 2)).flatten(1)
    assert relative(law.answer_task(fit, moved), expected, u[:8]) < 1e-9


def test_where_no_equation_holds_the_mean_is_the_answer():
    g = torch.Generator().manual_seed(0)
    v, u = torch.randn(2, 12, GRID[0] * GRID[1], generator=g).double()
    law = ImplicitLaw(FIELDS, FIELDS)
    fit = law.fit_task(v, u)
    assert fit.chosen is None
    assert torch.equal(law.answer_task(fit, v[:2]), u.mean(0).expand(2, -1))


def test_answers_are_bounded_where_the_equations_are_singular():
    """All weights 1 / 4 and no sides: u is known but for a constant."""
    stencil = Stencil(GRID, *feature_counts(1)[0])
    f = features_of(rough(2, 0)[:, None], GRID)
    w = stencil.mean_of_neighbours()
    u = stencil.solve(f, w, torch.tensor(2.0).double())
    assert u.isfinite().all() and u.abs().max() <= 8


@pytest.mark.parametrize("periodic", [False, True])
def test_solutions_have_derivatives(periodic):
    g = torch.Generator().manual_seed(0)
    near = Neighbours((3, 4), periodic)
    w = (near.exist * torch.rand(2, 4, 12, generator=g).double() / 5).requires_grad_()
    b = torch.randn(2, 12, 2, generator=g).double().requires_grad_()

    def solved(w, b):
        return SparseSolution.apply(near.exist * w, b, near)

    assert torch.autograd.gradcheck(solved, (w, b))


@pytest.mark.parametrize("channels", [1, 2])
def test_features_of_few_are_the_first_of_many(channels):
    f = features_of(rough(3 * channels, 0).view(3, channels, -1), GRID)
    counts = feature_counts(channels)
    assert f.shape == (3, GRID[0] * GRID[1], counts[-1][0])
    assert counts == sorted(counts)


def test_graphs_leave_implicit_answers_out_and_say_so(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    v = rough(30, 0)
    u = flow(v).view(-1, *GRID).numpy()
    v = v.view(-1, *GRID).numpy()
    O = transduce.regress(v[:20], u[:20])
    with pytest.warns(UserWarning, match=r"leaves out implicit.* leave-one-out errors are"):
        O.export(tmp_path / "flow.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "flow.onnx")
    (found,) = session.run(["u"], {"v": v[20:]})
    mean = np.square(u[20:] - u[:20].mean(0)).sum()
    assert np.square(O(v[20:]) - u[20:]).sum() < np.square(found - u[20:]).sum() < mean
