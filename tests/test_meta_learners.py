"""Rivals that are meta-trained: they adapt to their examples, learn by cross-entropy, and keep the
contracts of regressors."""

import pytest
import torch

from paper import losses as losses  # registers loss="cross_entropy"
from paper.baselines import Gpicl, Maml
from transduce import ExampleSet, Training, TransduceError, metatrain
from transduce.baselines import CLASSIFIERS
from transduce.families import SyntheticImages
from transduce.random_fields import generator_for

SMALL = {
    "maml": lambda: Maml(convolutions=(4, 8, 8), out=16, steps=3),
    "gpicl": lambda: Gpicl(width=32, layers=2, heads=2),
}
TRAINING = Training(
    steps=30,
    lr=3e-3,
    muon_lr=0.0,
    tasks=4,
    n=(20, 20),
    queries=20,
    warmup=5,
    loss="cross_entropy",
    standardise=False,
)


@pytest.fixture(params=SMALL)
def learner(request):
    torch.manual_seed(0)
    return SMALL[request.param]()


@pytest.fixture
def task():
    return SyntheticImages().sample_task(20, 12, generator_for("validation", 0))


def test_answers_are_probabilities_whatever_comes_beside_or_before(learner, task):
    """The order of examples does not matter, and queries do not see each other."""
    v, u, q = task.examples.v, task.examples.u, task.queries.v
    p = learner.regress(task.examples)(q)
    assert p.shape == (12, 10) and torch.allclose(p.sum(1), torch.ones(12), atol=1e-5)
    assert torch.allclose(learner.regress(ExampleSet(v.flip(0), u.flip(0)))(q), p, atol=1e-5)
    assert torch.allclose(learner.regress(task.examples)(q[3:4]), p[3:4], atol=1e-5)
    assert isinstance(learner.regress(ExampleSet(v.numpy(), u.numpy()))(q.numpy()), type(q.numpy()))


def test_training_descends_and_every_parameter_learns(learner):
    before = [parameter.clone() for parameter in learner.parameters()]
    family = SyntheticImages()
    start = metatrain(
        learner, family, Training(**{**vars(TRAINING), "steps": 1, "lr": 1e-9}), validation=family
    )
    assert metatrain(learner, family, TRAINING, validation=family) < start
    assert all(not torch.equal(a, b) for a, b in zip(before, learner.parameters(), strict=True))


def test_a_finished_training_is_found_again(tmp_path):
    ends = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        T = SMALL["gpicl"]()
        metatrain(T, SyntheticImages(), TRAINING, out=tmp_path)
        ends.append(torch.cat([parameter.detach().flatten() for parameter in T.parameters()]))
    assert torch.equal(*ends)


def test_maml_takes_steps_of_descent(task):
    """One step from a last layer of zeros moves it by the rate times the gradient of the
    cross-entropy there."""
    torch.manual_seed(0)
    T = Maml(convolutions=(4, 8, 8), out=16, steps=1, rate=0.5)
    v, u, q = task.examples.v, task.examples.u, task.queries.v
    with torch.no_grad():
        h, h_query = (T.features(x) for x in (v, q))
        down = (0.1 - u) / len(u)
        expected = -0.5 * (h_query @ (h.T @ down) + down.sum(0))
        found = T.logits(v[None], u[None], q[None])[0]
    assert torch.allclose(found, expected, atol=1e-5)


def test_losses_and_learners_that_do_not_fit():
    with pytest.raises(
        TransduceError, match="loss='relative_mse' with a Gpicl; expected 'cross_entropy'"
    ):
        metatrain(
            SMALL["gpicl"](),
            SyntheticImages(),
            Training(**{**vars(TRAINING), "loss": "relative_mse"}),
        )


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classical_rivals_learn_their_examples(name):
    task = SyntheticImages(characters=1.0).sample_task(100, 50, generator_for("validation", 2))
    answers = CLASSIFIERS[name]().regress(task.examples)(task.queries.v)
    wrong = CLASSIFIERS[name]().regress(ExampleSet(task.examples.v, task.examples.u.roll(1, 1)))(
        task.queries.v
    )
    right, wronged = (
        (f.argmax(1) == task.queries.u.argmax(1)).double().mean() for f in (answers, wrong)
    )
    assert answers.shape == (50, 10) and right > 0.5 > wronged
    numbers = CLASSIFIERS[name]().regress(
        ExampleSet(task.examples.v.numpy(), task.examples.u.numpy())
    )(task.queries.v.numpy())
    assert (torch.from_numpy(numbers).argmax(1) == answers.argmax(1)).all()


@pytest.mark.parametrize(
    "name", [name for name in CLASSIFIERS if name != "kernel-ridge"]
)  # which regresses any numbers
def test_classes_are_one_hot(name):
    with pytest.raises(TransduceError, match="one-hot"):
        CLASSIFIERS[name]().regress(ExampleSet(torch.rand(4, 9), torch.rand(4, 2)))
    one = CLASSIFIERS[name]().regress(ExampleSet(torch.rand(4, 9), torch.eye(2)[[1, 1, 1, 1]]))
    assert (one(torch.rand(3, 9)).argmax(1) == 1).all()
