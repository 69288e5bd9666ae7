"""The two linear systems: factors of inverses, and how they are updated."""

import pytest
import torch

from transduce import TransduceError
from transduce.kernels.systems import Solve, extended, inverse_factor, without


def spd(n):
    A = torch.randn(2, n, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return A @ A.mT + torch.eye(n)


def test_gradients_of_solve():
    torch.manual_seed(0)
    A, u = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        for shape in ((2, 2, 4, 4), (2, 4, 3))
    )

    def solve(A, u):
        return Solve.apply(A @ A.mT + torch.eye(4), u)[:2]

    assert torch.autograd.gradcheck(solve, (A, u))
    K = A @ A.mT + torch.eye(4)
    alpha, diagonal, W = Solve.apply(K, u)
    torch.testing.assert_close(K @ alpha, u[:, None].expand_as(alpha))
    torch.testing.assert_close(diagonal, torch.linalg.inv(K).diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(W.mT @ W, torch.linalg.inv(K))
    assert not W.requires_grad


@pytest.mark.parametrize("i", range(5))
def test_without_is_the_inverse_of_what_is_left(i):
    K, others = spd(5), [j for j in range(5) if j != i]
    W = without(inverse_factor(K), i)
    torch.testing.assert_close(W.mT @ W, torch.linalg.inv(K[:, others][..., others]))
    others.pop(2)
    W = without(W, 2)
    torch.testing.assert_close(W.mT @ W, torch.linalg.inv(K[:, others][..., others]))


def test_extended_is_the_inverse_of_the_whole():
    K = spd(7)
    W = extended(inverse_factor(K[:, :4, :4]), K[:, 4:])
    torch.testing.assert_close(W.mT @ W, torch.linalg.inv(K))
    kept = [0, 1, 3, 4, 5, 6]
    W = extended(without(inverse_factor(K[:, :4, :4]), 2), K[:, 4:][..., kept])
    torch.testing.assert_close(W.mT @ W, torch.linalg.inv(K[:, kept][..., kept]))


def test_a_matrix_that_is_not_positive_is_raised_alone():
    good = spd(5)[:1]
    bad = torch.ones(1, 5, 5, dtype=torch.float64) - 1e-14 * torch.eye(5)
    W = inverse_factor(torch.cat([good, bad]))
    torch.testing.assert_close(W[:1], inverse_factor(good), rtol=0, atol=0)
    L = torch.linalg.inv(W[1])
    torch.testing.assert_close(L @ L.mT, bad[0], rtol=0, atol=1e-8)


def test_a_matrix_that_is_not_finite_is_refused():
    K = spd(4)
    K[1, 2, 2] = torch.nan
    with pytest.raises(TransduceError, match="expected finite features"):
        inverse_factor(K)
