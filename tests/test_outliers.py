"""Outliers: found without labels, and none where there are none."""

import pytest
import torch

from transduce import ExampleSet, SineModes, TransduceError, models
from transduce.uncertainty import outlier_scores
from transduce.uncertainty.outliers import threshold_of


def scores(n, share, distance, generator):
    outliers = torch.arange(n) < share * n
    return torch.randn(
        n, generator=generator, dtype=torch.float64
    ) - 9 + distance * outliers, outliers


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2, 0.4])
def test_the_threshold_parts_two_heaps(share):
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        s, outliers = scores(100, share, 12.0, generator)
        assert torch.equal(s > threshold_of(s, 1e-3), outliers)


def test_false_alarms_are_as_many_as_asked():
    generator = torch.Generator().manual_seed(0)
    alarms = [
        float((s > threshold_of(s, 0.5)).sum())
        for s, _ in (scores(100, 0, 0, generator) for _ in range(300))
    ]
    assert sum(alarms) / len(alarms) == pytest.approx(0.5, abs=0.2)


def linear_pairs(n, factor, generator):
    v = (
        torch.randn(n, 6, generator=generator)
        @ SineModes(6).basis(torch.linspace(0, 1, 30, dtype=torch.float64)[:, None]).float()
    )
    return v, factor * v


@pytest.fixture
def T():
    torch.manual_seed(0)
    return models.representer(SineModes(12), SineModes(12), heads=1, width=12, hidden=16).eval()


def test_examples_of_another_operator_are_found(T):
    generator = torch.Generator().manual_seed(0)
    parts = [linear_pairs(38, 1.0, generator), linear_pairs(2, 1.4, generator)]
    examples = ExampleSet(*(torch.cat(part) for part in zip(*parts, strict=True)))
    found = outlier_scores(T, examples, n_regressions=200)
    assert found.flagged.nonzero().flatten().tolist() == [38, 39]
    assert found.errors.shape == (200, 40)
    clean = outlier_scores(T, examples[:38], n_regressions=200)
    assert not clean.flagged.any()


@pytest.mark.parametrize(
    ("options", "n", "problem"),
    [
        ({"n_regressions": 0}, 20, "0 splits"),
        ({"n_regressions": 1}, 20, "never left example"),
        ({"false_alarms": 0.0}, 20, "false_alarms=0"),
        ({"n_regressions": 50}, 5, "at least 10"),
    ],
)
def test_bad_input_is_answered(T, options, n, problem):
    examples = ExampleSet(*linear_pairs(n, 1.0, torch.Generator().manual_seed(0)))
    with pytest.raises(TransduceError, match=problem):
        outlier_scores(T, examples, **options)
