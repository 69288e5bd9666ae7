"""Moved pairs: pairs of the same operator, every one moved, v and u alike."""

import pytest
import torch

from transduce.families import Burgers2d
from transduce.families.symmetries import Moved, moved
from transduce.metrics import relative_squared_errors
from transduce.random_fields import generator_for
from transduce.types import ExampleSet, Task, TransduceError


def test_the_operator_commutes_with_what_pairs_are_moved_by():
    family = Burgers2d(amplitude=0.3, increment=3.0, points=32)
    task = Moved(family).sample_task(10, 6, generator_for("validation", 3))
    plain, O = (
        family.sample_task(10, 6, generator_for("validation", 3)),
        family.sample_operator(generator_for("validation", 3)),
    )
    for pairs in (task.examples, task.queries):
        assert relative_squared_errors(O(pairs.v), pairs.u).max() < 1e-9
    assert not (task.examples.v == plain.examples.v).flatten(1).all(1).any()
    assert torch.allclose(
        task.queries.v.square().sum((1, 2, 3)), plain.queries.v.square().sum((1, 2, 3))
    )


def test_every_move_is_one_of_points_and_of_vectors_alike():
    """An arrow along each axis: whatever g, an arrow still points to where its neighbour was moved,
    and all eight turns occur."""
    fields = torch.zeros(200, 1, 2, 8, 8)
    fields[:, 0, 0, 2, 5], fields[:, 0, 1, 2, 5] = 1.0, 3.0  # an arrow (1, 3) at (2, 5)
    fields[:, 0, 0, 3, 5] = fields[:, 0, 0, 2, 6] = (
        0.25  # marks ahead of it along each axis, the second the smaller
    )
    fields[:, 0, 1, 3, 5], fields[:, 0, 1, 2, 6] = 0.125, 0.0625
    turns = set()
    for field in moved(fields, generator_for("train", 0))[:, 0]:
        size = field.square().sum(0)
        tail, first, second = (
            torch.tensor(divmod(int(size.flatten().argsort(descending=True)[k]), 8))
            for k in range(3)
        )
        ahead = [(mark - tail + 4) % 8 - 4 for mark in (first, second)]
        arrow = field[:, tail[0], tail[1]]
        assert torch.equal(arrow, (ahead[0] + 3 * ahead[1]).float())
        turns.add(tuple(arrow.tolist()))
    assert turns == {
        (a * x, b * y) for a in (1, -1) for b in (1, -1) for x, y in ((1.0, 3.0), (3.0, 1.0))
    }


def test_other_functions_cannot_be_moved():
    class Flat:
        def sample_task(self, n, m, generator):
            return Task(*(ExampleSet(torch.ones(k, 8), torch.ones(k, 8)) for k in (n, m)))

    with pytest.raises(
        TransduceError, match=r"v has shape \(3, 8\) and u \(3, 8\); only vector fields"
    ):
        Moved(Flat()).sample_task(2, 1, generator_for("train", 0))
