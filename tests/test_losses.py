"""Losses: each is its formula, JSON keeps its name, and new ones need no change of the library."""

import json
from dataclasses import asdict, replace

import pytest
import torch
from conftest import small_transducer
from scalings import TRAINING, Scalings, parameters

from paper import losses as special
from paper.baselines import Gpicl
from transduce import (
    ExampleSet,
    Task,
    Training,
    TransduceError,
    Transducer,
    metatrain,
    models,
    weights,
)
from transduce.kernels.simple import Constant
from transduce.layer import Layer
from transduce.metatraining import (
    LOSSES,
    Episode,
    Loss,
    RelativeL2,
    RelativeLoss,
    draw,
    stack,
)
from transduce.metatraining.validation import validate
from transduce.random_fields import generator_for
from transduce.spaces import SineModes

GENERAL = ("relative_l2", "relative_mse", "squared", "log_l2")


class FourthRoot(RelativeLoss):
    """A loss that the library does not have."""

    name = "test_fourth_root"

    def reduce(self, errors, u, mean):
        return errors.add(1e-8).pow(0.25).mean()


class OfTheFirstQuery(Loss):
    """A loss that does not start from relative errors, and trains a part of the model only."""

    name = "test_of_the_first_query"

    def __call__(self, T, batch, left_out, mean):
        kept = T.condition(T.V.encode(batch["v"]), T.U.encode(batch["u"]))
        u_hat = T.query(kept, T.V.encode(batch["v_query"][:, :1]))[-1]
        return (u_hat - T.U.encode(batch["u_query"][:, :1])).square().mean()

    def trained_part(self, T):
        return T.layers[-1]


def with_exact_residuals():
    """A model whose leave-one-out residuals are those of a regression from the other examples."""
    torch.manual_seed(0)
    network = {"channels": 4, "layers": 1, "modes": 4, "grid": 33}
    return models.spectral(SineModes(16), SineModes(16), **network)


def alone(x):
    """The mean over all processes, of one process."""
    return x


@pytest.fixture
def batch():
    return {key: value.double() for key, value in draw(Scalings(), TRAINING, 0)[0].items()}


@pytest.mark.parametrize("left_out", [False, True])
def test_each_loss_is_its_formula(batch, left_out):
    """By regressing each task by itself, and by dropping each example in turn."""
    T = with_exact_residuals().double()
    errors, sizes = [], []
    for v, u, v_query, u_query in zip(*batch.values(), strict=True):
        answered = [*zip(v_query, u_query, [ExampleSet(v, u)] * len(v_query), strict=True)]
        rows = torch.arange(len(v))
        if left_out:
            others = [ExampleSet(v[rows != i], u[rows != i]) for i in rows]
            answered += zip(v, u, others, strict=True)
        for q, truth, examples in answered:
            errors.append((T.regress(examples)(q[None])[0] - truth).square().sum())
            sizes.append(truth.square().sum())
    squared, norm = torch.stack(errors), torch.stack(sizes)
    formulas = {
        "relative_l2": (squared / norm).sqrt().mean(),
        "relative_mse": (squared / norm).mean(),
        "squared": squared.mean(),
        "log_l2": (squared / norm).sqrt().mean().log(),
    }
    assert formulas.keys() == set(GENERAL)
    for name, expected in formulas.items():
        found = LOSSES[name]()(T, batch, left_out, alone)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_cross_entropy_is_its_formula():
    torch.manual_seed(0)
    T = Gpicl(size=5, classes=3, width=8, layers=1, heads=2)
    v, v_query = torch.randn(2, 4, 5), torch.randn(2, 3, 5)
    classes, own = torch.eye(3)[torch.randint(3, (2, 4))], torch.randint(3, (2, 3))
    batch = {"v": v, "u": classes, "v_query": v_query, "u_query": torch.eye(3)[own]}
    logits = T.logits(v, classes, v_query)
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), own.flatten())
    found = special.CrossEntropy()(T, batch, False, alone)
    torch.testing.assert_close(found, expected)


def test_the_log_is_of_the_mean_over_all_processes():
    """Two processes whose gradients are averaged descend on the log of their common mean."""
    first, second = (torch.rand(2, 3, requires_grad=True) for _ in range(2))
    u = torch.ones(2, 3, 4)

    def mean(x):
        return (first.sqrt().mean() + second.sqrt().mean()).detach() / 2

    losses = [LOSSES["log_l2"]().reduce(errors, u, mean) for errors in (first, second)]
    (sum(losses) / 2).backward()
    found = [first.grad.clone(), second.grad.clone()]
    first.grad = second.grad = None
    torch.cat([first, second]).sqrt().mean().log().backward()
    for gradient, errors in zip(found, (first, second), strict=True):
        torch.testing.assert_close(gradient, errors.grad, rtol=1e-4, atol=1e-6)


def test_a_loss_of_your_own_trains():
    T, start = (small_transducer().float() for _ in range(2))
    training = replace(TRAINING, steps=40, loss=FourthRoot(), average=0.0)
    before = metatrain(
        start, Scalings(), replace(training, steps=1, lr=1e-9, muon_lr=1e-9), validation=Scalings()
    )
    assert metatrain(T, Scalings(), training, validation=Scalings()) < before
    by_name = small_transducer().float()
    metatrain(by_name, Scalings(), replace(training, loss="test_fourth_root"))
    assert torch.equal(parameters(T), parameters(by_name))


def test_a_loss_may_train_a_part_of_the_model():
    T = small_transducer().float()
    training = replace(TRAINING, loss=OfTheFirstQuery(), standardise=False, average=0.0)
    before = parameters(T.layers[-1])
    metatrain(T, Scalings(), training)
    assert not torch.equal(parameters(T.layers[-1]), before)


@pytest.mark.parametrize("name", [*GENERAL, "cross_entropy", "lesson", "test_fourth_root"])
def test_json_keeps_the_loss(name):
    training = Training(steps=1, loss=LOSSES[name]())
    assert training.loss == name
    assert training == Training(steps=1, loss=name)
    saved = json.loads(json.dumps(asdict(training)))
    assert saved["loss"] == name
    again = Training(**{**saved, "n": tuple(saved["n"])})
    assert again == training
    assert type(again.objective) is LOSSES[name]


@pytest.mark.parametrize(("model", "left_out"), [("adr", False), ("burgers", True)])
def test_cards_keep_their_meaning(model, left_out):
    recorded = weights.load(model)[1]["recipe"]["training"]
    training = Training(**{**recorded, "n": tuple(recorded["n"])})
    assert (training.loss, training.left_out) == ("log_l2", left_out)
    assert type(training.objective) is LOSSES["log_l2"]


def test_bad_losses():
    with pytest.raises(
        TransduceError, match=r"loss='l3'; expected one of relative_l2, .* imported"
    ):
        Training(steps=1, loss="l3")
    with pytest.raises(TransduceError, match=r"is the name of transduce.metatraining.losses"):
        type("Other", (RelativeL2,), {"name": "relative_l2"})
    scaled = FourthRoot()
    scaled.factor = 2
    with pytest.raises(TransduceError, match=r"has options.*subclass of Loss"):
        Training(steps=1, loss=scaled)
    training = replace(TRAINING, loss="cross_entropy")
    with pytest.raises(TransduceError, match="loss='cross_entropy' with a Transducer; expected"):
        metatrain(small_transducer().float(), Scalings(), training)


@pytest.mark.parametrize("loss", GENERAL)
def test_every_loss_descends(loss):
    T = small_transducer("representer", depth=1, feature_layers=1).float()
    before = metatrain(
        T,
        Scalings(),
        replace(TRAINING, steps=1, loss=loss, lr=1e-9, muon_lr=1e-9),
        validation=Scalings(),
    )
    after = metatrain(T, Scalings(), replace(TRAINING, steps=40, loss=loss), validation=Scalings())
    assert after < before


def test_episode_is_the_relative_squared_error():
    T = small_transducer().float()
    batch = draw(Scalings(), TRAINING, 0)[0]
    errors = Episode(T)(**batch)
    O = T.regress(ExampleSet(batch["v"][1], batch["u"][1]))
    u_hat, u = O(batch["v_query"][1]), batch["u_query"][1]
    torch.testing.assert_close(
        errors[1], (u_hat - u).square().sum(1) / u.square().sum(1), rtol=1e-4, atol=1e-6
    )


def test_examples_count_too_each_left_out():
    """The errors of the queries, and then those of each example under a regression from the
    others."""
    T = with_exact_residuals()
    tasks = stack([Scalings().sample_task(5, 3, generator_for("validation", i)) for i in range(2)])
    found = Episode(T, left_out=True)(**tasks)
    torch.testing.assert_close(found[:, :3], Episode(T)(**tasks))
    for task in range(2):
        v, u = tasks["v"][task], tasks["u"][task]
        for i in range(5):
            others = [j for j in range(5) if j != i]
            alone = Episode(T)(
                v[None, others], u[None, others], v[None, i : i + 1], u[None, i : i + 1]
            )
            torch.testing.assert_close(found[task, 3 + i], alone[0, 0], rtol=1e-3, atol=1e-5)


def test_what_cannot_leave_examples_out_says_so():
    T = models.softmax(SineModes(8), SineModes(8), depth=1, heads=1, width=8, hidden=8)
    with pytest.raises(TransduceError, match="left_out=True"):
        metatrain(T, Scalings(), Training(steps=1, left_out=True))


def test_validation_of_logarithms_is_a_geometric_mean_about_the_mean_of_the_examples():
    """The mean of the examples scores 1, whatever the scale of the tasks."""
    U = SineModes(16)
    T = Transducer(U, U, [Layer(Constant())])
    tasks = [stack([Scalings().sample_task(6, 4, generator_for("test", i))]) for i in range(3)]
    for k, task in enumerate(tasks):
        task["u"], task["u_query"] = 10.0**k * task["u"], 10.0**k * task["u_query"]
    assert validate(T, tasks, "log_about_mean") == pytest.approx(1, rel=1e-4)
    expected = sum(Episode(T)(**task).mean().item() for task in tasks) / 3
    assert validate(T, tasks, "relative_l2") == pytest.approx(expected)


class OnTwoGrids:
    """Tasks of functions of two sizes."""

    def sample_task(self, n, m, generator):
        points = 16 + 8 * int(torch.randint(2, (1,), generator=generator))
        v = torch.randn(n + m, points, generator=generator)
        return Task(ExampleSet(v[:n], v[:n]), ExampleSet(v[n:], v[n:]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"standardise": False, "loss": "log_l2"}, r"loss='log_l2'.*Give loss='log_about_mean'"),
        ({"standardise": True, "loss": "relative_mse"}, r"grids of 2 sizes.*standardise=False"),
    ],
)
def test_tasks_on_several_grids_need_a_mean_over_tasks(options, said):
    training = Training(steps=1, tasks=6, n=(5, 5), queries=2, validation_tasks=1, **options)
    space = SineModes(4)
    T = models.softmax(space, space, depth=1, heads=1, width=4, hidden=4)
    with pytest.raises(TransduceError, match=said):
        metatrain(T, OnTwoGrids(), training)
