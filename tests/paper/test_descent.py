"""Softmax layers that start as a solver of least squares, and their lesson."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from paper.models import descent_softmax
from paper.models.descent import left_by_lines, lesson_errors, start_with_descent
from paper.recipes import LessonFirst, recipe
from transduce import ExampleSet, TransduceError, models
from transduce.families import Burgers2d
from transduce.metatraining import Training, metatrain
from transduce.metrics import relative_mse
from transduce.random_fields import generator_for
from transduce.recipes import train
from transduce.spaces import Padded, SineModes
from transduce.transducer import Transducer
from transduce.types import Task


def linear_task(n=200, m=50, modes=8, further=None):
    """Standardised coefficients, each scaled by a number of its own, plus `further` of them."""
    generator = torch.Generator().manual_seed(0)
    c = torch.randn(n + m, modes, generator=generator)
    u = c * torch.linspace(2, -1, modes)
    if further is not None:
        u = u + further(c)
    return c[None, :n], u[None, :n], c[None, n:], u[None, n:]


SETTINGS = {"heads": 8, "width": 4, "hidden": 8, "gain": 1e-4}


def descent(depth, memory=10, **options):
    torch.manual_seed(0)
    return descent_softmax(SineModes(8), SineModes(8), memory, depth, **(SETTINGS | options))


def without_descent(depth):
    """The same layers with Xavier's start."""
    torch.manual_seed(0)
    return models.softmax(*(Padded(SineModes(8), 10) for _ in "VU"), depth, **SETTINGS)


def error(T, task):
    v, u, v_query, u_query = task
    with torch.no_grad():
        answers = T(*padded(v, u, v_query))[..., :8]
        return ((answers - u_query).square().sum() / u_query.square().sum()).item()


def padded(*coefficients, extra=10):
    return [torch.nn.functional.pad(c, (0, extra)) for c in coefficients]


def test_each_layer_is_a_step_of_descent_on_least_squares():
    """The deeper, the nearer to a linear operator, without a step of training."""
    errors = [error(descent(depth), linear_task()) for depth in (1, 2, 4, 8)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 0.2 and errors[-1] < 0.01


def test_neither_xavier_nor_kernels_without_residuals_solve():
    assert error(without_descent(8), linear_task()) > 0.5
    T = descent(8)
    for layer in T.layers:
        layer.kappa.value.weight.data[:, 8:] = 0
    assert error(T, linear_task()) > 0.1


def test_features_that_F_writes_to_the_padding_are_regressed_on():
    """u has a part that is not linear in v; F writes that feature."""

    class Writes(torch.nn.Module):
        def forward(self, v):
            return torch.cat([v[..., :8], 2 * (3 * v[..., :8]).sin(), v[..., 16:]], -1)

    task = linear_task(further=lambda c: 0.5 * (3 * c).sin())
    without, with_it = descent(8), descent(8)
    for layer in with_it.layers:
        layer.F = Writes()
    assert error(with_it, task) < error(without, task) / 2


class Bent:
    """Operators c -> a c + b (c^2 - 1), coefficient by coefficient, each with its own a and b."""

    def sample_task(self, n, m, generator):
        a, b = torch.randn(8, generator=generator), 0.5 + torch.rand(8, generator=generator)
        c = torch.randn(n + m, 8, generator=generator)
        v, u = (SineModes(8).decode(f, 17) for f in (c, a * c + b * (c.square() - 1)))
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


class Interrupted(Bent):
    """Ends after so many draws, as a process that is stopped."""

    def __init__(self, draws):
        self.left = draws

    def __repr__(self):
        return "Bent"  # what a class without a repr is called

    def sample_task(self, n, m, generator):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().sample_task(n, m, generator)


def test_residuals_of_lines_are_uncorrelated_with_v_and_of_unit_spread():
    v, u, *_ = linear_task(further=lambda c: 0.5 * (3 * c).sin())
    T = descent(1)
    left = left_by_lines(T.layers[0].kappa, SineModes(8), SineModes(8), v, u)
    assert left.square().mean(1).sub(1).abs().max() < 1e-5
    for head in range(2):
        part = slice(4 * head, 4 * head + 4)
        assert (v[..., part].mT @ left[..., part]).abs().max() / 200 < 1e-3
    assert left_by_lines(T.layers[0].kappa, SineModes(8), SineModes(8), v, 0 * u).abs().max() == 0


def test_in_a_lesson_F_alone_learns_and_the_kernels_have_more_to_regress_on():
    lesson = Training(
        steps=150,
        lr=1e-2,
        muon_lr=0.0,
        tasks=4,
        n=(50, 50),
        queries=50,
        warmup=5,
        loss="lesson",
        standardise=False,
    )
    T, start = (descent(4, hidden=64) for _ in range(2))
    metatrain(T, Bent(), lesson)
    same = {
        name: torch.equal(p, start.get_parameter(name))
        for name, p in T.named_parameters()
        if p.requires_grad
    }
    assert all(same[name] == (".F." not in name) for name in same)
    tasks = [Bent().sample_task(200, 50, generator_for("validation", i)) for i in range(4)]
    errors = [
        sum(relative_mse(S.regress(t.examples)(t.queries.v), t.queries.u) for t in tasks)
        for S in (start, T)
    ]
    assert errors[1] < 0.9 * errors[0]


def test_a_lesson_is_the_mean_squared_error_of_F():
    T = descent(2)
    v, u = padded(*linear_task(further=lambda c: 0.5 * (3 * c).sin())[:2])
    T.spread.data.fill_(2.0)
    y = left_by_lines(T.steps[0].kappa, T.V, T.U, v / 2, u[..., :8])
    first = T.steps[0].F(v / 2)
    streams = torch.stack([first, T.steps[1].F(first)])
    target = torch.cat([v[..., :8] / 2, y], -1)
    expected = (streams[..., : target.shape[-1]] - target).square().mean(-1).mean(0)
    torch.testing.assert_close(lesson_errors(T, v, u), expected)


def test_a_lesson_is_for_models_with_padding_and_an_F_of_their_own():
    lesson = Training(steps=1, tasks=1, n=(4, 4), loss="lesson")
    shared = descent(1)
    shared.steps[0].G = shared.steps[0].F
    without_F = descent(1)
    without_F.steps[0].F = None
    plain = models.softmax(SineModes(8), SineModes(8), 1, **SETTINGS)
    for T in (shared, without_F, plain):
        with pytest.raises(TransduceError, match=r"loss='lesson' with .* between Padded spaces"):
            metatrain(T, Bent(), lesson)


def test_residuals_of_lines_do_not_depend_on_other_tasks():
    v, u, *_ = linear_task(further=lambda c: 0.5 * (3 * c).sin())
    kappa, V, U = descent(1).layers[0].kappa, SineModes(8), SineModes(8)
    both = left_by_lines(kappa, V, U, torch.cat([v, v]), torch.cat([u, 1e5 * u]))
    torch.testing.assert_close(both[:1], left_by_lines(kappa, V, U, v, u))


def test_a_recipe_with_a_lesson_resumes_where_it_stopped(tmp_path):
    training = Training(
        steps=3, tasks=1, n=(4, 4), queries=2, warmup=0, checkpoint_every=1, validation_tasks=1
    )
    tiny = LessonFirst(
        "tiny",
        {
            "model": "softmax-descent",
            **{name: {"space": "SineModes", "modes": 8} for name in "VU"},
            **{"depth": 1, "memory": 10, **SETTINGS},
        },
        training,
        operators=2,
        examples=54,
        family=Bent(),
        lesson=replace(training, loss="lesson"),
    )
    whole, _ = train(tiny, tmp_path / "whole", on_the_fly=True)
    ends = [load_file(whole)]
    for draws in (64 + 2, 64 + 3 + 1 + 64 + 2):  # in the lesson, and in what follows
        out = tmp_path / str(draws)
        with pytest.raises(KeyboardInterrupt):
            train(replace(tiny, family=Interrupted(draws)), out, on_the_fly=True)
        ends.append(load_file(train(tiny, out, on_the_fly=True)[0]))
    for end in ends[1:]:
        assert all(torch.equal(value, end[key]) for key, value in ends[0].items())
    without = load_file(train(replace(tiny, lesson=None), tmp_path / "without", on_the_fly=True)[0])
    assert any(not torch.equal(value, without[key]) for key, value in ends[0].items())


@pytest.mark.parametrize("options", [{"heads": 6}, {"heads": 12}, {"memory": 7}])
def test_heads_that_do_not_fit_are_refused(options):
    with pytest.raises(
        TransduceError, match="expected a multiple of four heads, and a quarter of their features"
    ):
        descent(2, **options)


def test_descent_is_of_padded_spaces_and_kernels_that_follow_inner_products():
    with pytest.raises(TransduceError, match="expected a number of coefficients from 0"):
        descent(2, memory=-1)
    with pytest.raises(TransduceError, match="L2; expected ExpDot or Rbf"):
        descent(2, kappa="l2")
    with pytest.raises(TransduceError, match="SineModes; expected Padded ones"):
        start_with_descent(models.softmax(SineModes(8), SineModes(8), 1, **SETTINGS))


def test_descent_works_with_rbf_too():
    assert error(descent(8, kappa="rbf"), linear_task()) < 0.05


def test_a_padded_model_has_no_bands():
    c = torch.randn(9, 8, generator=torch.Generator().manual_seed(0))
    v = SineModes(8).decode(c, 17)
    with pytest.raises(TransduceError, match="no leave-one-out residuals"):
        descent(2).regress(ExampleSet(v, v)).predict(v)


def test_a_padded_model_is_saved_and_loaded(tmp_path):
    T = descent(2)
    T.save_pretrained(tmp_path / "T.safetensors")
    task = padded(*linear_task(n=10, m=3)[:3])
    again = Transducer.from_pretrained(tmp_path / "T.safetensors")
    assert torch.equal(again(*task), T(*task))
    assert T.U.decode(T(*task), 17).shape == (1, 3, 17)


def test_the_recipe_of_burgers_softmax_starts_as_a_regression():
    """Before any training, on fields of Burgers' equation."""
    chosen = recipe("burgers-softmax")
    torch.manual_seed(0)
    T = models.build(chosen.model)
    task = Burgers2d(amplitude=0.1, increment=5.0, points=16, resolution=32).sample_task(
        60, 10, generator_for("validation", 0)
    )
    T.standardise(T.V.encode(task.examples.v))
    assert (
        chosen.moved
        and relative_mse(T.regress(task.examples)(task.queries.v), task.queries.u) < 0.3
    )
