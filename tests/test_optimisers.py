"""Muon, and the learning rates of kernels."""

import pytest
import torch
from conftest import small_transducer

from transduce import ExampleSet, Task, Training, TransduceError, metatrain
from transduce.optimisers import Muon, kernel_parameters, make_optimisers, orthogonalise


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


class Renamed(torch.nn.Module):
    """A kernel under another name, and a matrix that is called kappa but is not one."""

    def __init__(self):
        super().__init__()
        self.smoother = small_transducer(depth=1).layers[0].kappa
        self.part = torch.nn.ModuleDict({"kappa": torch.nn.Linear(3, 3)})


@pytest.mark.parametrize("muon_lr", [0.0, 0.02])
def test_the_rate_of_kernels_is_for_kernels_whatever_they_are_called(muon_lr):
    model = Renamed()
    assert kernel_parameters(model) == set(model.smoother.parameters())
    for optimiser in make_optimisers(model, 1e-3, muon_lr, kernel_rate=0.1):
        for group in optimiser.param_groups:
            for p in group["params"]:
                usual = muon_lr if muon_lr and p.ndim == 2 else 1e-3
                of_kernel = any(p is q for q in model.smoother.parameters())
                assert group["lr"] == pytest.approx(usual * (0.1 if of_kernel else 1))


def test_a_rate_of_zero_leaves_kernels_as_they_are():
    class Lines:
        def sample_task(self, n, m, generator):
            v = torch.randn(n + m, 33, generator=generator)
            return Task(ExampleSet(v[:n], v[:n]), ExampleSet(v[n:], v[n:]))

    T, start = (small_transducer(depth=1).float() for _ in range(2))
    metatrain(
        T, Lines(), Training(steps=3, tasks=1, n=(4, 4), queries=2, warmup=0, kernel_rate=0.0)
    )
    same = {
        name: torch.equal(p, start.get_parameter(name))
        for name, p in T.named_parameters()
        if p.requires_grad
    }
    assert all(same[name] == (".kappa." in name) for name in same)


def test_a_rate_below_zero_is_refused():
    with pytest.raises(TransduceError, match="kernel_rate=-1"):
        Training(steps=1, kernel_rate=-1.0)
