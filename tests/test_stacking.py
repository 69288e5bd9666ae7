"""How answers are weighed, and how the trust that weighs them is learned."""

import copy

import pytest
import torch

from transduce.families import RandomOperators
from transduce.kernels import CurveNetwork, CurveReadout, GeneralStack, Trust
from transduce.kernels.general import CURVES
from transduce.kernels.trust import MOST_OF_ONE, Weighing, capped, weights_at
from transduce.random_fields import generator_for
from transduce.spaces import Sampled
from transduce.stacking import (
    OnCurveGrids,
    TrustTraining,
    collect,
    fit_trust,
    ratio_to_best,
    records,
)
from transduce.stacking.fitting import compared
from transduce.stacking.records import with_larger_queries

FAMILY = RandomOperators(mechanisms=("linear", "curves"), noisy=0.5)
ON_GRIDS = OnCurveGrids(FAMILY)


@pytest.fixture(scope="module")
def stack():
    torch.manual_seed(0)
    own = Sampled(80)
    readout = CurveReadout(own, own, CurveNetwork(4, 1, 3, 3, 80, 4), 2)
    return GeneralStack(own, own, readout.eval(), Trust(len(CURVES.known), 8, 1)).eval()


def weighing(*logits, caution=2.0):
    a = torch.tensor([logits]).double()
    return Weighing(a, torch.full_like(a, caution), torch.zeros(1).double())


def strange_answer(size, j=2):
    """log(1 + d / D) of three answers; the j-th is `size` times too far from the others."""
    ratios = torch.ones(3, 3).double()
    ratios[j], ratios[:, j] = size, size
    ratios.fill_diagonal_(0)
    return torch.log1p(ratios)[None, None]


def test_an_answer_far_from_the_others_counts_less_the_further_it_is():
    votes = 1 - torch.eye(3).double()
    weights = [
        weights_at(weighing(0, 0, 0.3), strange_answer(size), votes)[0, 0]
        for size in (1.0, 10.0, 100.0, 1e4)
    ]
    assert torch.stack(weights).sum(1).allclose(torch.ones(4).double())
    assert torch.stack(weights)[:, 2].diff().lt(0).all() and weights[-1][2] < 1e-2
    assert weights[0].argmax() == 2  # where all are as far apart as at the examples


def test_without_caution_weights_are_the_same_at_all_queries():
    votes = 1 - torch.eye(3).double()
    same = weights_at(weighing(0, 1, 2, caution=0.0), strange_answer(1e6), votes)[0, 0]
    assert torch.allclose(same, torch.tensor([0.0, 1.0, 2.0]).double().softmax(0))


def test_answers_of_one_origin_do_not_vote_for_each_other():
    """Answers 1 and 2 agree with each other and are far from answer 0, which weighs less."""
    strange = strange_answer(1e3, j=0)
    strange[..., 1, 2] = strange[..., 2, 1] = 0
    alone = 1 - torch.eye(3).double()
    related = alone.clone()
    related[1, 2] = related[2, 1] = 0
    by_majority = weights_at(weighing(0, 0, 0), strange, alone)[0, 0]
    by_origin = weights_at(weighing(0, 0, 0), strange, related)[0, 0]
    assert by_majority[0] < 0.01
    assert torch.allclose(by_origin, torch.full((3,), 1 / 3).double())


def test_one_example_counts_at_most_as_ten():
    errors = torch.tensor([[1.0, 1.0, 1.0, 1e6], [1.0, 2.0, 3.0, 4.0]]).double()
    found = capped(errors, torch.tensor([4.0, 4.0]))
    assert found[0].tolist() == [1, 1, 1, MOST_OF_ONE]
    assert torch.equal(found[1], errors[1])


def test_records_hold_the_error_of_any_trust(stack, monkeypatch, tmp_path):
    """The error from the small matrices is that of the stack itself."""
    torch.manual_seed(1)
    trust = Trust(len(CURVES.known), 8, 1).eval()
    for parameter in trust.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    seen = []

    def kept(task, generator):
        seen.append(task)
        return task

    monkeypatch.setattr(records, "BEYOND", 1.0)
    monkeypatch.setattr(records, "with_larger_queries", kept)
    one = records.record(stack, ON_GRIDS, "validation", 3, (4, 20))
    (task,) = seen
    v, u, query, truth = (
        f.double() for part in (task.examples, task.queries) for f in (part.v, part.u)
    )
    stack = GeneralStack(Sampled(v.shape[1]), Sampled(u.shape[1]), stack.readout, trust)
    with torch.no_grad():
        fit = stack.condition(v[None], u[None])
        wrong = (stack(fit, query[None])[0] - truth).square().sum()
        own, _, expected = compared(trust, one, CURVES, list(range(len(CURVES.known))))
    assert own.item() == pytest.approx(float(wrong / (truth - u.mean(0)).square().sum()), rel=1e-4)
    assert len(v) <= records.KEPT
    assert expected.item() == pytest.approx(fit.error.item(), rel=1e-4)


def test_collecting_resumes_from_its_files(stack, monkeypatch, tmp_path):
    monkeypatch.setattr(records, "BLOCK", 2)
    first = collect(stack, ON_GRIDS, 2, tmp_path, workers=1)
    written = (tmp_path / "train-0.safetensors").stat().st_mtime_ns
    both = collect(stack, ON_GRIDS, 4, tmp_path, workers=1)
    assert len(first) == 2 and len(both) == 4
    assert torch.equal(both.errors[:2], first.errors)
    assert (tmp_path / "train-0.safetensors").stat().st_mtime_ns == written
    assert len(collect(stack, ON_GRIDS, 3, tmp_path / "odd", workers=1)) == 3
    assert len(collect(stack, ON_GRIDS, 4, tmp_path / "odd", workers=1)) == 4


def test_records_of_another_readout_are_not_taken_for_ours(stack, tmp_path):
    first = collect(stack, ON_GRIDS, 2, tmp_path, workers=1)
    other = copy.deepcopy(stack)
    with torch.no_grad():
        other.readout.log_ridge += 1
    assert not torch.equal(collect(other, ON_GRIDS, 2, tmp_path, workers=1).gram, first.gram)
    assert torch.equal(collect(stack, ON_GRIDS, 2, tmp_path, workers=1).gram, first.gram)


def test_a_trust_learns_from_records(stack, tmp_path):
    """On the records that it is fitted to, it becomes better than the rule it starts from."""
    torch.manual_seed(0)
    some = collect(stack, ON_GRIDS, 12, tmp_path, workers=1)
    trust = Trust(len(CURVES.known), 8, 1)
    before = ratio_to_best(trust, some, CURVES)
    fit_trust(trust, some, CURVES, TrustTraining(steps=60, batch=12, lr=1e-2, left_out=0.0))
    assert ratio_to_best(trust, some, CURVES) < before - 0.02


def test_tasks_with_larger_queries_their_examples_have_larger_queries():
    task = FAMILY.sample_task(40, 24, generator_for("train", 1))
    moved = with_larger_queries(task, generator_for("train", 2))
    assert len(moved.examples) == 40 and len(moved.queries) == 24
    center = torch.cat([task.examples.v, task.queries.v]).mean(0)
    examples, queries = (
        (part.v - center).norm(dim=1).mean() for part in (moved.examples, moved.queries)
    )
    assert queries > 1.1 * examples
