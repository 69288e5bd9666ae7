"""Checkpoints: a run that was killed resumes with the same bits, and no other run uses its file."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass, replace

import pytest
import torch
from conftest import small_transducer
from scalings import TRAINING, InNumpy, Scalings, Spoiled, parameters

from paper.baselines import Gpicl
from transduce import Training, TransduceError, metatrain
from transduce.metatraining.checkpoints import as_json, complete_config, differences
from transduce.random_fields import seed_for


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
        # 64 tasks measure the spread of the inputs; then two tasks a step.
        self.draws_left = 64 + 2 * steps

    def sample_task(self, n, m, generator):
        self.draws_left -= 1
        if self.draws_left < 0:
            raise KeyboardInterrupt
        return super().sample_task(n, m, generator)


KILLED = """
import sys, torch
sys.path.insert(0, {tests!r})
from scalings import Scalings, TRAINING, parameters
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


@dataclass(frozen=True)
class LaterTraining(Training):
    """Training as a later version may have it: with one more option."""

    patience: float = 0.5


def test_a_new_option_at_its_default_leaves_checkpoints_valid(tmp_path):
    metatrain(small_transducer().float(), Scalings(), TRAINING, out=tmp_path)
    changed = LaterTraining(**{**vars(TRAINING), "steps": 15, "patience": 0.7})
    with pytest.raises(TransduceError, match=r"another run \(patience 0.5 there and 0.7 here\)"):
        metatrain(small_transducer().float(), Scalings(), changed, out=tmp_path)
    later = replace(changed, patience=0.5)
    resumed, started_once = (small_transducer().float() for _ in range(2))
    metatrain(resumed, Scalings(), later, out=tmp_path)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 15
    again = replace(TRAINING, steps=15)
    metatrain(started_once, Scalings(), TRAINING, out=tmp_path / "other")
    metatrain(started_once, Scalings(), again, out=tmp_path / "other")
    assert torch.equal(parameters(resumed), parameters(started_once))


def test_configs_from_before_an_option_are_completed():
    T = small_transducer()
    config = as_json(T.config)
    older = {key: value for key, value in config.items() if key not in ("ridges", "memory")}
    assert complete_config(type(T), older) == config
    assert complete_config(type(T), {"nothing": "known"}) == {"nothing": "known"}
    config = Gpicl(width=32, layers=2, heads=4).config
    older = {key: value for key, value in config.items() if key != "layers"}
    assert complete_config(Gpicl, older) == {**config, "layers": 4}


def test_differences_name_the_option_that_differs():
    theirs = {"V": {"modes": [6, 6]}, "layers": [{"kappa": {"heads": 2, "tau": 1.0}}]}
    ours = {"V": {"modes": [6, 8]}, "layers": [{"kappa": {"heads": 4, "tau": 1.0}}]}
    assert differences(theirs, theirs) == []
    assert differences(theirs, ours) == [
        "V.modes [6, 6] there and [6, 8] here",
        "layers.0.kappa.heads 2 there and 4 here",
    ]


def test_a_checkpoint_of_an_older_format(tmp_path):
    metatrain(small_transducer().float(), Scalings(), TRAINING, out=tmp_path)
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    torch.save({**state, "format": "transduce checkpoint"}, tmp_path / "checkpoint.pt")
    with pytest.raises(TransduceError, match=r"written by an older version .* Move it away"):
        metatrain(small_transducer().float(), Scalings(), TRAINING, out=tmp_path)


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
        with zipfile.ZipFile(checkpoint) as archive:
            largest = max(archive.infolist(), key=lambda entry: entry.file_size)
        end = content.index(b"PK\x03\x04", largest.header_offset + 4)
        content[end - largest.file_size // 2] ^= 4
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


def test_a_checkpoint_from_before_an_option_goes_on_if_it_is_at_its_default(tmp_path):
    """As if kernel_rate and the temperature of kernels were new."""
    metatrain(small_transducer(), Scalings(), replace(TRAINING, steps=3), out=tmp_path)
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    identity = state["identity"]
    del identity["training"]["kernel_rate"]
    for layer in identity["model"]["layers"]:
        del layer["kappa"]["tau"]
    torch.save(state, tmp_path / "checkpoint.pt")
    with pytest.raises(TransduceError, match=r"another run \(kernel_rate 1.0 there and 0.5 here\)"):
        metatrain(small_transducer(), Scalings(), replace(TRAINING, kernel_rate=0.5), out=tmp_path)
    metatrain(small_transducer(), Scalings(), replace(TRAINING, steps=6), out=tmp_path)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 6


def test_fewer_steps_than_taken_or_other_data(tmp_path):
    metatrain(small_transducer().float(), Scalings(), TRAINING, out=tmp_path)
    with pytest.raises(TransduceError, match="has taken 12 steps already; 5 were asked for"):
        metatrain(small_transducer().float(), Scalings(), replace(TRAINING, steps=5), out=tmp_path)
    with pytest.raises(TransduceError, match=r"another run .*data"):
        metatrain(small_transducer().float(), InNumpy(), TRAINING, out=tmp_path)
