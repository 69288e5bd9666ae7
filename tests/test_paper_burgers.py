"""The Burgers experiment: every part measures and shows, and what is hidden in datasets is what it
says."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from paper.burgers.outliers import contaminated, counted, flagged_by_baselines
from paper.burgers.parts import WrongContext
from paper.burgers.resolution import TwoGrids
from paper.burgers.setting import family_of
from transduce.baselines.fno import periodic_fno
from transduce.metrics import relative_mse
from transduce.random_fields import generator_for
from validation.burgers_rivals import CENTRE, CHOICES
from validation.rival_tuning import with_options

RESULTS = Path(__file__).parent.parent / "results" / "burgers"


def test_outliers_are_hidden_where_it_is_said():
    examples, truth = contaminated(10.0, 0.4, 0.25, 8, generator_for("validation", 0))
    assert truth.sum() == 2
    decay = examples.u.flatten(1).square().sum(1) / examples.v.flatten(1).square().sum(1)
    # More viscosity, less energy left.
    assert set(np.argsort(decay.numpy())[:2]) == set(np.flatnonzero(truth))


def test_counts_of_hits():
    flagged, truth = np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 1], bool)
    assert counted(flagged, truth) == [1, 2, 3]


def test_rivals_flag_the_share_they_are_told_and_the_smaller_cluster():
    examples, _ = contaminated(5.0, 0.2, 0.1, 30, generator_for("validation", 1))
    flags = flagged_by_baselines(examples, 0.1)
    assert flags["isolation forest"].sum() == flags["local outlier factor"].sum() == 3
    assert 0 < flags["spectral clustering"].sum() <= 15


def test_a_wrong_context_is_of_another_operator():
    family = family_of(0.1, 5.0)
    right, wrong = (
        family.sample_task(3, 3, generator_for("test", 0)),
        WrongContext(family).sample_task(3, 3, generator_for("test", 0)),
    )
    O = family.sample_operator(generator_for("test", 0))
    assert relative_mse(O(right.queries.v), right.queries.u) < 1e-6
    assert (
        relative_mse(O(wrong.examples.v), wrong.examples.u)
        < 1e-6
        < 1e-5
        < relative_mse(O(wrong.queries.v), wrong.queries.u)
    )


def test_two_grids_show_the_same_functions():
    coarse, fine = (
        TwoGrids(0.1, points, 128).sample_task(1, 1, generator_for("test", 0)).examples
        for points in (64, 128)
    )
    assert coarse.v.shape[-1] == 64 and torch.equal(fine.u[..., ::2, ::2], coarse.u)


@pytest.mark.results
def test_the_fno_is_the_best_of_what_was_tried():
    """Of least geometric mean over both amplitudes; a fit to 100 examples is the same whether
    updates are counted or epochs."""
    rows = json.loads((RESULTS.parent / "validation" / "burgers_rivals.json").read_text())["rows"]
    assert list(dict.fromkeys(row["choice"] for row in rows)) == list(CHOICES)
    errors = {
        choice: math.prod(row["mean"] for row in rows if row["choice"] == choice)
        for choice in CHOICES
    }
    assert with_options(CENTRE, CHOICES[min(errors, key=errors.__getitem__)]) == periodic_fno()
