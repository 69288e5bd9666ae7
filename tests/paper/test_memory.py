"""Models of a region that remember a history of days."""

import numpy as np
import pytest
import torch
from region_samples import days, everywhere_and_near, model

from paper.models.memory import remember
from transduce import (
    Euclidean,
    ExampleSet,
    Task,
    Training,
    TransduceError,
    Transducer,
    metatrain,
    models,
)


def test_further_training_keeps_the_mean_function_and_its_units():
    class Warmer:
        def sample_task(self, n, m, generator):
            one = days(n + m)
            return Task(
                ExampleSet(one.v[:n] + 50, one.u[:n]), ExampleSet(one.v[n:] + 50, one.u[n:])
            )

    R = remember(model(), days(40))
    before = {
        name: value.clone()
        for name, value in R.state_dict().items()
        if name.startswith(("V.", "U.", "layers.0."))
    }
    metatrain(R, Warmer(), Training(steps=1, tasks=1, n=(4, 4), queries=2, warmup=1, muon_lr=0.0))
    assert all(torch.equal(R.state_dict()[name], value) for name, value in before.items())


@everywhere_and_near
def test_many_regressions_equal_a_loop(compared):
    T, pairs = remember(model(compared), days(40)), days(10, seed=2)
    (v, _), (u, _) = (T.encode(s, f, None, "f") for s, f in ((T.V, pairs.v), (T.U, pairs.u)))
    mask = torch.arange(10)[None] < 7
    answers = T.split(T.read(v[None], u[None]), u[None], mask)
    torch.testing.assert_close(answers[:, 7:], T.forward(v[None, :7], u[None, :7], v[None, 7:]))


@everywhere_and_near
def test_the_mean_function_is_the_regression_on_the_history(compared):
    T, history, asked = model(compared), days(40), days(5, seed=1)
    R = remember(T, history)
    far = ExampleSet(asked.v + 1000, asked.u)  # too far from the queries to matter
    with torch.no_grad():
        for parameter in R.steps[1].kappa.parameters():
            parameter.fill_(-5.0)
    torch.testing.assert_close(R.regress(far)(asked.v), T.regress(history)(asked.v))


@everywhere_and_near
def test_new_examples_correct_the_mean_function(compared):
    T, history, today, asked = model(compared), days(60), days(15, seed=1), days(30, seed=2)
    R = remember(T, history)
    with torch.no_grad():
        kappa = R.steps[1].kappa
        getattr(kappa, "of", kappa).candidates.log_signal.fill_(np.log(20.0) / 10)
    moved = ExampleSet(today.v, today.u + 2_000)
    error, stale = (
        (R.regress(e)(asked.v) - (asked.u + 2_000)).square().mean() for e in (moved, today)
    )
    assert error < 0.3 * stale


@everywhere_and_near
def test_mean_functions_are_saved_and_loaded(tmp_path, compared):
    R = remember(model(compared).float(), ExampleSet(days(40).v.float(), days(40).u.float()))
    R.save_pretrained(tmp_path / "w.safetensors")
    examples, asked = ExampleSet(days(5, 1).v.float(), days(5, 1).u.float()), days(3, 2).v.float()
    loaded = Transducer.from_pretrained(tmp_path / "w.safetensors")
    torch.testing.assert_close(loaded.regress(examples)(asked), R.regress(examples)(asked))
    assert not any(p.requires_grad for p in loaded.steps[0].parameters())


def test_only_models_of_regions_remember():
    T = models.softmax(Euclidean(4), Euclidean(4), depth=1, heads=1, width=4, hidden=8)
    with pytest.raises(TransduceError, match="expected one layer between Regions"):
        remember(T, ExampleSet(torch.zeros(3, 4), torch.zeros(3, 4)))
    with pytest.raises(TransduceError, match="of a model of 2 layers from Region to Region"):
        remember(remember(model(), days(5)), days(5))
