"""The kernel on the layers of a convolutional network: its solutions, what it leaves out, and that
no class is special."""

import pytest
import torch

from transduce import Euclidean, ExampleSet, TransduceError, Transducer
from transduce.families import SyntheticImages
from transduce.kernels import Convolutional
from transduce.random_fields import generator_for
from transduce.uncertainty import many_regressions


@pytest.fixture
def T():
    torch.manual_seed(0)
    return Transducer(
        Euclidean(784),
        Euclidean(10),
        depth=1,
        kappa="convolutional",
        convolutions=(8, 8, 8),
        width=16,
    ).eval()


@pytest.fixture
def task():
    return SyntheticImages().sample_task(30, 20, generator_for("validation", 0))


def test_it_solves_its_systems(T, task):
    """alpha = (K + lambda)^-1 u with k = 1 + exp(-g d / s), and answers are the mixture of the
    candidates' sums."""
    kappa, v, u, q = T.layers[0].kappa, task.examples.v, task.examples.u.double(), task.queries.v
    sources = kappa.condition(v[None], task.examples.u[None])
    expected = 0
    for j in range(kappa.heads * kappa.ridges):
        layer = j // kappa.ridges
        a, b = (kappa.features(x[None])[layer][0].double() for x in (v, q))
        s = torch.cdist(a, a).square().mean()
        g, ridge = (
            (3 * log.flatten()[j]).exp().double() for log in (kappa.log_width, kappa.log_ridge)
        )
        K, k = (1 + torch.exp(-g * torch.cdist(x, a).square() / s) for x in (a, b))
        alpha = torch.linalg.solve(K + ridge * torch.eye(30), u)
        expected = expected + k @ alpha * sources.mix[0, j]
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


def test_order_of_examples_does_not_matter_and_wrong_ones_do(T, task):
    v, u, q, truth = task.examples.v, task.examples.u, task.queries.v, task.queries.u
    O = T.regress(ExampleSet(v, u))
    assert torch.allclose(T.regress(ExampleSet(v.flip(0), u.flip(0)))(q), O(q), atol=1e-5)
    wrong = T.regress(ExampleSet(v, u[:, torch.arange(10).roll(1)]))
    right, wronged = (
        (answers(q).argmax(1) == truth.argmax(1)).float().mean() for answers in (O, wrong)
    )
    assert right > 0.4 > wronged


def test_left_out_answers_are_nearly_those_of_regressions_without(T, task):
    """Widths are relative to the distances of all examples, which one of thirty changes a little;
    the mixture too."""
    O = T.regress(task.examples)
    anew = torch.cat([O.drop(i)(task.examples.v[i : i + 1]) for i in range(30)])
    together = torch.cat(
        list(many_regressions(T, task.examples, ~torch.eye(30, dtype=torch.bool)))
    )[range(30), range(30)]
    assert torch.allclose(together, anew, atol=1e-4)
    assert (O.left_out - anew).square().mean() < 0.02 * anew.square().mean()


def test_masked_examples_do_not_count(T, task):
    v, u, q = task.examples.v, task.examples.u, task.queries.v
    mask = torch.arange(30) < 20
    few = T(v[None, :20], u[None, :20], q[None])
    assert torch.allclose(T(v[None], u[None], q[None], mask[None]), few, atol=1e-5)


def test_bands_and_weights_have_their_shapes(T, task):
    mean, low, high = T.regress(task.examples).predict(task.queries.v)
    assert mean.shape == (20, 10) and bool((low < high).all())
    kappa = T.layers[0].kappa
    sources = kappa.condition(task.examples.v[None], task.examples.u[None])
    weights = kappa.weights(sources, task.queries.v[None])
    mixed = torch.einsum("jq,jmn,nq->mq", sources.mix[0], weights[0], task.examples.u.double())
    assert torch.allclose(mixed.float(), mean, atol=1e-4)


def test_gradients_reach_every_part(T, task):
    T.train()
    T(task.examples.v[None], task.examples.u[None], task.queries.v[None]).square().sum().backward()
    assert all(
        p.grad is not None and bool(p.grad.abs().sum() > 0)
        for p in T.parameters()
        if p.requires_grad
    )


def test_faint_images_are_told_apart(T, task):
    v, u, q = task.examples.v, task.examples.u, task.queries.v
    faint = T.regress(ExampleSet(0.5 + 1e-3 * v, u))(0.5 + 1e-3 * q)
    assert (faint.argmax(1) == task.queries.u.argmax(1)).float().mean() > 0.3


@pytest.mark.parametrize(
    "options", [{"d_v": 100 * 7}, {"d_v": 81}, {"convolutions": (8,)}, {"width": 0}, {"ridges": 0}]
)
def test_what_it_cannot_be_made_of(options):
    with pytest.raises(TransduceError, match="multiple of 4"):
        Convolutional(**({"d_v": 784, "d_u": 10, "heads": 1, "width": 16} | options))


def test_too_many_examples_are_refused(T):
    with pytest.raises(TransduceError, match="at most 4096"):
        T.regress(ExampleSet(torch.zeros(4097, 784), torch.zeros(4097, 10)))
