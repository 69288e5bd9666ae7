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
    plain, O = family.sample_task(10, 6, generator_for("validation", 3)), family.sample_operator(generator_for("validation", 3))
    for pairs in (task.examples, task.queries):
        assert relative_squared_errors(O(pairs.v), pairs.u).max() < 1e-9
    assert not (task.examples.v == plain.examples.v).flatten(1).all(1).any()
    assert torch.allclose(task.queries.v.square().sum((1, 2, 3)), plain.queries.v.square().sum((1, 2, 3)))


def test_every_reflection_and_exchange_occurs_with_its_signs():
    """A field that names its place: under g, (x_1, x_2) and the components move as vectors do."""
    step = torch.zeros(200, 1, 2, 8, 8)
    step[:, 0, 0, 1:3, 0], step[:, 0, 1, 0, 1:4] = 1.0, 2.0
    found = moved(step, generator_for("train", 0))[:, 0]
    totals = {tuple(values) for values in found.sum((2, 3)).tolist()}
    assert totals == {(2.0 * a, 6.0 * b) for a in (1, -1) for b in (1, -1)} | {(6.0 * b, 2.0 * a) for a in (1, -1) for b in (1, -1)}
    plain = found[(found.sum((2, 3)) == torch.tensor([2.0, 6.0])).all(1)]
    assert len({int(field[0].flatten().argmax()) for field in plain}) > 5  # shifted


def test_other_functions_cannot_be_moved():
    class Flat:
        def sample_task(self, n, m, generator):
            return Task(*(ExampleSet(torch.ones(k, 8), torch.ones(k, 8)) for k in (n, m)))

    with pytest.raises(TransduceError, match=r"v has shape \(3, 8\); only vector fields"):
        Moved(Flat()).sample_task(2, 1, generator_for("train", 0))
