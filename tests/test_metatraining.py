"""Meta-training: it learns, many processes are one, and its draws never meet those of a test."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
import torch
from conftest import small_transducer
from scalings import TRAINING, InNumpy, Scalings, parameters

from paper.baselines import Maml
from transduce import ExampleSet, Task, Training, TransduceError, evaluate, metatrain, models
from transduce.baselines import KernelRidge
from transduce.evaluation import summarise
from transduce.metatraining import described, draw, validation_tasks
from transduce.metatraining.losses import LOSSES
from transduce.metatraining.run import Run, make_fabric
from transduce.metrics import relative_mse
from transduce.random_fields import SPLITS, generator_for, seed_for
from transduce.spaces import Sampled


def test_it_learns():
    """Seconds of meta-training beat tuned kernel ridge where examples are few, and a wrong context
    is worse than the right one."""
    T = small_transducer(depth=2, heads=4, width=16, hidden=48, gain=0.1).float()
    metatrain(T, Scalings(), Training(steps=400, n=(4, 8), queries=8, muon_lr=0.01, warmup=20))
    ours, ridge = (
        summarise(evaluate(R, Scalings(), 4, 20, generator_for("validation", 1)))[0]["mean"]
        for R in (T, KernelRidge())
    )
    assert ours < 0.8 * ridge
    right, wrong = (
        Scalings().sample_task(8, 50, generator_for("validation", 7, i)) for i in (0, 1)
    )
    error, misled = (
        relative_mse(T.regress(given.examples)(right.queries.v), right.queries.u)
        for given in (right, wrong)
    )
    assert error < 0.7 * misled


def test_a_family_in_double_precision():
    assert (
        metatrain(small_transducer().float(), InNumpy(), TRAINING, validation=InNumpy()) is not None
    )


def test_a_family_that_does_not_fit_the_model():
    with pytest.raises(
        TransduceError, match="the family's v has 4 points, enough for 2 modes; this model reads 12"
    ):
        metatrain(small_transducer().float(), InNumpy(points=4), TRAINING)


def test_the_spread_of_inputs_is_measured_once():
    T = small_transducer().float()
    metatrain(T, Scalings(), replace(TRAINING, steps=1))
    spread = T.spread.clone()
    torch.testing.assert_close(spread, (1 / torch.arange(1, 13)).clamp(min=0.1), rtol=0.2, atol=0)
    metatrain(T, Scalings(), replace(TRAINING, steps=1, seed=5))
    assert torch.equal(T.spread, spread)


def test_a_spread_of_one_may_be_a_measured_one():
    T = small_transducer().float()
    T.measured = True
    T.spread.data.fill_(1.0)
    metatrain(T, Scalings(), replace(TRAINING, steps=1))
    assert (T.spread == 1).all()


TWO = """
import sys, torch
sys.path.insert(0, {tests!r})
from scalings import Scalings, TRAINING, parameters
from conftest import small_transducer
from dataclasses import replace
from transduce import metatrain
T = small_transducer().float()
one_step = replace(TRAINING, steps=1, muon_lr=0.0, loss="log_l2", noise=1.0)
metatrain(T, Scalings(), one_step, out={out!r})
import os
gradient = torch.cat([p.grad.flatten() for p in T.parameters() if p.requires_grad])
torch.save((parameters(T), gradient), {out!r} + os.environ["RANK"] + ".pt")
"""


def test_two_processes_take_the_step_of_one_with_twice_the_tasks(tmp_path):
    script = tmp_path / "two.py"
    script.write_text(TWO.format(tests=os.path.dirname(__file__), out=str(tmp_path / "two")))
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(script),
    ]
    subprocess.run(
        command, check=True, capture_output=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    first, second = (
        torch.load(f"{tmp_path / 'two'}{rank}.pt", weights_only=True) for rank in (0, 1)
    )
    T = small_transducer().float()
    metatrain(
        T, Scalings(), replace(TRAINING, steps=1, tasks=4, muon_lr=0.0, loss="log_l2", noise=1.0)
    )
    gradient = torch.cat([p.grad.flatten() for p in T.parameters() if p.requires_grad])
    assert torch.equal(first[0], second[0])
    torch.testing.assert_close(first[1], gradient, rtol=1e-4, atol=1e-6)


def test_tasks_of_two_processes_are_those_of_one():
    training = replace(TRAINING, noise=1.0)
    (single,) = draw(Scalings(), replace(training, tasks=4), step=3)
    double = [draw(Scalings(), training, step=3, rank=rank)[0] for rank in (0, 1)]
    for key, value in single.items():
        assert torch.equal(value, torch.cat([part[key] for part in double]))


class Changing(Scalings):
    """Scalings on grids of 12 or 20 points."""

    def sample_task(self, n, m, generator):
        points = 12 if torch.rand((), generator=generator) < 0.5 else 20
        task = super().sample_task(n, m, generator)
        return Task(*(ExampleSet(pairs.v[..., :points], pairs.u[..., :points])
                      for pairs in (task.examples, task.queries)))  # fmt: skip


def test_tasks_on_unequal_grids_are_batches_of_their_own():
    """The loss of a step is the mean over tasks, and models that adapt to grids learn from it."""
    training = replace(TRAINING, tasks=5, muon_lr=0.0, loss="log_about_mean", standardise=False)
    batches = draw(Changing(), training, step=1)
    assert sorted(batch["v"].shape[-1] for batch in batches) == [12, 20]
    assert sum(len(batch["v"]) for batch in batches) == 5
    torch.manual_seed(0)
    T = models.curves(Sampled(16), Sampled(16), channels=4, layers=1, modes=3, summary=4)
    run = Run(T.train(), training, make_fabric())
    run.set_up()
    single = [
        LOSSES["log_about_mean"]()(T, {k: f[j : j + 1] for k, f in batch.items()}, False, float)
        for batch in batches
        for j in range(len(batch["v"]))
    ]
    assert run.advance(batches) == pytest.approx(float(sum(single).detach()) / 5, rel=1e-4)


def test_validation_asks_for_no_more_pairs_than_tasks_have():
    class Few(Scalings):
        pairs = 9

    tasks = validation_tasks(Few(), TRAINING)
    assert {(task["v"].shape[1], task["v_query"].shape[1]) for task in tasks} == {(6, 3)}
    Few.pairs = 6
    with pytest.raises(TransduceError, match="tasks of 6 pairs; expected more than the 6 examples"):
        validation_tasks(Few(), TRAINING)


def test_training_never_draws_a_validation_or_test_seed():
    """Splits live in the two highest bits of the seed, so they cannot meet, whatever the
    numbers."""
    seeds = {
        split: {seed_for(split, 0, i, j) for i in range(300) for j in range(10)} for split in SPLITS
    }
    assert not seeds["train"] & seeds["test"]
    assert not seeds["train"] & seeds["validation"]
    assert not seeds["validation"] & seeds["test"]
    assert {seed >> 30 for seed in seeds["test"]} == {SPLITS["test"]}


def test_noise_is_on_the_examples_alone():
    clean, noisy = (
        draw(Scalings(), replace(TRAINING, noise=noise), step=3)[0] for noise in (0.0, 1.0)
    )
    assert all(torch.equal(clean[key], noisy[key]) for key in clean if key != "u")
    level = ((noisy["u"] - clean["u"]).square().mean() / clean["u"].square().mean()).sqrt()
    assert 0.0005 < level < 0.2
    shares = [
        not torch.equal(
            *(draw(Scalings(), replace(TRAINING, noise=n), step)[0]["u"] for n in (0.0, 0.3))
        )
        for step in range(60)
    ]
    assert 5 < sum(shares) < 35


def test_it_stops_at_an_error_that_was_asked_for(tmp_path):
    T = small_transducer().float()
    training = replace(TRAINING, steps=40, validate_every=2)
    error = metatrain(T, Scalings(), training, validation=Scalings(), out=tmp_path, until=1e9)
    assert error is not None
    assert json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])["step"] == 2
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 2


def test_checkpointing_changes_nothing_but_memory():
    trained = {}
    for checkpointing in (False, True):
        T = small_transducer().float()
        error = metatrain(
            T, Scalings(), TRAINING, validation=Scalings(), checkpointing=checkpointing
        )
        trained[checkpointing] = (error, *parameters(T))
    assert trained[False] == trained[True]
    with pytest.raises(
        TransduceError, match="checkpointing=True with a Maml; expected a Transducer"
    ):
        metatrain(Maml(), Scalings(), TRAINING, checkpointing=True)


def test_schedules():
    cosine, halving = (
        Training(steps=700, warmup=10),
        Training(steps=700, warmup=10, schedule="halving"),
    )
    assert cosine.factor(0) == pytest.approx(0.1, rel=1e-3)
    assert cosine.factor(350) == pytest.approx(0.5)
    assert [halving.factor(step) for step in (50, 150, 650)] == [1, 0.5, 0.5**6]
    with pytest.raises(TransduceError, match="'cosine' or 'halving'"):
        Training(steps=1, schedule="linear")


def test_without_fabric_it_says_how_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    with pytest.raises(TransduceError, match=r"pip install 'transduce\[train\]'"):
        metatrain(small_transducer().float(), Scalings(), TRAINING)


ALONE = """
import sys
import transduce.metatraining
known = ("transduce.transducer", "transduce.baselines", "transduce.families", "sklearn")
print([name for name in known if name in sys.modules])
"""


def test_it_imports_no_model_and_no_family():
    found = subprocess.run([sys.executable, "-c", ALONE], check=True, capture_output=True)
    assert found.stdout.decode().strip() == "[]"


def test_a_family_is_described_by_what_was_set():
    """So that a field that is added with a default leaves checkpoints valid."""

    @dataclass(frozen=True)
    class Waves:
        speed: float = 1.0
        inside: Scalings | None = None

    assert described(Waves()) == "Waves()"
    assert described(Waves(2.0)) == "Waves(speed=2.0)"
    assert described(Scalings()) == "Scalings()"
    assert described(InNumpy()).startswith("InNumpy")
