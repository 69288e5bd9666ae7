"""Averaging kernels that start as smoothers."""

import pytest
import torch

from paper.models import mirrored_rbf
from paper.models.mirrored import start_mirrored
from transduce import Euclidean, ExampleSet, SineModes, TransduceError, models


def model(depth):
    torch.manual_seed(0)
    return mirrored_rbf(Euclidean(6), Euclidean(4), depth, heads=4, width=8, hidden=8).eval()


def test_query_and_key_are_equal_and_out_undoes_value():
    T = model(3)
    for layer in T.steps:
        kappa = layer.kappa
        assert torch.equal(kappa.query.weight, kappa.key.weight)
        both = kappa.out.weight @ kappa.value.weight
        assert both.trace().item() == pytest.approx(4 / 3, rel=1e-5)  # the size of U over depth
        assert layer.G is None and layer.F is not None


def test_each_layer_gives_its_share_of_a_constant():
    """If u is the same for all examples, so is the average, and the trace of all layers is 1."""
    T = model(2)
    v = torch.randn(9, 6)
    traces = []
    for k in range(4):
        u = torch.zeros(9, 4)
        u[:, k] = 1
        with torch.no_grad():
            estimates = T.regress(ExampleSet(v, u)).layer_estimates(v[:1])
        traces.append(estimates[0, 0, k])
    assert sum(traces) / 4 == pytest.approx(1 / 2, rel=1e-5)


def test_untrained_it_is_a_smoother():
    """Nearby examples count for more, so that classes are predicted without training."""
    torch.manual_seed(1)
    centres, labels = 3 * torch.randn(4, 6), torch.arange(200) % 4
    v, u = centres[labels] + 0.3 * torch.randn(200, 6), torch.eye(4)[labels]
    with torch.no_grad():
        answers = model(2).regress(ExampleSet(v[:100], u[:100]))(v[100:])
    assert (answers.argmax(1) == labels[100:]).float().mean() > 0.9


def test_kernels_that_solve_have_no_mirrored_start():
    T = models.representer(SineModes(4), SineModes(4), heads=1, width=2, hidden=4)
    with pytest.raises(TransduceError, match="of a Ridge; expected a kernel that averages"):
        start_mirrored(T)
