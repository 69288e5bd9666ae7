"""Ridge regression over the layers of a convolutional network: its solutions, left-out answers, and
symmetry between classes."""

import pytest
import torch

from transduce import Euclidean, ExampleSet, TransduceError, models
from transduce.families import SyntheticImages
from transduce.kernels import ConvolutionGram, Kappa
from transduce.random_fields import generator_for
from transduce.uncertainty import many_regressions


@pytest.fixture
def T():
    torch.manual_seed(0)
    return models.images(Euclidean(784), Euclidean(10), (8, 8, 8), width=16).eval()


@pytest.fixture
def task():
    return SyntheticImages().sample_task(30, 20, generator_for("validation", 0))


def test_it_solves_its_systems(T, task):
    """alpha = (K + lambda)^-1 u with k = 1 + exp(-g d / s), and answers are the mixture of the
    candidates' sums."""
    kappa, v, u, q = T.steps[0].kappa, task.examples.v, task.examples.u.double(), task.queries.v
    gram, candidates = kappa.candidates.gram, kappa.candidates
    fit = kappa.condition(v[None], task.examples.u[None])
    expected = 0
    for j in range(gram.layers * gram.widths):
        layer = j // gram.widths
        a, b = (gram.features(x[None])[layer][0].double() for x in (v, q))
        s = torch.cdist(a, a).square().mean()
        g, ridge = (
            (3 * log.flatten()[j]).exp().double() for log in (gram.log_width, candidates.log_ridge)
        )
        K, k = (1 + torch.exp(-g * torch.cdist(x, a).square() / s) for x in (a, b))
        alpha = torch.linalg.solve(K + ridge * torch.eye(30), u)
        expected = expected + k @ alpha * fit.mix[0, j]
    assert torch.allclose(
        T(v[None], task.examples.u[None], q[None])[0].double(), expected, atol=1e-4
    )


def test_renaming_classes_renames_answers(T, task):
    order = torch.randperm(10, generator=generator_for("validation", 1))
    examples, q = task.examples, task.queries.v
    answers = T.regress(ExampleSet(examples.v, examples.u))(q)
    assert torch.allclose(
        T.regress(ExampleSet(examples.v, examples.u[:, order]))(q), answers[:, order], atol=1e-5
    )


def test_wrong_examples_mislead(T, task):
    v, u, q, truth = task.examples.v, task.examples.u, task.queries.v, task.queries.u
    right, wrong = (
        (T.regress(ExampleSet(v, labels))(q).argmax(1) == truth.argmax(1)).float().mean()
        for labels in (u, u[:, torch.arange(10).roll(1)])
    )
    assert right > 0.4 > wrong


def test_left_out_answers_are_nearly_those_of_regressions_without(T, task):
    """Widths are relative to the distances of all examples, which one of thirty changes a little.
    So do the weights of the mixture."""
    O = T.regress(task.examples)
    refitted = torch.cat([O.drop(i)(task.examples.v[i : i + 1]) for i in range(30)])
    together = torch.cat(
        list(many_regressions(T, task.examples, ~torch.eye(30, dtype=torch.bool)))
    )[range(30), range(30)]
    assert torch.allclose(together, refitted, atol=1e-4)
    assert (O.left_out - refitted).square().mean() < 0.02 * refitted.square().mean()


def test_bands_and_weights(T, task):
    mean, low, high = T.regress(task.examples).predict(task.queries.v)
    assert mean.shape == (20, 10) and bool((low < high).all())
    given = task.examples.v[None], task.examples.u[None], task.queries.v[None]
    kappa = T.steps[0].kappa
    fast, by_gradients = kappa.weights(*given), Kappa.weights(kappa, *given)
    assert fast.shape == (1, 20, 30)
    assert torch.allclose(fast, by_gradients, atol=1e-5)


def test_gradients_reach_every_part(T, task):
    T.train()
    T(task.examples.v[None], task.examples.u[None], task.queries.v[None]).square().sum().backward()
    assert all(
        p.grad is not None and bool(p.grad.abs().sum() > 0)
        for p in T.parameters()
        if p.requires_grad
    )


def test_faint_images_are_distinguished(T, task):
    v, u, q = task.examples.v, task.examples.u, task.queries.v
    faint = T.regress(ExampleSet(0.5 + 1e-3 * v, u))(0.5 + 1e-3 * q)
    assert (faint.argmax(1) == task.queries.u.argmax(1)).float().mean() > 0.3


@pytest.mark.parametrize(
    "options",
    [{"d_v": 100 * 7}, {"d_v": 81}, {"channels": (8,)}, {"width": 0}, {"widths": 0}],
    ids=str,
)
def test_images_it_cannot_read_are_refused(options):
    with pytest.raises(TransduceError, match="multiple of 4"):
        ConvolutionGram(**({"d_v": 784, "width": 16} | options))


def test_too_many_examples_are_refused(T):
    with pytest.raises(TransduceError, match="at most 4096"):
        T.regress(ExampleSet(torch.zeros(4097, 784), torch.zeros(4097, 10)))
