"""Meta-training: it learns, it resumes to the bit, and many processes are one."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace

import pytest
import torch
from conftest import small_transducer

from transduce import ExampleSet, Task, Training, TransduceError, evaluate, metatrain
from transduce.baselines import KernelRidge, Maml
from transduce.evaluation import summarise
from transduce.metatraining import LOSSES, Episode, draw, stack, validation_tasks
from transduce.metrics import relative_mse
from transduce.optimisers import Muon, orthogonalise
from transduce.random_fields import SPLITS, generator_for, seed_for
from transduce.spaces import SineModes
from transduce.transducer import Transducer


class Scalings:
    """The operators v -> a v, mode by mode: a family that is quick to draw."""

    def __repr__(self):
        return "Scalings()"

    def sample_task(self, n, m, generator):
        space = SineModes(12)
        v = torch.randn(n + m, 12, generator=generator) / torch.arange(1, 13)
        u = v * torch.rand(12, generator=generator)
        v, u = space.decode(v, 33), space.decode(u, 33)
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


class Spoiled(Scalings):
    """The same family once its values have run away."""

    def sample_task(self, n, m, generator):
        task = super().sample_task(n, m, generator)
        return Task(
            ExampleSet(1e30 * task.examples.v, task.examples.u),
            ExampleSet(1e30 * task.queries.v, task.queries.u),
        )


TRAINING = Training(
    steps=12,
    tasks=2,
    n=(3, 6),
    queries=2,
    warmup=2,
    checkpoint_every=3,
    validate_every=6,
    validation_tasks=2,
    average=0.9,
)


def parameters(T):
    return torch.cat([p.detach().flatten() for p in T.parameters()])


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


def test_resumed_equals_uninterrupted(tmp_path):
    whole = small_transducer().float()
    metatrain(whole, Scalings(), TRAINING, validation=Scalings(), out=tmp_path / "whole")
    for steps in (4, 7, 12):
        parts = small_transducer().float()
        with contextlib.suppress(KeyboardInterrupt):
            metatrain(
                parts, _StopAfter(steps), TRAINING, validation=Scalings(), out=tmp_path / "parts"
            )
    assert torch.equal(parameters(whole), parameters(parts))
    logs = [
        [
            {k: v for k, v in json.loads(line).items() if k != "seconds"}
            for line in (tmp_path / name / "log.jsonl").read_text().splitlines()
        ]
        for name in ("whole", "parts")
    ]
    assert logs[0] == logs[1]


class _StopAfter(Scalings):
    def __init__(self, steps):
        super().__init__()
        self.draws_left = (
            64 + 2 * steps
        )  # 64 tasks measure the spread of the inputs; then two tasks a step

    def sample_task(self, n, m, generator):
        self.draws_left -= 1
        if self.draws_left < 0:
            raise KeyboardInterrupt
        return super().sample_task(n, m, generator)


KILLED = """
import sys, torch
sys.path.insert(0, {tests!r})
from test_metatraining import Scalings, TRAINING, parameters
from conftest import small_transducer
from dataclasses import replace
from transduce import metatrain
T = small_transducer().float()
metatrain(T, Scalings(), replace(TRAINING, steps=200), out={out!r})
torch.save(parameters(T), {result!r})
"""


def test_killed_with_9_and_started_again_ends_with_equal_bits(tmp_path):
    def start(name):
        out, result = str(tmp_path / name), str(tmp_path / f"{name}.pt")
        script = KILLED.format(tests=os.path.dirname(__file__), out=out, result=result)
        return subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL), result

    process, expected = start("whole")
    assert process.wait() == 0
    kills = 0
    while True:
        process, result = start("killed")
        checkpoint = tmp_path / "killed" / "checkpoint.pt"
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
        while (
            process.poll() is None
            and kills < 3
            and not (checkpoint.exists() and checkpoint.stat().st_mtime_ns != before)
        ):
            time.sleep(0.005)
        if kills < 3:
            time.sleep(0.05 * kills)
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
        if process.wait() == 0:
            break
    assert kills == 3
    assert torch.equal(
        torch.load(expected, weights_only=True), torch.load(result, weights_only=True)
    )


def test_a_longer_run_goes_on_from_a_shorter(tmp_path):
    T = small_transducer().float()
    metatrain(T, Scalings(), TRAINING, out=tmp_path)
    before = parameters(T)
    again = small_transducer().float()
    metatrain(again, Scalings(), TRAINING, out=tmp_path)
    assert torch.equal(parameters(again), before)
    metatrain(again, Scalings(), replace(TRAINING, steps=15), out=tmp_path)
    assert not torch.equal(parameters(again), before)


def test_another_run_is_not_continued(tmp_path):
    metatrain(small_transducer().float(), Scalings(), TRAINING, out=tmp_path)
    with pytest.raises(TransduceError, match=r"another run .*lr 0.001 there and 0.5 here"):
        metatrain(small_transducer().float(), Scalings(), replace(TRAINING, lr=0.5), out=tmp_path)
    with pytest.raises(TransduceError, match=r"another run .*heads 2 there and 4 here"):
        metatrain(small_transducer(heads=4).float(), Scalings(), TRAINING, out=tmp_path)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil-was-here",)


@pytest.mark.parametrize("spoil", ["truncated", "text", "foreign", "pickle", "flipped bit"])
def test_a_damaged_or_foreign_checkpoint(tmp_path, spoil, monkeypatch):
    monkeypatch.chdir(tmp_path)
    metatrain(small_transducer().float(), Scalings(), TRAINING, out=tmp_path)
    checkpoint = tmp_path / "checkpoint.pt"
    if spoil == "truncated":
        checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    elif spoil == "flipped bit":
        content = bytearray(checkpoint.read_bytes())
        content[len(content) // 2] ^= 4
        checkpoint.write_bytes(content)
    elif spoil == "text":
        checkpoint.write_text("hello")
    else:
        torch.save({"weights": torch.zeros(3)} if spoil == "foreign" else {"x": Evil()}, checkpoint)
    before = checkpoint.read_bytes()
    with pytest.raises(TransduceError, match="not a checkpoint"):
        metatrain(small_transducer().float(), Scalings(), TRAINING, out=tmp_path)
    assert checkpoint.read_bytes() == before
    assert not (tmp_path / "evil-was-here").exists()


def test_a_foreign_log(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"hello": 1}\n')
    with pytest.raises(TransduceError, match="not a log"):
        metatrain(small_transducer().float(), Scalings(), TRAINING, out=tmp_path)


@dataclass
class InNumpy(Scalings):
    """The same family, as most people would write it: in double precision."""

    points: int = 33

    def __repr__(self):
        return "InNumpy()"

    def sample_task(self, n, m, generator):
        task = super().sample_task(n, m, generator)
        parts = [
            ExampleSet(
                f.v.double().numpy()[:, : self.points], f.u.double().numpy()[:, : self.points]
            )
            for f in (task.examples, task.queries)
        ]
        return Task(*parts)


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
    T.spread.data.fill_(1.0)
    metatrain(T, Scalings(), replace(TRAINING, steps=1))
    spread = T.spread.clone()
    torch.testing.assert_close(spread, (1 / torch.arange(1, 13)).clamp(min=0.1), rtol=0.2, atol=0)
    metatrain(T, Scalings(), replace(TRAINING, steps=1, seed=5))
    assert torch.equal(T.spread, spread)


def test_fewer_steps_than_taken_or_other_data(tmp_path):
    metatrain(small_transducer().float(), Scalings(), TRAINING, out=tmp_path)
    with pytest.raises(TransduceError, match="has taken 12 steps already; 5 were asked for"):
        metatrain(small_transducer().float(), Scalings(), replace(TRAINING, steps=5), out=tmp_path)
    with pytest.raises(TransduceError, match=r"another run .*data"):
        metatrain(small_transducer().float(), InNumpy(), TRAINING, out=tmp_path)


def test_nan_stops_it_and_keeps_the_checkpoint(tmp_path):
    T = small_transducer().float()
    metatrain(T, Scalings(), TRAINING, out=tmp_path)
    before = (tmp_path / "checkpoint.pt").read_bytes()
    with pytest.raises(
        TransduceError,
        match=f"step 12 .*batch seed {seed_for('train', 0, 12)}.*last good checkpoint is kept",
    ):
        metatrain(T, Spoiled(), replace(TRAINING, steps=15), out=tmp_path)
    assert (tmp_path / "checkpoint.pt").read_bytes() == before


TWO = """
import sys, torch
sys.path.insert(0, {tests!r})
from test_metatraining import Scalings, TRAINING, parameters
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
    single = draw(Scalings(), replace(training, tasks=4), step=3)
    double = [draw(Scalings(), training, step=3, rank=rank) for rank in (0, 1)]
    for key, value in single.items():
        assert torch.equal(value, torch.cat([part[key] for part in double]))


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
        draw(Scalings(), replace(TRAINING, noise=noise), step=3) for noise in (0.0, 1.0)
    )
    assert all(torch.equal(clean[key], noisy[key]) for key in clean if key != "u")
    level = ((noisy["u"] - clean["u"]).square().mean() / clean["u"].square().mean()).sqrt()
    assert 0.0005 < level < 0.2
    shares = [
        not torch.equal(
            *(draw(Scalings(), replace(TRAINING, noise=n), step)["u"] for n in (0.0, 0.3))
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


@pytest.mark.parametrize(
    "loss", [loss for loss in LOSSES if loss not in ("lesson", "cross_entropy")]
)  # test_descent.py, test_meta_learners.py
def test_every_loss_descends(loss):
    T = small_transducer(kappa="representer", depth=1, feature_layers=1).float()
    before = metatrain(
        T,
        Scalings(),
        replace(TRAINING, steps=1, loss=loss, lr=1e-9, muon_lr=1e-9),
        validation=Scalings(),
    )
    after = metatrain(T, Scalings(), replace(TRAINING, steps=40, loss=loss), validation=Scalings())
    assert after < before


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
    with pytest.raises(TransduceError, match=r"pip install -c constraints.txt -e '.\[train\]'"):
        metatrain(small_transducer().float(), Scalings(), TRAINING)


def test_muon_orthogonalises():
    X = torch.randn(3, 5, 9, generator=torch.Generator().manual_seed(0))
    singular = torch.linalg.svdvals(orthogonalise(X, iterations=8))
    assert singular.min() > 0.6
    assert singular.max() < 1.3


def test_muon_steps_along_the_polar_factor():
    W = torch.nn.Parameter(torch.zeros(6, 3))
    W.grad = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    Muon([W], lr=0.1).step()
    U, _, V = torch.linalg.svd(W.grad, full_matrices=False)
    cosine = torch.nn.functional.cosine_similarity(-W.detach().flatten(), (U @ V).flatten(), dim=0)
    assert cosine > 0.95


def test_episode_is_the_relative_squared_error():
    T = small_transducer().float()
    batch = draw(Scalings(), TRAINING, 0)
    errors = Episode(T)(**batch)
    O = T.regress(ExampleSet(batch["v"][1], batch["u"][1]))
    u_hat, u = O(batch["v_query"][1]), batch["u_query"][1]
    torch.testing.assert_close(
        errors[1], (u_hat - u).square().sum(1) / u.square().sum(1), rtol=1e-4, atol=1e-6
    )


def test_examples_count_too_each_left_out():
    """The errors of the queries, and then those of each example under a regression from the
    others."""
    torch.manual_seed(0)
    T = Transducer(
        SineModes(16),
        SineModes(16),
        depth=0,
        prior={"channels": 4, "layers": 1, "modes": 4, "grid": 33},
    )
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
    T = Transducer(SineModes(8), SineModes(8), depth=1, heads=1, width=8, hidden=8)
    with pytest.raises(TransduceError, match="left_out=True"):
        metatrain(T, Scalings(), Training(steps=1, left_out=True))


def test_a_checkpoint_from_before_an_option_goes_on_if_it_is_at_its_default(tmp_path):
    """As if kernel_rate and ridges were new."""
    metatrain(small_transducer(), Scalings(), replace(TRAINING, steps=3), out=tmp_path)
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    for option in ("kernel_rate", "ridges"):
        del state["identity"][option]
    torch.save(state, tmp_path / "checkpoint.pt")
    with pytest.raises(TransduceError, match=r"another run \(kernel_rate 1.0 there and 0.5 here\)"):
        metatrain(small_transducer(), Scalings(), replace(TRAINING, kernel_rate=0.5), out=tmp_path)
    metatrain(small_transducer(), Scalings(), replace(TRAINING, steps=6), out=tmp_path)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 6
